"""Snapshots of a ScheduledMachine and its world, for tests to vary one thing at a time.

What is built without arguments is the ordinary case: installed and running Cluster API, a Cluster, a schedule that
resolved before, nothing that was made yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from fivespot.api import names
from fivespot.contract import Reference, Resolution, Resolved, Unreadable, Unresolved
from fivespot.controllers.scheduledmachine.cluster_api import ChildRef, ClusterApi, ClusterView, Known, MachineView
from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.plan import Plan, Step
from fivespot.controllers.scheduledmachine.snapshot import Child, Refusal, Slot, Snapshot, World
from fivespot.controllers.scheduledmachine.spec import SpecView, TemplateKind
from fivespot.controllers.scheduledmachine.status import build_status
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus, read_stored_status
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import Head, OwnerReference, Resource, find_condition
from fivespot.runtime.objects import rfc3339

S = TypeVar("S", bound=Step)
Json = dict[str, Any]

NOW = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC)
NAME, NAMESPACE, UID = "web-1", "team-a", "sm-uid"
HASH = "0123456789abcdef"

HOURS = Reference("TimeBasedSpotSchedule", "hours")
OTHER = Reference("CapitalMarketsSchedule", "xnys")

UP, DOWN = Resolved(True), Resolved(False)
LOST = Unresolved("ProviderNotFound", "TimeBasedSpotSchedule/hours does not exist")
BLIND = Unreadable("timebasedspotschedules cannot be listed: 403")

BOOTSTRAP = Resource("bootstrap.cluster.x-k8s.io", "v1beta2", "standinbootstraps", "StandInBootstrap")
INFRASTRUCTURE = Resource("infrastructure.cluster.x-k8s.io", "v1beta2", "standinmachines", "StandInMachine")
OLD_INFRASTRUCTURE = Resource("infrastructure.cluster.x-k8s.io", "v1beta2", "oldmachines", "OldMachine")
RESOURCES = {Slot.BOOTSTRAP: BOOTSTRAP, Slot.INFRASTRUCTURE: INFRASTRUCTURE}

CAPI = ClusterApi(Known.YES, "v1beta2")
NO_CAPI = ClusterApi(Known.NO, why="Cluster API is not installed: install 1.9 or newer")
UNKNOWN_CAPI = ClusterApi(Known.UNKNOWN, why="CustomResourceDefinitions are not read yet")
CLUSTER = ClusterView(Known.YES)
NO_CLUSTER = ClusterView(Known.NO)
UNKNOWN_CLUSTER = ClusterView(Known.UNKNOWN, why="Clusters are not read yet")


def at(**ago: float) -> str:
    """The text of an instant that lies so long before NOW; negative for the future."""
    return rfc3339(NOW - timedelta(**ago))


def spec(**changes: Any) -> SpecView:
    usual = SpecView(
        schedule=HOURS,
        cluster="prod",
        bootstrap=TemplateKind(BOOTSTRAP.group_kind, "v1beta2"),
        infrastructure=TemplateKind(INFRASTRUCTURE.group_kind, "v1beta2"),
        template_hash=HASH,
    )
    return replace(usual, **changes)


def head(*, deleted: str | None = None, annotations: Mapping[str, str] | None = None) -> Head:
    """The head of the ScheduledMachine itself.

    :param deleted: its deletionTimestamp.
    """
    return Head(
        NAMESPACE,
        NAME,
        UID,
        version=7,
        generation=3,
        deletion_timestamp=deleted,
        finalizers=(names.FINALIZER,),
        annotations=dict(annotations or {}),
    )


def controller(
    kind: str, uid: str, *, name: str = NAME, api_version: str = "cluster.x-k8s.io/v1beta2"
) -> OwnerReference:
    return OwnerReference(api_version, kind, name, uid, controller=True, block_owner_deletion=True)


def machine(
    *,
    uid: str = "m-1",
    deleting: bool = False,
    ours: bool = True,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **view: Any,
) -> MachineView:
    """A Machine under our name as this controller makes it.

    :param annotations: in place of those that we set.
    """
    own = {
        names.ANNOTATION_UID: UID,
        names.ANNOTATION_SCHEDULE_REF: str(HOURS),
        names.ANNOTATION_TEMPLATE_HASH: HASH,
    }
    owner = controller("ScheduledMachine", UID if ours else "other-uid", api_version=names.API_VERSION)
    found = Head(
        NAMESPACE,
        NAME,
        uid,
        version=40,
        deletion_timestamp=at(seconds=5) if deleting else None,
        labels=dict(labels if labels is not None else {names.LABEL_MACHINE: NAME}),
        annotations=dict(annotations if annotations is not None else own),
        owners=(owner,),
        creation_timestamp=at(hours=1),
    )
    usual = MachineView(
        found,
        api_version="cluster.x-k8s.io/v1beta2",
        bootstrap=ChildRef(BOOTSTRAP.group_kind, NAME),
        infrastructure=ChildRef(INFRASTRUCTURE.group_kind, NAME),
        has_drain_timeout=True,
    )
    return replace(usual, **view)


def ready_machine(**changes: Any) -> MachineView:
    usual: Json = {"ready": True, "ready_since": NOW - timedelta(minutes=50), "node": "node-1", "provider_id": "x://1"}
    return machine(**(usual | changes))


def child(
    slot: Slot,
    *,
    uid: str = "",
    ours: bool = True,
    deleting: bool = False,
    owner: OwnerReference | None = None,
    made_from: str = HASH,
    resource: Resource | None = None,
) -> Child:
    """A bootstrap or infrastructure object under our name."""
    found = Head(
        NAMESPACE,
        NAME,
        uid or f"{slot.value}-1",
        version=30,
        deletion_timestamp=at(seconds=5) if deleting else None,
        annotations={names.ANNOTATION_UID: UID, names.ANNOTATION_TEMPLATE_HASH: made_from},
        owners=(owner,) if owner is not None else (),
    )
    return Child(slot, resource or RESOURCES[slot], found, ours)


def adopted(uid: str = "m-1") -> tuple[Child, Child]:
    """Both children as they are while the Machine ``uid`` lives."""
    owner = controller("Machine", uid)
    return child(Slot.BOOTSTRAP, owner=owner), child(Slot.INFRASTRUCTURE, owner=owner)


def status(reference: Reference | None = HOURS, *, active: bool | None = True, **more: Any) -> Json:
    """A status as this controller writes it, as far as it is remembered."""
    spot: Json = {"resolved": True, "reason": "Resolved"}
    if active is not None:
        spot["active"] = active
    if reference is not None:
        spot["reference"] = {"kind": reference.kind, "name": reference.name}
    return {"phase": "Pending", "spotSchedule": spot, **more}


def stored_status(stored: Mapping[str, Any] | None = None, **more: Any) -> StoredStatus:
    """Return the parsed stored status, by default the ordinary one with ``more`` fields."""
    return read_stored_status({"status": dict(stored) if stored is not None else status(**more)})


def ref(resource: Resource, uid: str = "") -> Json:
    """A reference as status holds it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": uid or f"{resource.kind}-uid",
    }


