"""Reads one snapshot from the caches. Nothing here waits or asks the server."""

from __future__ import annotations

from collections.abc import Iterator

from fivespot.api import names
from fivespot.contract import KindInfo, Reference, Resolution, resolve_schedule
from fivespot.runtime.objects import GroupKind, Head, Key, KindAbsent, KindState, KindUnknown

from .cluster_api import ClusterApi, ClusterView, Known, MachineView, read_cluster, read_machine
from .ownership import child_is_ours, machine_is_ours
from .protocols import KindFacts, KindReaders, ObjectReader
from .snapshot import Child, Slot, TemplateState, World
from .spec import SpecView, TemplateKind
from .stored_status import StoredStatus

__all__ = ["Observer", "named_kinds"]

MACHINE_KIND = GroupKind(names.CLUSTER_API_GROUP, "Machine")
CLUSTER_KIND = GroupKind(names.CLUSTER_API_GROUP, "Cluster")
KNOWN_VERSIONS = ("v1beta2", "v1beta1")
CONTRACT_LABELS = tuple(f"{names.CLUSTER_API_GROUP}/{version}" for version in KNOWN_VERSIONS)


def named_kinds(
    spec: SpecView, stored: StoredStatus, machine: MachineView | None
) -> Iterator[tuple[Slot, GroupKind, str]]:
    """The kinds that children of one ScheduledMachine can have, each once, the template's first.

    What is to be deleted is never derived from spec alone (contract B2.3), so the Machine's own references and those
    in status count too.
    """
    seen = set()
    for slot, template, refs in (
        (Slot.BOOTSTRAP, spec.bootstrap, (machine.bootstrap if machine else None, stored.bootstrap)),
        (
            Slot.INFRASTRUCTURE,
            spec.infrastructure,
            (machine.infrastructure if machine else None, stored.infrastructure),
        ),
    ):
        candidates = [(template.group_kind, template.version)] if template else []
        candidates += [(ref.group_kind, "") for ref in refs if ref is not None]
        for group_kind, version in candidates:
            if group_kind not in seen:
                seen.add(group_kind)
                yield slot, group_kind, version


