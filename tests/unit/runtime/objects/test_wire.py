"""JSON is split without recursion, and the metadata of an object is found whatever the rest of it holds."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.errors import ProtocolError, UndecodableObjectError
from fivespot.runtime.objects import (
    FULL,
    Object,
    PartialMeta,
    Projection,
    decode,
    decode_head,
    decode_meta,
    elements,
    members,
    parse_version,
)

DEEP = b"[" * 20_000 + b"]" * 20_000
DEEP_MAPS = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
LONG_INTEGER = b"1" * 5_000
META = b'"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":"b"}}'

_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
_layouts = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}])


@given(st.dictionaries(st.text(), _values, max_size=5), _layouts)
def test_an_object_is_split_into_its_members(value: dict[str, Any], layout: dict[str, Any]) -> None:
    raw = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    assert {name: json.loads(part) for name, part in members(raw).items()} == value


@given(st.lists(_values, max_size=5), _layouts)
def test_an_array_is_split_into_its_elements(value: list[Any], layout: dict[str, Any]) -> None:
    raw = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    assert [json.loads(part) for part in elements(msgspec.Raw(raw))] == value


def test_the_last_of_two_members_of_one_name_counts() -> None:
    assert members(b'{"a":1,"a":2}') == {"a": b"2"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"3",
        b'{"a":1',
        b'{"a"}',
        b'{"a":}',
        b"{a:1}",
        b'{"a":1}x',
        b'{"a":1,}',
        b'{"a:1}',
        b'{"a":[}',
        b"\xff",
    ],
)
def test_anything_but_an_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        members(raw)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1", b"[1,]", b"[,]", b"[1]]", b'["a]', b"[1 2]"])
def test_anything_but_an_array_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(elements(raw))


@pytest.mark.parametrize("raw", [DEEP, DEEP_MAPS, LONG_INTEGER, b"1e999999", b'"\\ud800"', b'"\xff"', b"nul"])
def test_a_decoder_raises_nothing_but_protocol_error(raw: bytes) -> None:
    assert issubclass(UndecodableObjectError, ProtocolError)
    decoders: list[msgspec.json.Decoder[Any]] = [msgspec.json.Decoder(shape) for shape in (dict[str, Any], int, str)]
    for decoder in decoders:
        with pytest.raises(ProtocolError):
            decode(decoder, raw)


@pytest.mark.parametrize("value", [DEEP, DEEP_MAPS, b"nul"])
@pytest.mark.parametrize("form", [b'{%b,"spec":%b}', b'{"spec":{"x":[1,%b]},%b}'])
def test_the_metadata_of_an_object_that_cannot_be_decoded_is_found(form: bytes, value: bytes) -> None:
    raw = form % ((META, value) if form.startswith(b"{%b") else (value, META))
    meta = decode_meta(raw)
    assert isinstance(meta, PartialMeta)
    assert meta.body_error
    head = decode_head(raw)
    assert (head.namespace, head.name, head.uid, head.version, head.labels) == ("ns", "n", "u", 7, {"a": "b"})


def test_deep_managed_fields_do_not_hide_the_rest_and_are_not_kept() -> None:
    managed = (
        b'{"metadata":{"managedFields":[%b],"name":"n","uid":"u","resourceVersion":"7"},"spec":{"a":1}}' % DEEP_MAPS
    )
    kept = FULL.project(managed, decode_meta(managed))
    assert json.loads(kept) == {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}, "spec": {"a": 1}}


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        (b'{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":[]}', "n"),
        (b'{"name":"n","namespace":"ns","uid":7,"resourceVersion":"7"}', "n"),
        (b'{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","generation":%b}' % LONG_INTEGER, "n"),
        (b'{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":%b}}' % DEEP, "n"),
        (b'{"name":"n","namespace":"ns","uid":"u","resourceVersion":"%b"}' % LONG_INTEGER, "n"),
        (b'{"name":"n","namespace":"ns","uid":"u"}', "n"),
        (b'{"name":["n"],"uid":"u","resourceVersion":"7"}', ""),
        (DEEP, ""),
        (b"null", ""),
        (b"3", ""),
    ],
)
def test_an_object_without_readable_metadata_is_named_as_far_as_possible(metadata: bytes, named: str) -> None:
    with pytest.raises(UndecodableObjectError) as caught:
        decode_head(b'{"kind":"A","metadata":%b}' % metadata)
    assert caught.value.name == named
    assert caught.value.namespace == ("ns" if named else "")
    assert len(str(caught.value)) < 500


def test_a_projection_reads_fields_beside_what_cannot_be_decoded() -> None:
    class Shape(msgspec.Struct):
        status: dict[str, Any]

    projection = Projection.fields("status", Shape)
    raw = b'{%b,"spec":{"x":%b},"status":{"a":1}}' % (META, DEEP)
    assert projection.project(raw) == b'{"status":{"a":1}}'
    with pytest.raises(ProtocolError, match="too deeply"):
        projection.project(b'{%b,"status":{"a":%b}}' % (META, DEEP))


@pytest.mark.parametrize("value", [DEEP, DEEP_MAPS, LONG_INTEGER])
def test_reading_an_object_that_cannot_be_decoded_is_a_protocol_error_that_names_it(value: bytes) -> None:
    class Shape(msgspec.Struct):
        spec: dict[str, Any]

    class Status(msgspec.Struct):
        status: dict[str, int]

    obj = Object.parse(b'{%b,"spec":{"x":%b},"status":{"a":1}}' % (META, value))
    assert obj.read(Status).status == {"a": 1}, "what is asked for can be read"
    assert obj.key == ("ns", "n")
    for read in (obj.decode, lambda: obj.read(Shape)):
        with pytest.raises(ProtocolError, match="ns/n: "):
            read()


@pytest.mark.parametrize("text", ["", "-1", "01", "1.0", "١", "1" * 21, "1" * 5_000, "1\n"])
def test_a_version_is_a_number_of_64_bits_without_leading_zeros(text: str) -> None:
    with pytest.raises(ProtocolError):
        parse_version(text)
