"""Decoding of the JSON that API servers send, so that an object which cannot be decoded affects no other.

Users choose what is stored in an object: lists nested thousands deep, integers of any length. msgspec decodes with
recursion and Python limits the length of integers, so such an object makes a decoder raise RecursionError or
ValueError, and takes the rest of a list with it. Every decoder of the runtime therefore goes through :func:`decode`;
:func:`members` and :func:`elements` split JSON without recursion into parts that can be decoded on their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from fivespot.runtime.errors import ProtocolError, UndecodableObjectError

__all__ = [
    "UNDECODABLE",
    "OwnerReference",
    "PartialMeta",
    "WireMeta",
    "decode",
    "decode_meta",
    "elements",
    "encode_exact",
    "join_members",
    "members",
    "parse_version",
    "reason_of",
]

T = TypeVar("T")
Json = bytes | bytearray | memoryview | msgspec.Raw

UNDECODABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
"""Errors of decoders for JSON that they cannot decode. ValueError is Python's for an integer that is too long."""

_VERSION_DIGITS: Final = 20
"""Digits of the largest resourceVersion: etcd's revisions are 64 bits wide."""


def decode(decoder: msgspec.json.Decoder[T], raw: Json) -> T:
    """Decode JSON. A Struct is decoded also if a member that it does not have is what cannot be decoded.

    :raises ProtocolError: it is no JSON, is nested too deeply, or has another shape than the decoder's type says.
    """
    try:
        return decoder.decode(raw)
    except UNDECODABLE as error:
        fields: tuple[str, ...] = getattr(decoder.type, "__struct_encode_fields__", ())
        if fields:
            try:
                kept = {name: value for name, value in members(raw).items() if name in fields}
                return decoder.decode(join_members(kept))
            except (ProtocolError, *UNDECODABLE):
                pass  # it lies in a member that was asked for: reported as it was first found
        raise ProtocolError(reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Say in one line why JSON could not be decoded."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error)
    return text if len(text) <= _REASON_LIMIT else text[: _REASON_LIMIT - 1] + "…"


_REASON_LIMIT: Final = 200


def encode_exact(value: Any) -> bytes:
    """Encode as JSON in a buffer of exactly its size; the encoder's own buffer is larger than what it holds."""
    return bytes(memoryview(_encoder.encode(value)))


_encoder = msgspec.json.Encoder()


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class WireMeta(msgspec.Struct, gc=False, rename="camel"):
    """``metadata`` as it comes over the wire, for decoders that find it inside of something else.

    :ivar managed_fields: never kept; as bytes, so that it can be cut out without another look.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class PartialMeta(WireMeta):
    """The metadata of an object that cannot be decoded as a whole.

    :ivar body_error: why it cannot.
    """

    body_error: str = ""


class _Wire(msgspec.Struct, gc=False):
    metadata: WireMeta


_decoder = msgspec.json.Decoder(_Wire)


def parse_version(text: str) -> int:
    """Parse a resourceVersion.

    Versions are decimal, without sign or leading zero, and comparable as numbers (KEP-5504).

    :raises ProtocolError: the text is no such number.
    """
    if not (text.isascii() and text.isdigit()) or (text[0] == "0" and text != "0") or len(text) > _VERSION_DIGITS:
        raise ProtocolError(f"resourceVersion {text[:64]!r} is not a decimal number without leading zeros")
    return int(text)


def decode_meta(raw: Json) -> WireMeta:
    """Decode the ``metadata`` of one JSON object.

    It is found also where the rest of the object cannot be decoded, and is a :class:`PartialMeta` then.

    :raises UndecodableObjectError: it cannot be decoded; the error names the object as far as its name can be read.
    """
    try:
        return _decoder.decode(raw).metadata
    except UNDECODABLE as error:
        return _meta_alone(raw, error)


def _meta_alone(raw: Json, cause: Exception) -> PartialMeta:
    """Decode the metadata member by member, and look at nothing else of the object."""
    reason = reason_of(cause)
    try:
        found = members(members(raw).get("metadata", b""))
    except ProtocolError:
        raise UndecodableObjectError(f"an object without readable metadata: {reason}") from cause
    meta, bad = PartialMeta(body_error=reason), ""
    for attribute, name, decoder in _META_DECODERS:
        if name not in found:
            continue
        try:
            setattr(meta, attribute, decoder.decode(found[name]))
        except UNDECODABLE as error:
            bad = bad or f"metadata.{name}: {reason_of(error)}"
    if "managedFields" in found:
        meta.managed_fields = msgspec.Raw(found["managedFields"])
    if bad:
        raise UndecodableObjectError(
            f"an object without readable metadata: {bad}", namespace=meta.namespace, name=meta.name
        ) from cause
    return meta


_META_DECODERS: Final = [
    (field.name, field.encode_name, msgspec.json.Decoder(field.type))
    for field in msgspec.structs.fields(WireMeta)
    if field.name != "managed_fields"
]


# Splitting without recursion. JSON is taken apart at its brackets, which strings are skipped for, and no deeper: each
# part is checked when it is decoded.

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_STRING_AT = re.compile(_STRING, re.DOTALL)
_SCALAR_AT = re.compile(rb'[^\s"\[\]{},:]++')
_SPACE_AT = re.compile(rb"[ \t\r\n]*+")
_NEXT_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:' + _STRING + rb'[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)
_OPENING: Final = frozenset(b"[{")
_name_decoder = msgspec.json.Decoder(str)


def members(raw: Json) -> dict[str, bytes]:
    """Split a JSON object into its members, each value as JSON. Of a name that comes twice the last one counts.

    :raises ProtocolError: it is no JSON object.
    """
    text = _as_bytes(raw)
    found: dict[str, bytes] = {}
    for start, end in _parts(text, b"{", b"}"):
        name = _STRING_AT.match(text, start)
        if name is None:
            raise ProtocolError(f"no member name at byte {start}")
        colon = _skip_space(text, name.end())
        at = _skip_space(text, colon + 1)
        if text[colon : colon + 1] != b":" or at >= end:
            raise ProtocolError(f"no member value at byte {colon}")
        found[decode(_name_decoder, name[0])] = text[at:end]
    return found


def join_members(parts: Mapping[str, bytes]) -> bytes:
    """Make a JSON object of its members."""
    return b"{" + b",".join(_encoder.encode(name) + b":" + value for name, value in parts.items()) + b"}"


def elements(raw: Json) -> Iterator[bytes]:
    """Split a JSON array into its elements.

    :raises ProtocolError: it is no JSON array.
    """
    text = _as_bytes(raw)
    for start, end in _parts(text, b"[", b"]"):
        yield text[start:end]


def _parts(text: bytes, opening: bytes, closing: bytes) -> Iterator[tuple[int, int]]:
    """Find what stands between the commas of one object or array."""
    at = _skip_space(text, 0)
    if text[at : at + 1] != opening:
        raise ProtocolError(f"no {opening.decode()} at byte {at}")
    at = _skip_space(text, at + 1)
    if text[at : at + 1] != closing:
        while True:
            start = at
            at = end = _value_end(text, at)
            at = _skip_space(text, at)
            if opening == b"{" and text[at : at + 1] == b":":
                at = end = _value_end(text, _skip_space(text, at + 1))
                at = _skip_space(text, at)
            yield start, end
            if text[at : at + 1] != b",":
                break
            at = _skip_space(text, at + 1)
    if text[at : at + 1] != closing or _skip_space(text, at + 1) != len(text):
        raise ProtocolError(f"no {closing.decode()} at byte {at}, or something after it")


def _value_end(text: bytes, at: int) -> int:
    first = text[at : at + 1]
    if first == b'"':
        match = _STRING_AT.match(text, at)
    elif first in {b"{", b"["}:
        return _nested_end(text, at)
    else:
        match = _SCALAR_AT.match(text, at)
    if match is None:
        raise ProtocolError(f"no value at byte {at}")
    return match.end()


def _nested_end(text: bytes, at: int) -> int:
    depth, start = 0, at
    while match := _NEXT_BRACKET.match(text, at):
        at = match.end()
        depth += 1 if text[at - 1] in _OPENING else -1
        if not depth:
            return at
    raise ProtocolError(f"what begins at byte {start} never ends")


def _skip_space(text: bytes, at: int) -> int:
    match = _SPACE_AT.match(text, at)
    assert match is not None
    return match.end()


def _as_bytes(raw: Json) -> bytes:
    return raw if isinstance(raw, bytes) else bytes(memoryview(raw))
