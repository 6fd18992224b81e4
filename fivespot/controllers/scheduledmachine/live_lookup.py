"""Asks the API server what the caches cannot tell: whether a Machine is gone, and what is left without a trace."""

from __future__ import annotations

from dataclasses import replace

from fivespot.api import names
from fivespot.runtime.client import Client
from fivespot.runtime.errors import NotFoundError, NotServedError, StaleReadError
from fivespot.runtime.objects import Key, KindState, KindUnknown, Resource, Selector

from .observe import named_kinds
from .ownership import child_is_ours
from .plan import Question
from .protocols import KindFacts
from .snapshot import Child, Slot, Snapshot

__all__ = ["LiveLookup"]


class LiveLookup:
    """Answers the questions of ``decide`` with live requests, and adds the answers to the snapshot."""

    def __init__(self, client: Client, kinds: KindFacts) -> None:
        self._client = client
        self._kinds = kinds
        self._searched: dict[Key, str] = {}

    def searched(self, key: Key, uid: str) -> bool:
        """Whether everything was searched for leftovers of this object, and nothing was found."""
        return self._searched.get(key) == uid

    def nothing_to_find(self, key: Key, uid: str) -> None:
        """The object is new: nothing was ever created for it."""
        self._searched[key] = uid

    def forget(self, key: Key) -> None:
        self._searched.pop(key, None)

    async def answer(self, question: Question, s: Snapshot, machines: Resource | None) -> Snapshot:
        """The snapshot with the answer in it.

        :raises StaleReadError: a cache is behind, or a kind cannot be searched yet; run again.
        :raises ApiError, TransportError: the server did not answer the question.
        """
        if question is Question.MACHINE_GONE:
            return await self._machine_gone(s, machines)
        found = await self._sweep(s)
        known = {(child.group_kind, child.head.uid) for child in s.world.children}
        extra = tuple(child for child in found if (child.group_kind, child.head.uid) not in known)
        if not extra:
            self._searched[Key(s.head.namespace, s.head.name)] = s.head.uid
        world = replace(s.world, children=s.world.children + extra)
        return replace(s, world=world, answers=replace(s.answers, searched=True))

    async def _machine_gone(self, s: Snapshot, machines: Resource | None) -> Snapshot:
        key = Key(s.head.namespace, s.head.name)
        uids = s.unseen_machines([s.stored.machine_uid, *(child.machine_uid for child in s.ours)])
        if machines is None:
            raise StaleReadError(f"read Machine {key}: Machines are not served")
        try:
            found = await self._client.get(machines, key, metadata_only=True)
        except NotServedError as error:
            raise StaleReadError(f"{error.request}: Machines are not served") from error
        except NotFoundError:
            pass
        else:
            if found.head.uid in uids:
                raise StaleReadError(f"read Machine {key}: the cache of Machines is behind")
        return replace(s, answers=replace(s.answers, gone=s.answers.gone | uids))

    async def _sweep(self, s: Snapshot) -> list[Child]:
        """B2.3: list by label every kind that a child can have; asked only where status names no children."""
        template = {gk for _, gk, _ in named_kinds(s.spec, s.stored, None)}
        selector = Selector.labels({names.LABEL_MACHINE: s.head.name})
        found: list[Child] = []
        for slot, groups in (
            (Slot.BOOTSTRAP, names.BOOTSTRAP_GROUPS),
            (Slot.INFRASTRUCTURE, names.INFRASTRUCTURE_GROUPS),
        ):
            for group in groups:
                for state in self._in_group(group, s):
                    if state.namespaced and state.served and state.resource().group_kind not in template:
                        found += await self._list_ours(s, slot, state, selector)
        return found

    def _in_group(self, group: str, s: Snapshot) -> tuple[KindState, ...]:
        self._kinds.watch_group(group)
        states = self._kinds.in_group(group)
        if isinstance(states, KindUnknown):
            # What cannot be searched may hold leftovers; nothing is concluded before it can.
            raise StaleReadError(f"search {group} for what is left of {s.head.name}: {states.why}")
        return states

    async def _list_ours(self, s: Snapshot, slot: Slot, state: KindState, selector: Selector) -> list[Child]:
        resource = state.resource()
        # A kind that is not served (any more) fails the run: its objects may be there still.
        objects = await self._client.list(resource, s.head.namespace, selector=selector, metadata_only=True)
        return [
            Child(slot, resource, found.head, ours=True)
            for found in objects
            if child_is_ours(
                found.head, resource.group_kind, owner_uid=s.head.uid, owner_name=s.head.name, machine=s.machine
            )
        ]
