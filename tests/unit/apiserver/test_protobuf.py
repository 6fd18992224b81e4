"""Bodies in protobuf form."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fivespot.apiserver.protobuf import ProtobufError, decode_protobuf


def number(value: int) -> bytes:
    encoded = b""
    while value >= 0x80:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def part(field: int, value: bytes | str | int) -> bytes:
    """Encode a field."""
    if isinstance(value, int):
        return number(field << 3) + number(value)
    raw = value.encode() if isinstance(value, str) else value
    return number(field << 3 | 2) + number(len(raw)) + raw


def envelope(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + part(1, part(1, version) + part(2, kind)) + part(2, raw) + part(3, "") + part(4, "")


def test_a_config_map_as_go_clients_write_it() -> None:
    metadata = b"".join([
        part(1, "a"), part(2, ""), part(3, "ns"), part(4, ""), part(5, ""), part(6, ""), part(7, 0), part(8, b""),
        part(11, part(1, "l") + part(2, "1")), part(11, part(1, "m") + part(2, "2")),
        part(13, part(1, "Pod") + part(3, "p") + part(4, "u") + part(5, "v1") + part(6, 1)),
        part(14, "example.com/f"),
    ])  # fmt: skip
    raw = (
        part(1, metadata)
        + part(2, part(1, "k") + part(2, "v"))
        + part(3, part(1, "b") + part(2, b"\x00\xff"))
        + part(4, 0)
    )
    assert decode_protobuf(envelope("v1", "ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "labels": {"l": "1", "m": "2"},
            "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u", "apiVersion": "v1", "controller": True}],
            "finalizers": ["example.com/f"],
        },
        "data": {"k": "v"},
        "binaryData": {"b": "AP8="},
        "immutable": False,
    }


def test_a_lease_has_times_in_microseconds() -> None:
    moment = part(1, 1_767_225_600) + part(2, 123_456_000)
    spec = part(1, "me") + part(2, 15) + part(4, moment) + part(5, 0)
    body = decode_protobuf(envelope("coordination.k8s.io/v1", "Lease", part(2, spec)))
    assert body["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.123456Z",
        "leaseTransitions": 0,
    }


def test_negative_numbers() -> None:
    body = decode_protobuf(envelope("v1", "DeleteOptions", part(1, 2**64 - 1) + part(4, "Background")))
    assert (body["gracePeriodSeconds"], body["propagationPolicy"]) == (-1, "Background")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00",
        b"k8s\x00\x0a\xff",
        b"k8s\x00\x0b",
        envelope("v1", "PodTemplate", b""),
        envelope("v1", "ConfigMap", b"\x0a\x7f"),
    ],
)
def test_what_is_not_readable_says_so(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_protobuf(body)


@settings(max_examples=60)
@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for kind in ("ConfigMap", "Event", "Secret"):
        try:
            assert decode_protobuf(envelope("v1", kind, raw))["kind"] == kind
        except ProtobufError:
            continue
