"""Asks the API server what the caches cannot tell: whether a Machine is gone, and which leftovers exist."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivespot.api import names
from fivespot.runtime import ApiError, Client, Key, KindUnknown, NotFoundError, Resource, Selector, TransportError
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import KindState

from .observe import named_kinds
from .ownership import child_is_ours
from .plan import Question
from .protocols import Inputs
from .snapshot import Answers, Child, Slot, Snapshot

__all__ = ["LiveLookup", "Unanswered"]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that could not be answered.

    :param why: the reason, for people.
    :param error: the failure of a request; None where a cache or a definition is behind, which passes by itself.
    """

    why: str
    error: Exception | None = None


class LiveLookup:
    """Answers the questions of ``decide`` with live requests."""

    def __init__(self, client: Client, inputs: Inputs) -> None:
        self._client = client
        self._inputs = inputs
        self._nothing_left: dict[Key, str] = {}

    def nothing_left(self, key: Key, uid: str) -> bool:
        """Whether every kind was searched for leftovers of this object, and none was found."""
        return self._nothing_left.get(key) == uid

    def is_new(self, key: Key, uid: str) -> None:
        """Note that the object is new, so nothing was created for it."""
        self._nothing_left[key] = uid

    def forget(self, key: Key) -> None:
        self._nothing_left.pop(key, None)

    def forget_all(self) -> None:
        """Forget all results: another process may have created something since."""
        self._nothing_left.clear()

    async def answer(self, question: Question, s: Snapshot, machines: Resource | None) -> Answers | Unanswered:
        """Add this answer to those of the snapshot.

        :param machines: the resource of Machines; None where they are not served.
        """
        try:
            if question is Question.MACHINE_GONE:
                return await self._machine_gone(s, machines)
            return await self._leftovers(s)
        except (ApiError, TransportError, ProtocolError) as error:
            return Unanswered(str(error), error)

    async def _machine_gone(self, s: Snapshot, machines: Resource | None) -> Answers | Unanswered:
        key = Key(s.head.namespace, s.head.name)
        uids = s.unseen_machines([s.stored.machine_uid, *(child.machine_uid for child in s.ours)])
        if machines is None:
            return Unanswered("Machines are not served")
        try:
            found = await self._client.get(machines, key, metadata_only=True)
        except NotFoundError:
            pass
        else:
            if found.head.uid in uids:
                return Unanswered("the cache of Machines is behind")
        return replace(s.answers, gone=s.answers.gone | uids)

    async def _leftovers(self, s: Snapshot) -> Answers | Unanswered:
        """B2.3: list by label every kind that a child can have; asked only where status names no children."""
        known = {named.group_kind for named in named_kinds(s.spec, s.stored, None)}
        selector = Selector.labels({names.LABEL_MACHINE: s.head.name})
        found: list[Child] = []
        for slot, groups in (
            (Slot.BOOTSTRAP, names.BOOTSTRAP_GROUPS),
            (Slot.INFRASTRUCTURE, names.INFRASTRUCTURE_GROUPS),
        ):
            for group in groups:
                states = self._inputs.in_group(group)
                if isinstance(states, KindUnknown):
                    # A kind that cannot be searched may have leftovers.
                    return Unanswered(f"{group} cannot be searched for leftovers: {states.why}")
                for state in states:
                    if state.namespaced and state.served and state.resource().group_kind not in known:
                        found += await self._list_ours(s, slot, state, selector)
        seen = {(child.group_kind, child.head.uid) for child in s.world.children}
        extra = tuple(child for child in found if (child.group_kind, child.head.uid) not in seen)
        if not extra:
            self._nothing_left[Key(s.head.namespace, s.head.name)] = s.head.uid
        return replace(s.answers, searched=True, found=extra)

    async def _list_ours(self, s: Snapshot, slot: Slot, state: KindState, selector: Selector) -> list[Child]:
        resource = state.resource()
        objects = await self._client.list(resource, s.head.namespace, selector=selector, metadata_only=True)
        return [
            Child(slot, resource, found.head, ours=True)
            for found in objects
            if child_is_ours(
                found.head,
                resource.group_kind,
                owner_uid=s.head.uid,
                owner_name=s.head.name,
                machine=s.world.machine,
            )
        ]
