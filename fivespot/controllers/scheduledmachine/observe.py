"""Reads one snapshot of the world from the inputs. Nothing here waits, sends a request, or opens an informer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from fivespot.api import names
from fivespot.contract import Reference, Resolution, resolve_schedule
from fivespot.runtime import ForbiddenError, GroupKind, Head, Key, KindAbsent, KindUnknown, Resource
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import KindState

from .cluster_api import ClusterApi, ClusterView, Known, MachineView, read_cluster, read_machine
from .ownership import child_is_ours, machine_is_ours
from .protocols import Inputs, NamedKind
from .snapshot import Child, Slot, TemplateState, World
from .spec import SpecView, TemplateKind
from .stored_status import StoredStatus

__all__ = [
    "CLUSTER_KIND",
    "MACHINE_KIND",
    "SeenMachine",
    "machine_resource",
    "machine_version",
    "named_kinds",
    "observe",
    "see_machine",
    "template_resources",
]

MACHINE_KIND = GroupKind(names.CLUSTER_API_GROUP, "Machine")
CLUSTER_KIND = GroupKind(names.CLUSTER_API_GROUP, "Cluster")
KNOWN_VERSIONS = ("v1beta2", "v1beta1")
CONTRACT_LABELS = tuple(f"{names.CLUSTER_API_GROUP}/{version}" for version in KNOWN_VERSIONS)


def named_kinds(spec: SpecView, stored: StoredStatus, machine: MachineView | None) -> Iterator[NamedKind]:
    """Yield the kinds that children of one ScheduledMachine can have, each once, the template's first.

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
                yield NamedKind(slot, group_kind, version)


class SeenMachine:
    """The cache's view of the Machine that has the name of a ScheduledMachine.

    :param capi: whether Cluster API is installed, and at which version Machines are read.
    :param machine: the Machine, whoever owns it.
    :param known: UNKNOWN while the cache cannot tell whether there is one; ``why`` gives the reason.
    """

    __slots__ = ("capi", "known", "machine", "why")

    def __init__(self, capi: ClusterApi, machine: MachineView | None, known: Known, why: str = "") -> None:
        self.capi = capi
        self.machine = machine
        self.known = known
        self.why = why

    def ours(self, uid: str) -> MachineView | None:
        """Return the Machine if the ScheduledMachine of that uid controls it."""
        found = self.machine
        return found if found is not None and machine_is_ours(found.head, uid) else None


def see_machine(inputs: Inputs, head: Head, capi_version: str | None) -> SeenMachine:
    """Look up the Machine that has the name of a ScheduledMachine.

    :param capi_version: the Machine version that the administrator asked for, if any.
    """
    capi = _cluster_api(inputs, capi_version)
    if capi.installed is Known.NO:
        return SeenMachine(capi, None, Known.NO)
    informer = inputs.machines
    if informer is None:
        return SeenMachine(capi, None, Known.UNKNOWN, "Machines are not read yet")
    if not informer.synced:
        return SeenMachine(
            capi, None, Known.UNKNOWN, f"Machines cannot be read: {informer.status.last_error or 'not listed yet'}"
        )
    found = informer.get(Key(head.namespace, head.name))
    try:
        return SeenMachine(capi, read_machine(found) if found is not None else None, Known.YES)
    except ProtocolError as error:
        return SeenMachine(capi, None, Known.UNKNOWN, str(error))


def observe(inputs: Inputs, head: Head, spec: SpecView, stored: StoredStatus, seen: SeenMachine) -> World:
    """Return the world around one ScheduledMachine."""
    ours = seen.ours(head.uid)
    children: list[Child] = []
    known, why, refused = Known.YES, "", False
    for named in named_kinds(spec, stored, ours):
        referred = named.group_kind in _referred(stored, ours)
        found, doubt, denied = _child(inputs, named, head, seen.machine, referred=referred)
        if doubt:
            known, why, refused = Known.UNKNOWN, doubt, refused or denied
        elif found is not None:
            children.append(found)
    return World(
        resolution=_resolve(inputs, head.namespace, spec.schedule),
        capi=seen.capi,
        cluster=_cluster(inputs, head.namespace, spec.cluster),
        machine=seen.machine,
        machine_known=seen.known,
        machine_why=seen.why,
        children=tuple(children),
        children_known=known,
        children_why=why,
        children_error=refused,
        templates=_templates(inputs, spec),
    )