class Observer:
    """The caches as the machine controller reads them.

    :param capi_version: the Machine version that the administrator asked for, if any.
    """

    def __init__(
        self,
        kinds: KindFacts,
        providers: KindReaders,
        children: KindReaders,
        *,
        capi_version: str | None = None,
    ) -> None:
        self._kinds = kinds
        self._providers = providers
        self._children = children
        self._capi_version = capi_version
        self._seen: dict[GroupKind, KindInfo] = {}
        self.machines: ObjectReader | None = None
        self.clusters: ObjectReader | None = None

    def looked_up(self, group: str) -> list[tuple[GroupKind, KindInfo]]:
        """The kinds of a group that decisions rested on, and what was known of them then."""
        return [(group_kind, state) for group_kind, state in self._seen.items() if group_kind.group == group]

    def forget_kind(self, group_kind: GroupKind) -> None:
        self._seen.pop(group_kind, None)

    def _lookup(self, group_kind: GroupKind) -> KindInfo:
        state = self._seen[group_kind] = self._kinds.lookup(group_kind)
        return state

    def look(self, head: Head, spec: SpecView, stored: StoredStatus) -> World:
        """Everything around one ScheduledMachine."""
        key = Key(head.namespace, head.name)
        capi = self.cluster_api()
        machine, machine_known = self._machine(key, capi)
        ours = machine if machine is not None and machine_is_ours(machine.head, head.uid) else None
        children: list[Child] = []
        known, why, refused = Known.YES, "", False
        for slot, group_kind, version in named_kinds(spec, stored, ours):
            referred = group_kind in _referred(stored, ours)
            found, doubt, denied = self._child(slot, group_kind, version, head, ours, referred=referred)
            if doubt:
                known, why, refused = Known.UNKNOWN, doubt, refused or denied
            elif found is not None:
                children.append(found)
        return World(
            resolution=self.read_schedule(head.namespace, spec.schedule),
            capi=capi,
            cluster=self._cluster(head.namespace, spec.cluster),
            machine=machine,
            machine_known=machine_known,
            children=tuple(children),
            children_known=known,
            children_why=why,
            children_error=refused,
            templates=self._templates(spec),
        )

    def read_schedule(self, namespace: str, reference: Reference) -> Resolution:
        """The verdict of the schedule, or why there is none (A7, A15)."""
        return resolve_schedule(
            reference,
            group=names.PROVIDER_GROUP,
            namespace=namespace,
            field="spec.schedule",
            lookup=self._lookup,
            open_kind=self._providers.open,
        )

    def cluster_api(self) -> ClusterApi:
        """B2.1: whether Cluster API is there, and the version of Machines to use."""
        state = self._kinds.lookup(MACHINE_KIND)
        if isinstance(state, KindUnknown):
            return ClusterApi(Known.UNKNOWN, why=f"the definition of Machines cannot be read: {state.why}")
        if isinstance(state, KindAbsent):
            why = (
                "Cluster API is not installed (there is no CustomResourceDefinition machines.cluster.x-k8s.io): "
                "install Cluster API 1.9 or newer"
            )
            return ClusterApi(Known.NO, why=why)
        version = self.machine_version(state)
        if not version:
            served = ", ".join(state.served) or "none"
            why = f"Machines are served at {served}; this release knows {' and '.join(KNOWN_VERSIONS)}"
            return ClusterApi(Known.YES, why=why)
        return ClusterApi(Known.YES, version)

    def machine_version(self, state: KindState) -> str:
        """The version at which Machines are read and written, "" if none that is served is known."""
        return machine_version(state, self._capi_version)

    def machine_state(self) -> KindState | None:
        state = self._kinds.lookup(MACHINE_KIND)
        return state if isinstance(state, KindState) else None

    def _machine(self, key: Key, capi: ClusterApi) -> tuple[MachineView | None, Known]:
        if capi.installed is Known.NO:
            return None, Known.NO
        informer = self.machines
        if informer is None or not informer.synced:
            return None, Known.UNKNOWN
        found = informer.get(key)
        return (read_machine(found) if found is not None else None), Known.YES

    def _cluster(self, namespace: str, name: str) -> ClusterView:
        if isinstance(self._kinds.lookup(CLUSTER_KIND), KindAbsent):
            return ClusterView(Known.NO)
        informer = self.clusters
        if informer is None or not informer.synced:
            return ClusterView(Known.UNKNOWN, why="Clusters are not read yet")
        found = informer.get(Key(namespace, name)) if name else None
        return ClusterView(Known.NO) if found is None else read_cluster(found)

    def _child(
        self,
        slot: Slot,
        group_kind: GroupKind,
        version: str,
        head: Head,
        machine: MachineView | None,
        *,
        referred: bool,
    ) -> tuple[Child | None, str, bool]:
        """The object of one kind under our name; or why that is not known, and whether reading was refused.

        :param referred: the Machine or status names such an object, so it may exist while its kind is not served.
        """
        self._kinds.watch_group(group_kind.group)
        state = self._lookup(group_kind)
        if isinstance(state, KindUnknown):
            return None, f"the definition of {group_kind} cannot be read: {state.why}", False
        if isinstance(state, KindAbsent):
            return None, "", False
        if not state.established or not state.served:
            return None, f"CustomResourceDefinition {state.crd_name} {state.problem}" if referred else "", False
        opened = self._children.open(group_kind, state, version)
        status = opened.informer.status
        if not status.synced:
            denied = status.error_since is not None and "403" in status.last_error
            return None, f"{group_kind} objects cannot be read: {status.last_error or 'not listed yet'}", denied
        found = opened.informer.get(Key(head.namespace, head.name))
        if found is None:
            return None, "", False
        ours = child_is_ours(found.head, group_kind, owner_uid=head.uid, owner_name=head.name, machine=machine)
        return Child(slot, opened.resource, found.head, ours), "", False

    def _templates(self, spec: SpecView) -> TemplateState:
        for template in (spec.bootstrap, spec.infrastructure):
            if template is not None:
                state = self._template(template)
                if state.usable is not Known.YES:
                    return state
        return TemplateState(Known.YES)

    def _template(self, template: TemplateKind) -> TemplateState:
        """B2.4: Cluster API admits a Machine whose kinds it cannot handle, and then never lets it go."""
        state = self._lookup(template.group_kind)
        kind, group = template.group_kind.kind, template.group_kind.group
        if isinstance(state, KindUnknown):
            return TemplateState(Known.UNKNOWN, f"the definition of {template} cannot be read: {state.why}")
        if isinstance(state, KindAbsent):
            remedy = f"kind {kind} of group {group} is not installed: install its provider, or correct the spec"
            return TemplateState(Known.NO, remedy)
        if not state.usable or not state.namespaced:
            problem = state.problem or "it is not namespaced"
            return TemplateState(Known.NO, f"CustomResourceDefinition {state.crd_name}: {problem}")
        if template.version not in state.served:
            served = ", ".join(state.served)
            return TemplateState(Known.NO, f"{template}: version {template.version} is not served (served: {served})")
        if not any(label in state.labels for label in CONTRACT_LABELS):
            why = (
                f"CustomResourceDefinition {state.crd_name} carries no Cluster API contract label "
                f"({' or '.join(CONTRACT_LABELS)}): Cluster API could not handle a Machine that refers to it"
            )
            return TemplateState(Known.NO, why)
        return TemplateState(Known.YES)

    def template_resource(self, template: TemplateKind) -> KindState | None:
        state = self._kinds.lookup(template.group_kind)
        return state if isinstance(state, KindState) else None


def _referred(stored: StoredStatus, machine: MachineView | None) -> set[GroupKind]:
    refs = (stored.bootstrap, stored.infrastructure, *((machine.bootstrap, machine.infrastructure) if machine else ()))
    return {ref.group_kind for ref in refs if ref is not None}


def machine_version(state: KindState, wanted: str | None) -> str:
    """The version of Machines to use: what was asked for if served, else what is stored, else the newest known."""
    if wanted and wanted in state.served:
        return wanted if wanted in KNOWN_VERSIONS else ""
    if state.storage in state.served and state.storage in KNOWN_VERSIONS:
        return state.storage
    return next((version for version in KNOWN_VERSIONS if version in state.served), "")
