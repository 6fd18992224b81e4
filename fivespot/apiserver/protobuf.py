"""Decoding of Kubernetes' protobuf encoding, for the kinds that typed Go clients write.

There is no encoder: clients that send protobuf accept JSON. :mod:`fivespot.apiserver.protobuf_fields` has the messages.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
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

    :param name: in JSON; "" for a struct whose members are the message's own there.
    :param mark: ``+`` for lists, ``%`` for maps, ``*`` for pointers and ``!`` for others whose zero values are kept.
    :param zero: the value of a field that is always shown.
    """

    name: str
    read: Reader
    mark: str
    zero: Any


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


def _message(name: str) -> Reader:
    return lambda raw: _read(raw, _fields(name))


def _numbers(raw: Any) -> dict[int, Any]:
    """The last value of each field."""
    return dict(_wire(raw))


def _texts(raw: Any) -> list[str]:
    """A message with a list of texts, which is a list in JSON."""
    return [_text(value) for number, value in _wire(raw) if number == 1]


def _choice(raw: Any) -> int | str:
    """An integer or a string."""
    found = _numbers(raw)
    return _text(found.get(3, b"")) if found.get(1) else _integer(found.get(2, 0))


_READERS: Final[Mapping[str, Reader]] = {
    "text": _text,
    "int": _integer,
    "flag": _flag,
    "bytes": _bytes,
    "texts": _texts,
    "time": _instant(timestamp),
    "micro": _instant(micro_time),
    "json": _json,
    "choice": _choice,
    "quantity": lambda raw: _text(_numbers(raw).get(1, b"")),
}
_ZERO: Final[Mapping[str, Any]] = {"text": "", "int": 0, "flag": False}
_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("events.k8s.io/v1", "Event"): "EventsEvent",
    **{("v1", kind): kind for kind in ("Namespace", "ConfigMap", "Secret", "ServiceAccount", "Node", "Pod", "Service")},
    **{("v1", kind): kind for kind in ("Event", "Binding", "DeleteOptions")},
    ("apps/v1", "Deployment"): "Deployment",
    ("apps/v1", "ReplicaSet"): "ReplicaSet",
    ("authentication.k8s.io/v1", "TokenRequest"): "TokenRequest",
    ("autoscaling/v1", "Scale"): "Scale",
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): "CertificateSigningRequest",
    ("coordination.k8s.io/v1", "Lease"): "Lease",
    ("policy/v1", "PodDisruptionBudget"): "PodDisruptionBudget",
    ("policy/v1", "Eviction"): "Eviction",
}


@cache
def _messages() -> dict[str, list[str]]:
    """The words of each message, from the table that only bodies in protobuf need."""
    from .protobuf_fields import MESSAGES  # noqa: PLC0415 - not needed by clients that write JSON

    found: dict[str, list[str]] = {}
    words: list[str] = []
    for word in MESSAGES.split():
        if ":" in word:
            words.append(word)
        else:
            words = found[word] = []
    return found


@cache
def _fields(name: str) -> Message:
    """The fields of a message by number."""
    fields = {}
    for word in _messages()[name]:
        number, shown, type_ = word.split(":")
        mark, type_ = (type_[0], type_[1:]) if type_[0] in "*!+%" else ("", type_)
        fields[int(number)] = _Field(
            shown, _READERS.get(type_) or _message(type_), mark, _ZERO.get(type_) if mark == "!" else None
        )
    return fields


def decode_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a body.

    :raises ProtobufError: it is no protobuf, or of a kind that is not known here.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _numbers(body[len(_MAGIC) :])
    type_ = _numbers(envelope.get(1, b""))
    version, kind = _text(type_.get(1, b"")), _text(type_.get(2, b""))
    name = _KINDS.get(("v1", kind) if kind == "DeleteOptions" else (version, kind))
    if name is None:
        raise ProtobufError(f"the embedded API server does not read {version}, Kind={kind} as protobuf")
    return {"apiVersion": version, "kind": kind, **_read(envelope.get(2, b""), _fields(name))}


def _read(raw: Any, fields: Message) -> dict[str, Any]:
    found: dict[str, Any] = {field.name: field.zero for field in fields.values() if field.zero is not None}
    for number, value in _wire(raw):
        field = fields.get(number)
        if field is None:
            continue
        if field.mark == "%":
            pair = _numbers(value)
            found.setdefault(field.name, {})[_text(pair.get(1, b""))] = field.read(pair.get(2, b""))
        elif field.mark == "+":
            found.setdefault(field.name, []).append(field.read(value))
        elif not field.name:
            found |= field.read(value)
        else:
            read = field.read(value)
            if field.mark or read:
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