@dataclass(frozen=True, slots=True)
class _Unread:
    """A kind that is not read yet."""

    synced: bool = False
    last_error: Exception | None = None
    error_since: float | None = None

    @property
    def informer(self) -> Self:
        return self

    @property
    def status(self) -> Self:
        return self

    def get(self, key: Key) -> None:
        return None

    def list(self) -> tuple[()]:
        return ()


_UNREAD = _Unread()


def _resolve(inputs: Inputs, namespace: str, reference: Reference) -> Resolution:
    return resolve_schedule(
        reference,
        group=names.PROVIDER_GROUP,
        namespace=namespace,
        field="spec.schedule",
        lookup=inputs.lookup,
        open_kind=lambda group_kind, _: inputs.schedules(group_kind) or _UNREAD,
    )


def _cluster_api(inputs: Inputs, capi_version: str | None) -> ClusterApi:
    """B2.1: whether Cluster API is installed, and the version of Machines to use."""
    state = inputs.lookup(MACHINE_KIND)
    if isinstance(state, KindUnknown):
        return ClusterApi(Known.UNKNOWN, why=f"the definition of Machines cannot be read: {state.why}")
    if isinstance(state, KindAbsent):
        why = (
            "Cluster API is not installed (there is no CustomResourceDefinition machines.cluster.x-k8s.io): "
            "install Cluster API 1.9 or newer"
        )
        return ClusterApi(Known.NO, why=why)
    version = machine_version(state, capi_version)
    if not version:
        served = ", ".join(state.served) or "none"
        why = f"Machines are served at {served}; this release knows {' and '.join(KNOWN_VERSIONS)}"
        return ClusterApi(Known.YES, why=why)
    return ClusterApi(Known.YES, version)


def _cluster(inputs: Inputs, namespace: str, name: str) -> ClusterView:
    if isinstance(inputs.lookup(CLUSTER_KIND), KindAbsent):
        return ClusterView(Known.NO)
    informer = inputs.clusters
    if informer is None or not informer.synced:
        return ClusterView(Known.UNKNOWN, why="Clusters are not read yet")
    found = informer.get(Key(namespace, name)) if name else None
    return ClusterView(Known.NO) if found is None else read_cluster(found)


def _child(
    inputs: Inputs, named: NamedKind, head: Head, machine: MachineView | None, *, referred: bool
) -> tuple[Child | None, str, bool]:
    """Return the object of one kind that has our name; or the reason why that is not known, and whether reading was
    refused.

    :param referred: the Machine or status names such an object, so it may exist while its kind is not served.
    """
    group_kind = named.group_kind
    state = inputs.lookup(group_kind)
    if isinstance(state, KindUnknown):
        return None, f"the definition of {group_kind} cannot be read: {state.why}", False
    if isinstance(state, KindAbsent):
        return None, "", False
    if not state.established or not state.served:
        return None, f"CustomResourceDefinition {state.crd_name} {state.unusable_reason}" if referred else "", False
    opened = inputs.children(group_kind)
    if opened is None:
        return None, f"{group_kind} objects cannot be read: not listed yet", False
    status = opened.informer.status
    if not status.synced:
        denied = status.error_since is not None and isinstance(status.last_error, ForbiddenError)
        return None, f"{group_kind} objects cannot be read: {status.last_error or 'not listed yet'}", denied
    found = opened.informer.get(Key(head.namespace, head.name))
    if found is None:
        return None, "", False
    ours = child_is_ours(found.head, group_kind, owner_uid=head.uid, owner_name=head.name, machine=machine)
    return Child(named.slot, opened.resource, found.head, ours), "", False


