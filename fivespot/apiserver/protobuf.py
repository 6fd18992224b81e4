"""Decoding of Kubernetes' protobuf encoding, for the kinds that typed Go clients write.

There is no encoder: clients that send protobuf accept JSON. Field numbers are those of the ``generated.proto`` files
of ``k8s.io/api`` and ``k8s.io/apimachinery``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from .clock import micro_time, timestamp

__all__ = ["MEDIA_TYPE", "ProtobufError", "decode_protobuf"]

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Reader = Callable[[Any], Any]


class ProtobufError(ValueError):
    """The bytes are not the protobuf encoding of a supported kind."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message.

    :param keep: whether zero values are kept (pointers in Go).
    """

    name: str
    read: Reader
    repeated: bool = False
    mapped: bool = False
    keep: bool = False


Message = Mapping[int, _Field]


def _text(raw: Any) -> str:
    if not isinstance(raw, bytes):
        raise ProtobufError("a text is not of bytes")
    return raw.decode(errors="replace")


def _integer(raw: Any) -> int:
    if not isinstance(raw, int):
        raise ProtobufError("a number is no number")
    return raw - 2**64 if raw >= 2**63 else raw


def _flag(raw: Any) -> bool:
    return bool(_integer(raw))


def _bytes(raw: Any) -> str:
    if not isinstance(raw, bytes):
        raise ProtobufError("bytes are none")
    return base64.b64encode(raw).decode()


def _instant(show: Callable[[datetime], str]) -> Reader:
    def read(raw: Any) -> str | None:
        found = _numbers(raw)
        seconds, nanos = _integer(found.get(1, 0)), _integer(found.get(2, 0))
        # Go's zero time means that no time is set.
        if not found or not 0 <= seconds < 253_402_300_800:
            return None
        return show(_EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000))

    return read


def _json(raw: Any) -> Any:
    try:
        return msgspec.json.decode(_numbers(raw).get(1, b"{}"))
    except msgspec.DecodeError as error:
        raise ProtobufError(str(error)) from None


def _message(fields: Message) -> Reader:
    return lambda raw: _read(raw, fields)


def _numbers(raw: Any) -> dict[int, Any]:
    """The last value of each field."""
    return dict(_wire(raw))


def _fields(names: str, read: Reader = _text, *, keep: bool = False) -> dict[int, _Field]:
    """Fields from words such as ``1:name 2:note``."""
    return {
        int(number): _Field(name, read, keep=keep)
        for number, _, name in (each.partition(":") for each in names.split())
    }


_TIME: Final = _instant(timestamp)
_MICRO: Final = _instant(micro_time)

_OWNER: Final = {
    **_fields("5:apiVersion 1:kind 3:name 4:uid"),
    **_fields("6:controller 7:blockOwnerDeletion", _flag, keep=True),
}
_RECORD: Final = {
    **_fields("1:manager 2:operation 3:apiVersion 6:fieldsType 8:subresource"),
    4: _Field("time", _TIME),
    7: _Field("fieldsV1", _json),
}
_METADATA: Final = {
    **_fields("1:name 2:generateName 3:namespace 4:selfLink 5:uid 6:resourceVersion"),
    7: _Field("generation", _integer),
    **_fields("8:creationTimestamp 9:deletionTimestamp", _TIME),
    10: _Field("deletionGracePeriodSeconds", _integer, keep=True),
    11: _Field("labels", _text, mapped=True),
    12: _Field("annotations", _text, mapped=True),
    13: _Field("ownerReferences", _message(_OWNER), repeated=True),
    14: _Field("finalizers", _text, repeated=True),
    17: _Field("managedFields", _message(_RECORD), repeated=True),
}
_REFERENCE: Final = _fields("1:kind 2:namespace 3:name 4:uid 5:apiVersion 6:resourceVersion 7:fieldPath")
_SOURCE: Final = _fields("1:component 2:host")
_SERIES: Final = {1: _Field("count", _integer), 2: _Field("lastObservedTime", _MICRO)}
_META: Final = {1: _Field("metadata", _message(_METADATA))}

_KINDS: Final[Mapping[tuple[str, str], Message]] = {
    ("v1", "Namespace"): {
        **_META,
        2: _Field("spec", _message({1: _Field("finalizers", _text, repeated=True)})),
        3: _Field("status", _message(_fields("1:phase"))),
    },
    ("v1", "ConfigMap"): {
        **_META,
        2: _Field("data", _text, mapped=True),
        3: _Field("binaryData", _bytes, mapped=True),
        4: _Field("immutable", _flag, keep=True),
    },
    ("v1", "Secret"): {
        **_META,
        2: _Field("data", _bytes, mapped=True),
        3: _Field("type", _text),
        4: _Field("stringData", _text, mapped=True),
        5: _Field("immutable", _flag, keep=True),
    },
    ("v1", "ServiceAccount"): {
        **_META,
        2: _Field("secrets", _message(_REFERENCE), repeated=True),
        3: _Field("imagePullSecrets", _message(_fields("1:name")), repeated=True),
        4: _Field("automountServiceAccountToken", _flag, keep=True),
    },
    ("v1", "Event"): {
        **_META,
        **_fields("3:reason 4:message 9:type 12:action 14:reportingComponent 15:reportingInstance"),
        **_fields("2:involvedObject 13:related", _message(_REFERENCE)),
        5: _Field("source", _message(_SOURCE)),
        **_fields("6:firstTimestamp 7:lastTimestamp", _TIME),
        8: _Field("count", _integer),
        10: _Field("eventTime", _MICRO),
        11: _Field("series", _message(_SERIES)),
    },
    ("events.k8s.io/v1", "Event"): {
        **_META,
        2: _Field("eventTime", _MICRO),
        3: _Field("series", _message(_SERIES)),
        **_fields("4:reportingController 5:reportingInstance 6:action 7:reason 10:note 11:type"),
        **_fields("8:regarding 9:related", _message(_REFERENCE)),
        12: _Field("deprecatedSource", _message(_SOURCE)),
        **_fields("13:deprecatedFirstTimestamp 14:deprecatedLastTimestamp", _TIME),
        15: _Field("deprecatedCount", _integer),
    },
    ("coordination.k8s.io/v1", "Lease"): {
        **_META,
        2: _Field(
            "spec",
            _message({
                **_fields("1:holderIdentity 6:strategy 7:preferredHolder", keep=True),
                **_fields("2:leaseDurationSeconds 5:leaseTransitions", _integer, keep=True),
                **_fields("3:acquireTime 4:renewTime", _MICRO),
            }),
        ),
    },
    ("v1", "DeleteOptions"): {
        1: _Field("gracePeriodSeconds", _integer, keep=True),
        2: _Field("preconditions", _message(_fields("1:uid 2:resourceVersion", keep=True))),
        3: _Field("orphanDependents", _flag, keep=True),
        4: _Field("propagationPolicy", _text, keep=True),
        5: _Field("dryRun", _text, repeated=True),
    },
}  # fmt: skip


def decode_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a body.

    :raises ProtobufError: it is no protobuf, or of a kind that is not known here.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _numbers(body[len(_MAGIC) :])
    type_ = _numbers(envelope.get(1, b""))
    version, kind = _text(type_.get(1, b"")), _text(type_.get(2, b""))
    known = ("v1", kind) if kind == "DeleteOptions" else (version, kind)
    fields = _KINDS.get(known)
    if fields is None:
        raise ProtobufError(f"the embedded API server does not read {version}, Kind={kind} as protobuf")
    return {"apiVersion": version, "kind": kind, **_read(envelope.get(2, b""), fields)}


def _read(raw: Any, fields: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _wire(raw):
        field = fields.get(number)
        if field is None:
            continue
        if field.mapped:
            pair = _numbers(value)
            found.setdefault(field.name, {})[_text(pair.get(1, b""))] = field.read(pair.get(2, b""))
        elif field.repeated:
            found.setdefault(field.name, []).append(field.read(value))
        else:
            read = field.read(value)
            if field.keep or read:
                found[field.name] = read
    return found


def _wire(raw: Any) -> Iterator[tuple[int, Any]]:
    """Numbers and raw values of a message: an int, or the bytes."""
    if not isinstance(raw, bytes):
        raise ProtobufError("a message is not of bytes")
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if wire == 2:
            size, position = _varint(raw, position)
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"illegal wireType {wire}")
        if position + size > len(raw):
            raise ProtobufError("unexpected EOF")
        yield number, raw[position : position + size]
        position += size


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise ProtobufError("unexpected EOF")
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