def machine_ref(uid: str = "m-1") -> Json:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": uid,
    }


def world(resolution: Resolution = UP, **changes: Any) -> World:
    return replace(World(resolution=resolution, capi=CAPI, cluster=CLUSTER), **changes)


def snapshot(resolution: Resolution = UP, **changes: Any) -> Snapshot:
    """A snapshot at NOW. Fields of the world and of the snapshot are told apart by name."""
    fields = {name: changes.pop(name) for name in tuple(changes) if name in World.__dataclass_fields__}
    if "machine" in fields and "children" not in fields and fields["machine"] is not None:
        fields["children"] = adopted(fields["machine"].head.uid)
    usual = Snapshot(
        now=NOW,
        monotonic=1000.0,
        head=head(),
        spec=spec(),
        stored=stored_status(),
        world=world(resolution, **fields),
        timings=Timings(),
    )
    return replace(usual, **changes)


def refusal(due: float = 1060.0, **changes: Any) -> Refusal:
    """The stored of a refused step, due a minute from NOW."""
    known: Json = {"fingerprint": "f", "attempt": 1, "due": due, "reason": "MachineCreationFailed"}
    return Refusal(**(known | {"message": "quota exceeded", "stalled": False} | changes))


def steps(plan: Plan, kind: type[S]) -> list[S]:
    """The steps of one kind."""
    return [step for step in plan.steps if isinstance(step, kind)]


def after(s: Snapshot, plan: Plan, **changes: Any) -> Snapshot:
    """The snapshot once the plan's report was written, nothing else having changed."""
    return replace(s, stored=stored_status(build_status(s, plan)), **changes)


def judged(s: Snapshot) -> tuple[Plan, Json]:
    """The plan, and the status that it leads to."""
    plan = decide(s)
    return plan, build_status(s, plan)


def condition(stored: Mapping[str, Any], type_: str) -> tuple[str, str] | None:
    """Status and reason of one condition; None when it is absent."""
    found = find_condition(stored.get("conditions"), type_)
    return (found["status"], found["reason"]) if found is not None else None


def entries(*conditions: tuple[str, str, str]) -> list[Json]:
    """Conditions of an hour ago, from (type, status, reason)."""
    return [
        {
            "type": type_,
            "status": state,
            "reason": reason,
            "message": "as before",
            "lastTransitionTime": at(hours=1),
            "observedGeneration": 3,
        }
        for type_, state, reason in conditions
    ]