def _templates(inputs: Inputs, spec: SpecView) -> TemplateState:
    for template in (spec.bootstrap, spec.infrastructure):
        if template is not None:
            state = _template(inputs, template)
            if state.usable is not Known.YES:
                return state
    return TemplateState(Known.YES)


def _template(inputs: Inputs, template: TemplateKind) -> TemplateState:
    """B2.4: Cluster API admits a Machine whose kinds it cannot handle, and then never completes its deletion."""
    state = inputs.lookup(template.group_kind)
    kind, group = template.group_kind.kind, template.group_kind.group
    if isinstance(state, KindUnknown):
        return TemplateState(Known.UNKNOWN, f"the definition of {template} cannot be read: {state.why}")
    if isinstance(state, KindAbsent):
        remedy = f"kind {kind} of group {group} is not installed: install its provider, or correct the spec"
        return TemplateState(Known.NO, remedy)
    if not state.usable or not state.namespaced:
        problem = state.unusable_reason or "it is not namespaced"
        return TemplateState(Known.NO, f"CustomResourceDefinition {state.crd_name}: {problem}")
    if template.version not in state.served:
        served = ", ".join(state.served)
        return TemplateState(Known.NO, f"{template}: version {template.version} is not served (served: {served})")
    if not any(label in state.labels for label in CONTRACT_LABELS):
        why = (
            f"CustomResourceDefinition {state.crd_name} carries no Cluster API contract label "
            f"({' or '.join(CONTRACT_LABELS)}): Cluster API cannot handle a Machine that refers to it"
        )
        return TemplateState(Known.NO, why)
    return _told_apart(inputs, state)


def _told_apart(inputs: Inputs, state: KindState) -> TemplateState:
    """The admission policy guesses the resource of a kind. Where that is another kind's, the right to create the other
    kind would pass for this one.
    """
    guess = f"{state.kind.lower()}s"
    if state.plural == guess:
        return TemplateState(Known.YES)
    kinds = inputs.in_group(state.group)
    if isinstance(kinds, KindUnknown):
        return TemplateState(Known.UNKNOWN, f"the kinds of {state.group} cannot be read: {kinds.why}")
    other = next((found for found in kinds if found.plural == guess and found.kind != state.kind), None)
    if other is None:
        return TemplateState(Known.YES)
    why = (
        f"CustomResourceDefinition {state.crd_name}: the admission policy takes kind {state.kind} for {guess}, which "
        f"are of kind {other.kind}; use that kind, or have one of the two renamed"
    )
    return TemplateState(Known.NO, why)


def _referred(stored: StoredStatus, machine: MachineView | None) -> set[GroupKind]:
    refs = (stored.bootstrap, stored.infrastructure, *((machine.bootstrap, machine.infrastructure) if machine else ()))
    return {ref.group_kind for ref in refs if ref is not None}


def machine_version(state: KindState, wanted: str | None) -> str:
    """Return the version of Machines to use: the configured one if served, else the stored one, else the newest
    known.
    """
    if wanted and wanted in state.served:
        return wanted if wanted in KNOWN_VERSIONS else ""
    if state.storage in state.served and state.storage in KNOWN_VERSIONS:
        return state.storage
    return next((version for version in KNOWN_VERSIONS if version in state.served), "")


def machine_resource(inputs: Inputs, version: str) -> Resource | None:
    """Return the resource of Machines at a version; None where that is not served (any more)."""
    state = inputs.lookup(MACHINE_KIND)
    return state.resource(version) if isinstance(state, KindState) and version in state.served else None


def template_resources(inputs: Inputs, spec: SpecView) -> dict[Slot, Resource]:
    """Return the resources of the templates that are served."""
    resources = {}
    for slot, template in ((Slot.BOOTSTRAP, spec.bootstrap), (Slot.INFRASTRUCTURE, spec.infrastructure)):
        if template is not None:
            state = inputs.lookup(template.group_kind)
            if isinstance(state, KindState) and template.version in state.served:
                resources[slot] = state.resource(template.version)
    return resources
