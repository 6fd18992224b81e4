"""Finds and deletes children whose ScheduledMachine is gone (contract B5.5).

A process that was suspended while it created them can leave some behind: they are created after everything was
removed, and nothing owns them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Final

import structlog

from fivespot.api import names
from fivespot.runtime import ApiError, Client, Clock, Head, Key, NotFoundError, Resource, Selector, TransportError
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import Exists, KindState

from .cluster_api import read_cluster
from .instants import read_instant
from .observe import MACHINE_KIND
from .protocols import Inputs, ObjectReader
from .sources import SCHEDULED_MACHINES
from .timings import Timings

__all__ = ["OrphanSearch"]

_SLICE: Final = 500
"""The number of cached objects that are examined before other tasks run."""
_OURS: Final = Selector(Exists(names.LABEL_MACHINE))

_log = structlog.get_logger("fivespot.scheduledmachine")


class OrphanSearch:
    """Searches all kinds that a child can have: in the caches where there is one, else by a list.

    An object is deleted only if it carries our uid annotation, nothing owns it (or only the ScheduledMachine that is
    gone), it is not new, nothing about it is paused, and the API server itself says that neither the ScheduledMachine
    of that uid nor a Machine of that name exists.

    :param namespaces: the namespaces to look in; None for all.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        inputs: Inputs,
        scheduled_machines: ObjectReader,
        timings: Timings,
        namespaces: tuple[str, ...] | None,
        *,
        dry_run: bool,
    ) -> None:
        self._client = client
        self._clock = clock
        self._inputs = inputs
        self._scheduled_machines = scheduled_machines
        self._timings = timings
        self._namespaces = namespaces
        self._dry_run = dry_run

    async def remove(self) -> int:
        """Delete the orphans that are found, and return their number."""
        if not self._scheduled_machines.synced:
            return 0
        removed = 0
        async for resource, head in self._candidates():
            try:
                if await self._is_orphan(resource, head):
                    removed += await self._delete(resource, head)
            except (ApiError, TransportError, ProtocolError) as error:
                # The next search judges it again.
                _log.warning("cannot judge an orphan", resource=str(resource), object=str(_key(head)), error=str(error))
        return removed

    # -- looking -------------------------------------------------------------------------------------------------

    async def _candidates(self) -> AsyncIterator[tuple[Resource, Head]]:
        machines = self._machines()
        for state in (*self._kinds(), *((machines,) if machines is not None else ())):
            resource = state.resource()
            try:
                heads = await self._heads(resource)
            except (ApiError, TransportError, ProtocolError) as error:
                _log.warning("cannot search for orphans", resource=str(resource), error=str(error))
                continue
            for number, head in enumerate(heads):
                if number % _SLICE == _SLICE - 1:
                    await asyncio.sleep(0)
                if self._may_be_orphan(resource, head):
                    yield resource, head

    def _kinds(self) -> Iterable[KindState]:
        for group in sorted({*names.BOOTSTRAP_GROUPS, *names.INFRASTRUCTURE_GROUPS}):
            states = self._inputs.in_group(group)
            if isinstance(states, tuple):
                yield from (state for state in states if state.namespaced and state.established and state.served)

    def _machines(self) -> KindState | None:
        state = self._inputs.lookup(MACHINE_KIND)
        return state if isinstance(state, KindState) and state.usable else None

    async def _heads(self, resource: Resource) -> list[Head]:
        if resource.group_kind == MACHINE_KIND:
            cached = self._inputs.machines
        else:
            opened = self._inputs.children(resource.group_kind)
            cached = opened.informer if opened is not None else None
        if cached is not None and cached.synced:
            return [obj.head for obj in cached.list()]
        found: list[Head] = []
        for namespace in self._namespaces or (None,):
            listed = await self._client.list(resource, namespace, selector=_OURS, metadata_only=True)
            found += [obj.head for obj in listed]
        return found

    def _may_be_orphan(self, resource: Resource, head: Head) -> bool:
        """Judge by the object itself and the caches."""
        uid = head.annotations.get(names.ANNOTATION_UID)
        if not uid or head.deleting or head.labels.get(names.LABEL_MACHINE) != head.name:
            return False
        if resource.group_kind == MACHINE_KIND:
            if [owner.uid for owner in head.owners] != [uid]:
                return False
        elif head.owners:
            # The owner decides about what a Machine owns.
            return False
        created = read_instant(head.creation_timestamp)
        if created is None or self._clock.now() - created < timedelta(seconds=self._timings.orphan_age):
            return False
        machine = self._scheduled_machines.get(_key(head))
        if machine is not None and (machine.head.uid == uid or names.ANNOTATION_PAUSED in machine.head.annotations):
            return False
        return not self._paused(head)

    def _paused(self, head: Head) -> bool:
        """B6.2, B6.3: a paused Cluster may be on its way to another management cluster."""
        if names.ANNOTATION_PAUSED in head.annotations:
            return True
        clusters = self._inputs.clusters
        found = clusters.get(Key(head.namespace, head.labels.get(names.LABEL_CLUSTER, ""))) if clusters else None
        return found is not None and read_cluster(found).paused

    # -- confirming ----------------------------------------------------------------------------------------------

    async def _is_orphan(self, resource: Resource, head: Head) -> bool:
        """Ask the API server, because a cache may be behind."""
        owner = await self._live(SCHEDULED_MACHINES, _key(head))
        if owner is not None and owner.uid == head.annotations[names.ANNOTATION_UID]:
            return False
        machines = self._machines()
        if resource.group_kind == MACHINE_KIND or machines is None:
            return True
        # A Machine of that name may use the object.
        return await self._live(machines.resource(), _key(head)) is None

    async def _live(self, resource: Resource, key: Key) -> Head | None:
        try:
            return (await self._client.get(resource, key, metadata_only=True)).head
        except NotFoundError:
            return None

    async def _delete(self, resource: Resource, head: Head) -> int:
        _log.warning(
            "deleting an object whose ScheduledMachine is gone",
            resource=str(resource),
            object=str(_key(head)),
            uid=head.uid,
            dry_run=self._dry_run,
        )
        if self._dry_run:
            return 0
        await self._client.delete(resource, _key(head), uid=head.uid, version=head.version)
        return 1


def _key(head: Head) -> Key:
    return Key(head.namespace, head.name)
