"""Builds the ScheduledMachine controller: reconciler, sources and metrics, ready for a manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fivespot.api import names
from fivespot.contract import SCHEDULE_PROJECTION
from fivespot.runtime.cache import Informer
from fivespot.runtime.cache.dynamic_informers import DynamicInformers
from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Change, ChangeType, GroupKind, Key, Resource
from fivespot.runtime.reconcile import Controller

from .cluster_api import CLUSTER, MACHINE
from .metrics import MachineMetrics
from .observe import CLUSTER_KIND, MACHINE_KIND, Observer
from .reconciler import CONTROLLER, MachineReconciler
from .settings import MachineSettings
from .sources import (
    CHILDREN,
    INDEX_CLUSTER,
    INDEX_KIND,
    INDEX_SCHEDULE,
    SCHEDULED_MACHINES,
    add_indexes,
    child_changed,
    kept_part_changed,
    own_spec_changed,
    phase_of,
    schedule_changed,
    schedule_value,
)
from .timings import RETRIES, Timings

__all__ = ["build"]


def build(
    context: ManagerContext, timings: Timings | None = None, settings: MachineSettings | None = None
) -> Controller:
    """The controller of ScheduledMachines.

    Static sources are ScheduledMachines, Machines and Clusters; the kinds of schedules and of children are read from
    when the first object names them until the last one that does is gone.
    """
    return _Wiring(context, timings or Timings(), settings or MachineSettings()).controller


class _Wiring:
    def __init__(self, context: ManagerContext, timings: Timings, settings: MachineSettings) -> None:
        cache = context.cache
        self._kinds = cache.kinds
        self._kinds.watch_group(names.PROVIDER_GROUP)
        self._kinds.watch_group(names.CLUSTER_API_GROUP)
        self._machines = cache.informer(SCHEDULED_MACHINES)
        add_indexes(self._machines)
        self._providers = DynamicInformers(cache, SCHEDULE_PROJECTION, self._provider_changed, self._kind_changed)
        self._children = DynamicInformers(cache, CHILDREN, self._child_changed, self._kind_changed)
        self._observer = Observer(self._kinds, self._providers, self._children, capi_version=settings.capi_version)
        metrics = MachineMetrics(context.metrics, self._phases)
        self._reconciler = MachineReconciler(context, self._machines, self._observer, metrics, timings, settings)
        self.controller = context.controller(
            CONTROLLER, self._reconciler, workers=16, backoff=RETRIES, priority=self._reconciler.priority
        )
        self._add_sources(context)

    def _add_sources(self, context: ManagerContext) -> None:
        cache = context.cache

        def open_machines(resource: Resource) -> Informer:
            informer = self._observer.machines = cache.informer(resource, projection=MACHINE)
            return informer

        def open_clusters(resource: Resource) -> Informer:
            informer = self._observer.clusters = cache.informer(resource, projection=CLUSTER)
            return informer

        self.controller.watches(self._machines, predicate=own_spec_changed)
        self._machines.subscribe(self._close_unnamed)
        self.controller.watches_kind(
            self._kinds,
            MACHINE_KIND,
            open_machines,
            self._by_name,
            predicate=kept_part_changed,
            # B2.1: what is written at one version is read at the same one, also when Cluster API is upgraded meanwhile.
            version=self._observer.machine_version,
            on_change=self._run_all,
        )
        self.controller.watches_kind(
            self._kinds,
            CLUSTER_KIND,
            open_clusters,
            self._by_cluster,
            predicate=kept_part_changed,
            on_change=self._run_all,
        )
        self._kinds.subscribe(self._group_changed)

    # Mappers -----------------------------------------------------------------------------------------------------

    def _by_name(self, change: Change) -> Iterable[Key]:
        # Children have the name of their ScheduledMachine, and a foreign object of that name matters as well.
        return (change.key,) if self._machines.get(change.key) is not None else ()

    def _by_cluster(self, change: Change) -> Iterable[Key]:
        return self._machines.keys_by_index(INDEX_CLUSTER, f"{change.key.namespace}/{change.key.name}")

    def _provider_changed(self, group_kind: GroupKind, change: Change) -> None:
        if schedule_changed(change):
            value = schedule_value(change.key.namespace, group_kind.kind, change.key.name)
            for key in self._machines.keys_by_index(INDEX_SCHEDULE, value):
                self.controller.enqueue(key)

    def _child_changed(self, _: GroupKind, change: Change) -> None:
        if child_changed(change):
            for key in self._by_name(change):
                self.controller.enqueue(key)

    # Kinds that come and go --------------------------------------------------------------------------------------

    def _kind_changed(self, group_kind: GroupKind) -> None:
        for key in self._machines.keys_by_index(INDEX_KIND, str(group_kind)):
            self.controller.enqueue(key)

    def _group_changed(self, group: str) -> None:
        self._providers.refresh(group)
        self._children.refresh(group)
        if group == names.CLUSTER_API_GROUP:
            self._run_all()
        for group_kind, before in self._observer.looked_up(group):
            if self._kinds.lookup(group_kind) != before:
                self._observer.forget_kind(group_kind)
                self._kind_changed(group_kind)

    def _run_all(self) -> None:
        """Cluster API came, went, or was read: that decides for every machine, also for one that has no Machine yet."""
        for obj in self._machines.list():
            self.controller.enqueue(obj.key)

    def _close_unnamed(self, change: Change) -> None:
        """Stop reading kinds that no ScheduledMachine names any more."""
        if change.type is ChangeType.ADDED or (
            change.type is ChangeType.MODIFIED
            and change.old is not None
            and change.old.head.generation == change.head.generation
        ):
            return
        for dynamic in (self._providers, self._children):
            for group_kind in dynamic.kinds():
                if not self._machines.keys_by_index(INDEX_KIND, str(group_kind)):
                    dynamic.close(group_kind)
                    self._observer.forget_kind(group_kind)

    def _phases(self) -> Iterator[str]:
        for obj in self._machines.list():
            yield phase_of(obj)
