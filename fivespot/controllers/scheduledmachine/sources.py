"""Sources of ScheduledMachine keys: the machine itself, its children, its schedule, its Cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from fivespot.api import Phase, names
from fivespot.runtime import Change, ChangeType, GroupKind, Head, Informer, Object, Projection, Resource
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import share

from .observe import named_kinds
from .spec import outline, read_references
from .stored_status import read_stored_children

__all__ = [
    "CHILDREN",
    "CONTROLLER",
    "INDEX_CLUSTER",
    "INDEX_KIND",
    "INDEX_SCHEDULE",
    "SCHEDULED_MACHINES",
    "add_indexes",
    "child_changed",
    "kept_part_changed",
    "kinds_of",
    "own_spec_changed",
    "phase_of",
    "schedule_changed",
    "schedule_value",
    "settled_since",
]

CONTROLLER: Final = "scheduledmachine"
"""The name of the controller, in logs, metrics and on its writes."""
SCHEDULED_MACHINES: Final = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND)

CHILDREN: Final = Projection(
    "child",
    annotations=frozenset(
        {
            names.ANNOTATION_UID,
            names.ANNOTATION_SCHEDULE_REF,
            names.ANNOTATION_TEMPLATE_HASH,
            names.ANNOTATION_PAUSED,
        }
    ),
    metadata_only=True,
)
"""Bootstrap and infrastructure objects, without their bodies, which are not needed and may hold credentials."""

INDEX_SCHEDULE: Final = "schedule"
INDEX_CLUSTER: Final = "cluster"
INDEX_KIND: Final = "kind"


def add_indexes(machines: Informer) -> None:
    """Index ScheduledMachines by what they refer to."""
    machines.add_index(INDEX_SCHEDULE, _by_schedule)
    machines.add_index(INDEX_CLUSTER, _by_cluster)
    machines.add_index(INDEX_KIND, _by_kind)


def schedule_value(namespace: str, kind: str, name: str) -> str:
    return f"{namespace}/{kind}/{name}"


def _by_schedule(change: Change) -> Iterable[str] | None:
    if _same_spec(change):
        return None
    schedule = read_references(outline(change.object)).schedule
    return (share(schedule_value(change.head.namespace, schedule.kind, schedule.name)),)


def _by_cluster(change: Change) -> Iterable[str] | None:
    if _same_spec(change):
        return None
    return (share(f"{change.head.namespace}/{read_references(outline(change.object)).cluster}"),)


def _by_kind(change: Change) -> Iterable[str] | None:
    if change.old is not None and _same_spec(change) and _children(change.old) == _children(change.object):
        return None
    return [share(str(kind)) for kind in kinds_of(change.object)]


def kinds_of(obj: Object) -> list[GroupKind]:
    """Return the kinds of schedules and children that a ScheduledMachine names in spec and status."""
    body = outline(obj)
    spec, stored = read_references(body), read_stored_children(body)
    named = [named.group_kind for named in named_kinds(spec, stored, None)]
    return [GroupKind(names.PROVIDER_GROUP, spec.schedule.kind), *named]


def _same_spec(change: Change) -> bool:
    old = change.old
    return old is not None and old.head.generation == change.head.generation and old.head.uid == change.head.uid


class _Refs(msgspec.Struct, gc=False, rename="camel"):
    bootstrap_ref: msgspec.Raw = msgspec.Raw()
    infrastructure_ref: msgspec.Raw = msgspec.Raw()


class _Named(msgspec.Struct, gc=False):
    status: _Refs | None = None


_named_decoder = msgspec.json.Decoder(_Named)


def _children(obj: Object) -> _Refs:
    """The references to children in status, as bytes, which are compared without being decoded."""
    return obj.decode_as(_named_decoder).status or _Refs()


def own_spec_changed(change: Change) -> bool:
    """Whether a change of a ScheduledMachine needs a run: any but a write of this controller."""
    return (
        change.writer != CONTROLLER or change.type is not ChangeType.MODIFIED or _meta(change.head) != _meta_of(change)
    )


def kept_part_changed(change: Change) -> bool:
    """Whether somebody else changed the kept part of an object, its owners, labels or deletion."""
    if _reported_already(change):
        return False
    old = change.old
    if change.type is not ChangeType.MODIFIED or old is None:
        return True
    return old.raw != change.object.raw or _belongs(old.head) != _belongs(change.head)


def schedule_changed(change: Change) -> bool:
    """Whether a schedule changed, by whichever writer: providers in this process write their verdicts, too."""
    old = change.old
    if change.type is not ChangeType.MODIFIED or old is None:
        return True
    return old.raw != change.object.raw or _meta(old.head) != _meta(change.head)


def child_changed(change: Change) -> bool:
    """Whether somebody else changed the ownership or deletion of an object of which only the metadata is kept."""
    if _reported_already(change):
        return False
    old = change.old
    return change.type is not ChangeType.MODIFIED or old is None or _belongs(old.head) != _belongs(change.head)


def _belongs(head: Head) -> tuple[object, ...]:
    """Return the fields that decide ownership and deletion: not the generation, nor the provider's finalizers."""
    return head.uid, head.deleting, head.labels, head.annotations, head.owners


def _reported_already(change: Change) -> bool:
    """Whether the run that made the change has its result already. A deletion always needs a run."""
    return change.writer == CONTROLLER and change.type is not ChangeType.DELETED


class _Since(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    last_transition_time: str = ""


class _SettledStatus(msgspec.Struct, gc=False):
    phase: str = ""
    conditions: list[_Since] = msgspec.field(default_factory=list)


class _Settled(msgspec.Struct, gc=False):
    status: _SettledStatus | None = None


_settled_decoder = msgspec.json.Decoder(_Settled)


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Phase(msgspec.Struct, gc=False):
    status: _Status | None = None


_phase_decoder = msgspec.json.Decoder(_Phase)


def phase_of(obj: Object) -> str:
    """Return the phase that a ScheduledMachine reports, Pending before its first report."""
    status = obj.decode_as(_phase_decoder).status
    return (status.phase if status is not None else "") or "Pending"


def settled_since(obj: Object) -> str | None:
    """Return the time from which a ScheduledMachine has been down on purpose, by its status; None where it is not."""
    try:
        status = obj.decode_as(_settled_decoder).status
    except ProtocolError:
        return None
    if status is None or status.phase not in (Phase.INACTIVE, Phase.DISABLED):
        return None
    return next((entry.last_transition_time for entry in status.conditions if entry.type == "Ready"), None)


def _meta(head: Head) -> tuple[object, ...]:
    return head.uid, head.generation, head.deleting, head.finalizers, head.labels, head.annotations, head.owners


def _meta_of(change: Change) -> tuple[object, ...]:
    return _meta(change.old.head) if change.old is not None else ()
