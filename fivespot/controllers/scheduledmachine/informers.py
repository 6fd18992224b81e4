"""The informers that evaluations read: the fixed ones, and those of the kinds that ScheduledMachines name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from fivespot.api import names
from fivespot.contract import SCHEDULE_PROJECTION
from fivespot.runtime import (
    Cache,
    Change,
    ChangeType,
    Controller,
    GroupKind,
    Informer,
    Key,
    KindAbsent,
    KindUnknown,
    Resource,
)
from fivespot.runtime.cache.dynamic_informers import DynamicInformers, Opened
from fivespot.runtime.objects import KindState

from .cluster_api import CLUSTER, MACHINE
from .observe import CLUSTER_KIND, MACHINE_KIND, machine_version
from .protocols import NamedKind
from .sources import (
    CHILDREN,
    INDEX_CLUSTER,
    INDEX_KIND,
    INDEX_SCHEDULE,
    SCHEDULED_MACHINES,
    add_indexes,
    child_changed,
    kept_part_changed,
    kinds_of,
    own_spec_changed,
    schedule_changed,
    schedule_value,
)

__all__ = ["MachineInformers"]

KindInfo = KindState | KindAbsent | KindUnknown


class MachineInformers:
    """The inputs of the machine controller, kept current by informers; every change enqueues the machines it concerns.

    ScheduledMachines, Machines and Clusters are read from the start. A kind of schedule or child is read from the
    first ScheduledMachine that names it until the last one that does is gone.

    :param capi_version: the Machine version that the administrator asked for, if any.
    :param enqueue: enqueues a ScheduledMachine.
    """

    def __init__(self, cache: Cache, capi_version: str | None, enqueue: Callable[[Key], None]) -> None:
        self._cache = cache
        self._kinds = cache.kinds
        self._capi_version = capi_version
        self._enqueue = enqueue
        self._kinds.watch_group(names.PROVIDER_GROUP)
        self._kinds.watch_group(names.CLUSTER_API_GROUP)
        self.scheduled_machines: Informer = cache.informer(SCHEDULED_MACHINES)
        add_indexes(self.scheduled_machines)
        self._machines: Informer | None = None
        self._clusters: Informer | None = None
        self._schedules = DynamicInformers(cache, SCHEDULE_PROJECTION, self._schedule_changed, self._kind_changed)
        self._children = DynamicInformers(cache, CHILDREN, self._child_changed, self._kind_changed)
        # The facts of the kinds that decisions rest on; each entry is removed with the last machine that names the
        # kind.
        self._required: dict[GroupKind, KindInfo] = {}

    # What an evaluation reads --------------------------------------------------------------------------------------

    @property
    def machines(self) -> Informer | None:
        return self._machines

    @property
    def clusters(self) -> Informer | None:
        return self._clusters

    def lookup(self, gk: GroupKind) -> KindInfo:
        return self._kinds.lookup(gk)

    def in_group(self, group: str) -> tuple[KindState, ...] | KindUnknown:
        self._kinds.watch_group(group)
        return self._kinds.in_group(group)

    def schedules(self, gk: GroupKind) -> Opened | None:
        return self._schedules.get(gk)

    def children(self, gk: GroupKind) -> Opened | None:
        return self._children.get(gk)

    def require(self, schedule: GroupKind, children: Iterable[NamedKind]) -> None:
        state = self._required[schedule] = self._kinds.lookup(schedule)
        if isinstance(state, KindState) and state.usable and state.namespaced:
            self._schedules.open(schedule, state)
        for named in children:
            self._kinds.watch_group(named.group_kind.group)
            state = self._required[named.group_kind] = self._kinds.lookup(named.group_kind)
            if isinstance(state, KindState) and state.established and state.served:
                self._children.open(named.group_kind, state, named.version)

    async def complete(self) -> bool:
        """Return False: informers fill by themselves, and the machines that wait for one are enqueued when it has
        synced.
        """
        return False

    def __len__(self) -> int:
        """Return the number of remembered kinds."""
        return len(self._required)

    # Where changes come from ---------------------------------------------------------------------------------------

    def add_sources(self, controller: Controller) -> None:
        """Add the watches that enqueue the machines which a change concerns."""
        controller.watches(self.scheduled_machines, predicate=own_spec_changed)
        self.scheduled_machines.subscribe(self._close_unnamed)
        controller.watches_kind(
            self._kinds,
            MACHINE_KIND,
            self._open_machines,
            self._by_name,
            predicate=kept_part_changed,
            # B2.1: Machines are read at the version at which they are written, also when Cluster API is upgraded.
            version=partial(machine_version, wanted=self._capi_version),
            on_change=self.enqueue_all,
        )
        controller.watches_kind(
            self._kinds,
            CLUSTER_KIND,
            self._open_clusters,
            self._by_cluster,
            predicate=kept_part_changed,
            on_change=self.enqueue_all,
        )
        self._kinds.subscribe(self._group_changed)

    def enqueue_all(self) -> None:
        """Enqueue every machine: Cluster API was installed, removed or listed, or the wall clock was set."""
        for obj in self.scheduled_machines.list():
            self._enqueue(obj.key)

    def _open_machines(self, resource: Resource) -> Informer:
        self._machines = self._cache.informer(resource, projection=MACHINE)
        return self._machines

    def _open_clusters(self, resource: Resource) -> Informer:
        self._clusters = self._cache.informer(resource, projection=CLUSTER)
        return self._clusters

    def _by_name(self, change: Change) -> Iterable[Key]:
        # Children have the name of their ScheduledMachine, and a foreign object of that name matters as well.
        return (change.key,) if self.scheduled_machines.get(change.key) is not None else ()

    def _by_cluster(self, change: Change) -> Iterable[Key]:
        value = f"{change.key.namespace}/{change.key.name}"
        return self.scheduled_machines.keys_by_index(INDEX_CLUSTER, value)

    def _schedule_changed(self, group_kind: GroupKind, change: Change) -> None:
        if schedule_changed(change):
            value = schedule_value(change.key.namespace, group_kind.kind, change.key.name)
            for key in self.scheduled_machines.keys_by_index(INDEX_SCHEDULE, value):
                self._enqueue(key)

    def _child_changed(self, _: GroupKind, change: Change) -> None:
        if child_changed(change):
            for key in self._by_name(change):
                self._enqueue(key)

    # Kinds that come and go --------------------------------------------------------------------------------------

    def _kind_changed(self, group_kind: GroupKind) -> None:
        for key in self.scheduled_machines.keys_by_index(INDEX_KIND, str(group_kind)):
            self._enqueue(key)

    def _group_changed(self, group: str) -> None:
        self._schedules.refresh(group)
        self._children.refresh(group)
        if group == names.CLUSTER_API_GROUP:
            self.enqueue_all()
        for group_kind, before in list(self._required.items()):
            if group_kind.group == group and self._kinds.lookup(group_kind) != before:
                del self._required[group_kind]
                self._kind_changed(group_kind)

    def _close_unnamed(self, change: Change) -> None:
        """Stop reading kinds that no ScheduledMachine names any more."""
        old = change.old if change.type is ChangeType.MODIFIED else change.object
        if change.type is ChangeType.ADDED or old is None:
            return
        if change.type is ChangeType.MODIFIED and old.head.generation == change.head.generation:
            return
        self._close({*self._schedules.kinds(), *self._children.kinds(), *kinds_of(old)})

    def close_unnamed(self) -> None:
        """Forget kinds that do not exist and that no ScheduledMachine names any more.

        A run may be under way while its object is deleted or edited, and requires the kinds of the old one again.
        """
        opened = {*self._schedules.kinds(), *self._children.kinds()}
        self._close([group_kind for group_kind in self._required if group_kind not in opened])

    def _close(self, kinds: Iterable[GroupKind]) -> None:
        for group_kind in kinds:
            if not self.scheduled_machines.keys_by_index(INDEX_KIND, str(group_kind)):
                self._schedules.close(group_kind)
                self._children.close(group_kind)
                self._required.pop(group_kind, None)
