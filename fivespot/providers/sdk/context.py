"""What a decision may look at besides its own spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from fivespot.contract import Reading, Reference
from fivespot.runtime.objects import Key, Resource

__all__ = ["Context", "Look", "Nothing"]


class Look(Protocol):
    """Where a context gets other objects from. All answers come from caches, without waiting."""

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Reading: ...

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None: ...


class Nothing:
    """No other objects: for providers that declare none, and for tests."""

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Reading:
        raise ValueError(f"{reference} cannot be read: declare SCHEDULES in the provider's reads")

    def get(self, resource: Resource, key: Key, /) -> Mapping[str, Any] | None:
        raise ValueError(f"{resource} cannot be read: declare it in the provider's reads")


@dataclass(frozen=True, slots=True)
class Context:
    """One object at the moment of its decision.

    :ivar active: what this provider last decided, overrides left aside; None when that is not known (the first
        decision, or the first one of this process while an override is in force).
    :ivar since: when that last changed; None when ``active`` is.
    """

    namespace: str
    name: str
    uid: str = ""
    generation: int = 0
    active: bool | None = None
    since: datetime | None = None
    look: Look = field(default_factory=Nothing)

    def schedule(self, kind: str, name: str, *, field: str = "the reference") -> Reading:
        """The verdict of another schedule of the namespace, by the rules of the provider contract.

        :param field: how messages call the field that names it, such as ``spec.base``.
        :returns: resolved; unresolved, for a reason that lies with the other; or unreadable, which says nothing of it.
        :raises ValueError: the provider does not declare that it reads schedules.
        """
        return self.look.schedule(self.namespace, Reference(kind, name), field)

    def get(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        """An object of the namespace, None when there is none. Treat it as read-only.

        :raises NoVerdict: objects of that resource cannot be read now; let it pass.
        :raises ValueError: the provider does not declare that it reads them.
        """
        return self.look.get(resource, Key(self.namespace, name))
