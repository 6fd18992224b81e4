"""An API object as the store keeps it, and a change of one."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

import msgspec

from fivespot.runtime.errors import ProtocolError

from .head import Head, decode_head
from .resource import Key

__all__ = ["Change", "ChangeType", "Object"]

T = TypeVar("T")


class Object(msgspec.Struct, gc=False, eq=False):
    """Exact JSON bytes plus a typed head.

    The bytes are never decoded unless somebody asks, and every :meth:`decode` makes a private copy, so no
    reader can corrupt what others read.
    """

    raw: bytes
    head: Head

    @classmethod
    def parse(cls, raw: bytes, annotations: frozenset[str] | None = None) -> Object:
        """Read an object from its JSON.

        :raises ProtocolError: it has no usable metadata.
        """
        return cls(raw, decode_head(raw, annotations))

    @property
    def key(self) -> Key:
        return Key(self.head.namespace, self.head.name)

    def decode(self) -> dict[str, Any]:
        """The object as a new dict that the caller owns."""
        value: dict[str, Any] = msgspec.json.decode(self.raw)
        return value

    def decode_as(self, decoder: msgspec.json.Decoder[T]) -> T:
        """The object as a msgspec Struct.

        :raises ProtocolError: a field has another type than the Struct says; the text holds the path.
        """
        try:
            return decoder.decode(self.raw)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"{self.key}: {error}") from error

    def __repr__(self) -> str:
        return f"Object({self.key!s}@{self.head.version})"


class ChangeType(enum.Enum):
    """What happened to an object as one informer sees it (its selector included)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, gc=False, eq=False):
    """One change as handlers, predicates and mappers receive it.

    :param old: the state before, None for ADDED.
    :param object: the state now; for DELETED the last known one.
    :param final_state_unknown: a DELETED that a list or a lost connection revealed, so ``object`` may be older
        than the last state that existed.
    :param own: it comes from the answer to a write of this process, not from the watch.
    """

    type: ChangeType
    object: Object
    old: Object | None = None
    final_state_unknown: bool = False
    own: bool = False
    _body: dict[str, Any] | None = None

    @property
    def key(self) -> Key:
        return self.object.key

    @property
    def head(self) -> Head:
        return self.object.head

    @property
    def body(self) -> dict[str, Any]:
        """The decoded object, decoded at most once for all who share this change. Treat it as read-only."""
        if self._body is None:
            self._body = self.object.decode()
        return self._body

    def __repr__(self) -> str:
        return f"Change({self.type.value} {self.key!s}@{self.head.version})"
