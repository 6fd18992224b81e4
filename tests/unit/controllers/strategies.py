"""Any snapshot at all: every combination of what a ScheduledMachine can say, remember and find around it.

The parts come from pools that are drawn once, by a fixed seed, and each snapshot is one choice of parts. So thousands
of snapshots take seconds, the first part of a pool is the plainest, and a failure shrinks towards it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st

from fivespot.api import Phase, names
from fivespot.contract import Display, Resolution, Resolved, Unreadable, Unresolved
from fivespot.contract.resolution import UNRESOLVED_REASONS
from fivespot.controllers.scheduledmachine.children import EXCLUDE_DRAIN, EXCLUDE_VOLUMES
from fivespot.controllers.scheduledmachine.cluster_api import ClusterApi, ClusterView, Known, MachineView
from fivespot.controllers.scheduledmachine.snapshot import Answers, Child, Refusal, Slot, Snapshot, TemplateState, World
from fivespot.controllers.scheduledmachine.spec import SpecView
from fivespot.controllers.scheduledmachine.stored_status import StoredStatus
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import Head, OwnerReference
from fivespot.runtime.objects import rfc3339
from unit.controllers.build import (
    BOOTSTRAP,
    CAPI,
    HASH,
    HOURS,
    INFRASTRUCTURE,
    NO_CAPI,
    NOW,
    OLD_INFRASTRUCTURE,
    OTHER,
    RESOURCES,
    UNKNOWN_CAPI,
    child,
    controller,
    head,
    machine,
    machine_ref,
    ref,
    spec,
    stored_status,
)

T = TypeVar("T")
_rng = random.Random(20261130)
_SIZE = 400

# Offsets meet the limits of the contract (grace, 10 and 20 min, a step of the clock) to the second, or miss them.
_OFFSETS = (0.0, 1.0, 10.0, 59.0, 60.0, 299.0, 300.0, 600.0, 1200.0, 86400.0, 0.4, -1.0, -86400.0)
_GARBAGE = ("", "soon", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


def _one(*values: T) -> T:
    return _rng.choice(values)


def _maybe(likely: float = 0.5) -> bool:
    return _rng.random() < likely


def _stamp() -> str:
    return _one(*_GARBAGE) if _maybe(0.1) else rfc3339(NOW - timedelta(seconds=_one(*_OFFSETS)))


def _some(**values: Callable[[], Any]) -> dict[str, Any]:
    """Each of the fields, or not."""
    return {name: value() for name, value in values.items() if _maybe()}


def _pool(plainest: T, draw: Callable[[], T], size: int = _SIZE) -> st.SearchStrategy[T]:
    return st.sampled_from([plainest, *(draw() for _ in range(size))])


def _display() -> Display:
    return Display(
        _one("", "WindowOpen"), _one("", "until 17:00"), _one(None, 4), _one(None, 3), _one("", "2026-11-30T06:00:00Z")
    )


def _resolution() -> Resolution:
    readings: list[Resolution] = [
        Resolved(_maybe(), _display()),
        Unresolved(_one(*UNRESOLVED_REASONS), _one("why", "x" * 2000), _display()),
        Unreadable(_one("forbidden", "503")),
    ]
    return _one(*readings)


def _cluster() -> ClusterView:
    return ClusterView(
        _one(Known.YES, Known.YES, Known.NO, Known.UNKNOWN), paused=_maybe(0.15), deleting=_maybe(0.2), why="why"
    )


def _machine() -> MachineView | None:
    if _maybe(0.35):
        return None
    annotations = {
        names.ANNOTATION_SCHEDULE_REF: str(_one(HOURS, HOURS, OTHER)),
        names.ANNOTATION_TEMPLATE_HASH: _one(HASH, HASH, "older"),
    }
    annotations = {name: value for name, value in annotations.items() if _maybe(0.8)}
    annotations |= {name: "" for name in (EXCLUDE_DRAIN, EXCLUDE_VOLUMES) if _maybe(0.3)}
    annotations |= {name: "" for name in (names.ANNOTATION_PAUSED,) if _maybe(0.1)}
    return machine(
        uid=_one("m-1", "m-2"),
        ours=_maybe(0.85),
        deleting=_maybe(0.3),
        annotations=annotations,
        labels=_one({}, {names.LABEL_MACHINE: "web-1"}, {names.LABEL_MACHINE: "web-1"}),
        ready=_maybe(),
        ready_since=_one(None, NOW - timedelta(seconds=_one(*_OFFSETS))),
        ready_reason=_one("", "NotReady"),
        deleting_message=_one("", "draining"),
        remediate=_maybe(0.2),
        has_drain_timeout=_maybe(),
        node=_one("", "node-1"),
    )


def _child() -> Child:
    slot = _one(*Slot)
    owner = _one(None, None, controller("Machine", "m-1"), OwnerReference("v1", "Other", "x", "y"))
    return child(
        slot,
        uid=_one("c-1", "c-2"),
        ours=_maybe(0.7),
        deleting=_maybe(0.3),
        owner=owner,
        made_from=_one(HASH, HASH, "", "older"),
        resource=OLD_INFRASTRUCTURE if slot is Slot.INFRASTRUCTURE and _maybe(0.3) else RESOURCES[slot],
    )


def _children() -> tuple[Child, ...]:
    """At most one of a kind, as the name allows no more."""
    found = {each.group_kind: each for each in (_child() for _ in range(_one(0, 1, 2, 3)))}
    return tuple(found.values())


def _timeout() -> timedelta:
    return timedelta(seconds=_one(0, 1, 60, 300, 86400))


def _spec() -> SpecView:
    return spec(
        schedule=_one(HOURS, HOURS, OTHER),
        enabled=_maybe(0.8),
        kill_switch=_maybe(0.15),
        grace=_timeout(),
        drain_timeout=_timeout(),
        tainted=_maybe(),
        problems=("spec.x: bad",) if _maybe(0.15) else (),
        unsupported=_one((), ("kata",)),
    )


def _condition(type_: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": _one("True", "False", "Unknown"),
        "reason": _one("Resolved", "ScheduleActive", "ScheduleInactive", "KillSwitchActivated"),
        "message": _one("", "as before"),
        "lastTransitionTime": _stamp() or "garbage",
    }


_TYPES = ("Ready", "SpotScheduleResolved", "Scheduled", "MachineReady", "Reconciling", "Paused", "Theirs")


def _status() -> StoredStatus:
    whose = _one(HOURS, HOURS, OTHER)
    stored = _some(
        phase=lambda: _one(*(phase.value for phase in Phase), "Invented"),
        spotSchedule=lambda: {
            "resolved": _maybe(),
            **_some(active=_maybe, reference=lambda: {"kind": whose.kind, "name": whose.name}),
        },
        machineRef=lambda: machine_ref(_one("m-1", "m-0", "")),
        bootstrapRef=lambda: ref(BOOTSTRAP),
        infrastructureRef=lambda: ref(_one(INFRASTRUCTURE, OLD_INFRASTRUCTURE)),
        shutdownRequestedTime=_stamp,
        lastScheduledTime=lambda: rfc3339(NOW),
        replacements=lambda: {"count": _one(0, 1, 2, 40), "lastTime": _stamp(), "uid": _one("m-0", "m-1")},
        conditions=lambda: [_condition(type_) for type_ in _rng.sample(_TYPES, _one(0, 2, 4))],
    )
    return stored_status(stored)


def _refusal() -> Refusal | None:
    if _maybe(0.7):
        return None
    reason = _one("MachineCreationFailed", "MachineDeletionFailed")
    return Refusal("f", _one(1, 5), _one(999.0, 1000.0, 1001.0, 1300.0), reason, "refused", _maybe())


def _head() -> Head:
    annotations = {names.ANNOTATION_PAUSED: ""} if _maybe(0.1) else {}
    return head(deleted=_stamp() if _maybe(0.25) else None, annotations=annotations)


def _answers() -> Answers:
    return Answers(_one(frozenset(), frozenset({"m-1", "m-0"})), searched=_maybe(0.8))


def _world(children_state: tuple[Known, bool], **fields: Any) -> World:
    known, denied = children_state
    return World(children_known=known, children_error=denied, children_why="not listed yet", **fields)


snapshots: st.SearchStrategy[Snapshot] = st.builds(
    Snapshot,
    now=st.sampled_from([NOW, NOW + timedelta(microseconds=1), NOW + timedelta(milliseconds=999)]),
    monotonic=st.just(1000.0),
    head=_pool(head(), _head),
    spec=_pool(spec(), _spec),
    stored=_pool(stored_status(), _status),
    world=st.builds(
        _world,
        resolution=_pool(Resolved(True), _resolution),
        capi=st.sampled_from(
            [
                CAPI,
                CAPI,
                CAPI,
                ClusterApi(Known.YES, "v1beta1"),
                ClusterApi(Known.YES, why="v1alpha4 only"),
                NO_CAPI,
                UNKNOWN_CAPI,
            ]
        ),
        cluster=_pool(ClusterView(Known.YES), _cluster),
        machine=_pool(None, _machine),
        machine_known=_pool(Known.YES, lambda: Known.YES if _maybe(0.9) else Known.UNKNOWN, 40),
        children=_pool((), _children),
        children_state=st.sampled_from(
            [(Known.YES, False)] * 6 + [(Known.UNKNOWN, False), (Known.UNKNOWN, True)],
        ),
        templates=_pool(TemplateState(Known.YES), lambda: TemplateState(_one(*Known, Known.YES), "why"), 40),
    ),
    timings=st.just(Timings()),
    answers=_pool(Answers(searched=True), _answers, 40),
    refusal=_pool(None, _refusal),
    unreadable_for=st.sampled_from([0.0, 29.9, 30.0, 3600.0]),
    fresh=st.sampled_from([False, False, True]),
    force_finalizer=st.booleans(),
)
"""Snapshots without regard to whether they could come about."""
