"""What the answers to our own writes say about the state of the server."""

from __future__ import annotations

import enum
from typing import Protocol

import msgspec

from fivespot.runtime.objects import Key, Object, Resource

__all__ = ["Propagation", "WriteObserver", "is_kind", "is_removed"]


class Propagation(enum.Enum):
    """What happens to the dependents of a deleted object (``propagationPolicy`` of DeleteOptions)."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class WriteObserver(Protocol):
    """Told of every answered write before its caller is, so that caches know what this process did.

    Called synchronously; must not raise. Never called for dry runs.
    """

    def wrote(self, resource: Resource, obj: Object) -> None:
        """The server answered a write with this state, which may be a deleting one."""
        ...

    def removed(self, resource: Resource, key: Key, uid: str) -> None:
        """The object of that uid does not exist any more."""
        ...


class _Fields(msgspec.Struct, gc=False, rename="camel"):
    deletion_grace_period_seconds: int | None = None


class _Shape(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Fields = msgspec.field(default_factory=_Fields)


_decoder = msgspec.json.Decoder(_Shape)


def is_removed(obj: Object) -> bool:
    """Whether the answer to an update shows an object that the update itself removed.

    A deleting object goes with its last finalizer, unless a grace period is still running (API concepts,
    "Resource deletion"); the answer then carries the version before.
    """
    if not obj.head.deleting or obj.head.finalizers:
        return False
    return not obj.decode_as(_decoder).metadata.deletion_grace_period_seconds


def is_kind(obj: Object, resource: Resource) -> bool:
    """Whether an answer is an object of the resource; some subresources (``scale``) answer with another kind."""
    return obj.decode_as(_decoder).kind == resource.kind
