"""The table of conformance rules: what holds for a conforming provider, and how to fix one that breaks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from . import checks, invariants, surroundings
from .harness import Harness
from .history import Observation
from .invariants import check_histories

__all__ = ["RULES", "Check", "CheckPhase", "ConformanceRule"]

Check: TypeAlias = Callable[[Harness], Awaitable[str | None]]
"""Checks one provider; returns a remark or None, raises ViolationError or InconclusiveError."""


class CheckPhase(Enum):
    """The phase of a run in which a rule is checked; all rules of one phase run concurrently."""

    KIND = "kind"
    LIVE = "live"
    ISOLATION = "isolation"
    """Runs before any other object with an invalid spec exists."""
    INVALID = "invalid"
    RESTART = "restart"
    IDLE = "idle"
    """Nothing else is done meanwhile."""
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class ConformanceRule:
    """A rule of the provider contract.

    :param id: name in messages and in ``--only`` and ``--skip``.
    :param title: statement that holds for a conforming provider.
    :param contract: the rows of the contract that it follows from.
    :param fix: advice for a provider that breaks it.
    :param required: False for a recommendation, whose violation is a warning.
    """

    id: str
    title: str
    contract: str
    fix: str
    phase: CheckPhase
    check: Check
    required: bool = True


def _has(field: str) -> Callable[[Observation], bool]:
    def given(seen: Observation) -> bool:
        return seen.status.get(field) is not None

    return given


def _has_conditions(seen: Observation) -> bool:
    return bool(seen.status.get("conditions"))


RULES: Final = (
    ConformanceRule(
        "kind-served",
        "The kind is namespaced, in the provider group, and served",
        "A1, A7",
        "Install a CustomResourceDefinition of that kind in the group spotschedules.5spot.finos.org with "
        "scope: Namespaced, and wait until it is Established.",
        CheckPhase.KIND,
        checks.check_served,
    ),
    ConformanceRule(
        "status-subresource",
        "Every served version has the status subresource",
        "A3",
        "Add subresources: {status: {}} to every version, so that users who may edit a schedule cannot write its "
        "verdict.",
        CheckPhase.KIND,
        checks.check_status_subresource,
    ),
    ConformanceRule(
        "active-required",
        "The schema requires status.active as a boolean, without a default",
        "C9",
        "Declare status.active as type: boolean, list it under required of status, and give it no default: with one, "
        "a status write without it deletes machines.",
        CheckPhase.KIND,
        checks.check_active_required,
    ),
    ConformanceRule(
        "move-label",
        "clusterctl move moves the objects",
        "B6.3",
        'Put the label clusterctl.cluster.x-k8s.io/move: "" on the CustomResourceDefinition.',
        CheckPhase.KIND,
        checks.check_move_label,
        required=False,
    ),
    ConformanceRule(
        "verdict",
        "Every object gets the verdict that follows from its spec",
        "A3, A4",
        "Write status.active as a boolean for every object, true while the machine should exist. The controller needs "
        "get, list and watch on its kind, and patch (or update) on its status.",
        CheckPhase.LIVE,
        checks.check_verdict,
    ),
    ConformanceRule(
        "ready",
        "With a valid spec, condition Ready is True or absent",
        "A5",
        "Set Ready to True when there is a verdict: any other status means that there is none, and machines stay as "
        "they are.",
        CheckPhase.LIVE,
        checks.check_ready,
    ),
    ConformanceRule(
        "flip",
        "active follows a change of the spec in both directions",
        "A4",
        "Watch your own kind and decide again whenever metadata.generation changes.",
        CheckPhase.LIVE,
        checks.check_flip,
    ),
    ConformanceRule(
        "flip-once",
        "active changes once for each cause, and never without one",
        "A4, C8",
        "Decide from one snapshot of spec and time, and write only the result; do not reset active in between.",
        CheckPhase.HISTORY,
        check_histories(invariants.flip_once),
    ),
    ConformanceRule(
        "boundary",
        "A verdict that ends by the clock ends at the announced instant",
        "C8",
        "Requeue for the instant itself rather than the next poll, and announce it in status.nextTransitionTime.",
        CheckPhase.LIVE,
        checks.check_boundary,
    ),
    ConformanceRule(
        "first-write",
        "The first status write holds the verdict",
        "C9",
        "Write the verdict with the first status; do not begin with false or with conditions alone, and give status no "
        "default.",
        CheckPhase.HISTORY,
        check_histories(invariants.first_write),
    ),
    ConformanceRule(
        "active-in-every-write",
        "No write leaves status without a boolean active",
        "C9",
        "Include active in every status write, also in one that only reports a problem. A write that replaces the "
        "status must carry it over.",
        CheckPhase.HISTORY,
        check_histories(invariants.active_in_every_write),
    ),
    ConformanceRule(
        "conditions",
        "conditions is a list with one entry per type",
        "A13",
        "Write conditions as a list of {type, status, reason, message}: status is True, False or Unknown, reason is "
        "one CamelCase word, and every type occurs once.",
        CheckPhase.HISTORY,
        check_histories(invariants.condition_shape, given=_has_conditions, missing="the provider writes no conditions"),
    ),
    ConformanceRule(
        "transition-time",
        "lastTransitionTime changes on a flip, and only then",
        "C9",
        "Carry lastTransitionTime over from the stored status, and set it to the current time only when active (for a "
        "condition: its status) changes.",
        CheckPhase.HISTORY,
        check_histories(invariants.transition_time),
    ),
    ConformanceRule(
        "observed-generation",
        "observedGeneration is the generation that the verdict was decided for",
        "A11",
        "Set status.observedGeneration to metadata.generation of the object that was decided from, in the same write "
        "as the verdict.",
        CheckPhase.HISTORY,
        check_histories(
            invariants.observed_generation,
            given=_has("observedGeneration"),
            missing="the provider writes no observedGeneration",
        ),
    ),
    ConformanceRule(
        "observed-generation-present",
        "status.observedGeneration is written",
        "A11",
        "Write status.observedGeneration with every verdict: without it nobody can tell whether the verdict belongs to "
        "the current spec.",
        CheckPhase.HISTORY,
        check_histories(invariants.observed_generation_present),
        required=False,
    ),
    ConformanceRule(
        "next-transition",
        "nextTransitionTime is in the future, and nothing flips before it",
        "C8",
        "Set status.nextTransitionTime to the next instant at which active changes, and to null when there is none.",
        CheckPhase.HISTORY,
        check_histories(
            invariants.next_transition,
            given=_has("nextTransitionTime"),
            missing="the provider writes no nextTransitionTime",
        ),
    ),
    ConformanceRule(
        "timestamps",
        "Times are RFC 3339, with an offset",
        "A3",
        "Write times such as 2027-01-31T06:00:00Z, and give their fields format: date-time in the schema.",
        CheckPhase.HISTORY,
        check_histories(invariants.timestamps),
    ),
    ConformanceRule(
        "texts",
        "Reasons and messages have at most 1 KiB, without control characters",
        "A13",
        "Shorten the text: only its beginning is shown on the machine.",
        CheckPhase.HISTORY,
        check_histories(invariants.texts),
        required=False,
    ),
    ConformanceRule(
        "steady",
        "Nothing is written while nothing changes",
        "C9",
        "Compare the status with the stored one, and write only a difference. A status holds no heartbeat and no "
        "time of the last reconcile.",
        CheckPhase.LIVE,
        checks.check_steady,
    ),
    ConformanceRule(
        "write-loop",
        "No write causes the next one",
        "C9",
        "Ignore the events of your own status writes, and write nothing while the verdict stays the same.",
        CheckPhase.LIVE,
        checks.check_write_loop,
    ),
    ConformanceRule(
        "redundant-writes",
        "No request repeats what is stored",
        "C9",
        "Compare the status with the stored one before sending it: the API server drops a write that changes nothing, "
        "but has to answer it.",
        CheckPhase.IDLE,
        surroundings.check_redundant_writes,
        required=False,
    ),
    ConformanceRule(
        "other-kinds",
        "The provider writes no object of another kind",
        "A14",
        "Watch and write your own kind alone: every kind of the group has its own provider, and a status with two "
        "writers flips.",
        CheckPhase.LIVE,
        surroundings.check_other_kinds,
    ),
    ConformanceRule(
        "spec-untouched",
        "The provider writes only status and finalizers",
        "A14",
        "Write through the status subresource, and keep state in the status, not in annotations or spec.",
        CheckPhase.HISTORY,
        check_histories(invariants.spec_untouched),
    ),
    ConformanceRule(
        "foreign-conditions",
        "Conditions of other writers are preserved",
        "API conventions",
        "Read the stored conditions and replace your own types in them, or use server-side apply.",
        CheckPhase.LIVE,
        checks.check_foreign_conditions,
    ),
    ConformanceRule(
        "status-restored",
        "A lost status is written again",
        "C9",
        "Compare with the stored status on every event, not only when metadata.generation changes.",
        CheckPhase.LIVE,
        checks.check_status_restored,
        required=False,
    ),
    ConformanceRule(
        "invalid-spec",
        "An invalid spec is reported",
        "C10",
        "Refuse it by schema or CEL, or set Ready to False with a reason and a message that names the field, and "
        "active to false if there has never been a verdict.",
        CheckPhase.INVALID,
        checks.check_invalid_spec,
    ),
    ConformanceRule(
        "verdict-held",
        "An invalid spec leaves active as it was",
        "C10",
        "Without a verdict, copy active from the stored status: false would delete running machines.",
        CheckPhase.INVALID,
        checks.check_verdict_held,
    ),
    ConformanceRule(
        "recovers",
        "Ready is True again once the spec is corrected",
        "C10",
        "Decide again at every new generation, and keep no state of an earlier failure.",
        CheckPhase.INVALID,
        checks.check_recovers,
    ),
    ConformanceRule(
        "isolation",
        "An invalid object does not affect another",
        "C10",
        "Catch the error of a decision and report it on its own object; it must not end or block the controller.",
        CheckPhase.ISOLATION,
        checks.check_isolation,
    ),
    ConformanceRule(
        "deletion",
        "A deleted object is removed, and not written meanwhile",
        "API conventions",
        "Do nothing for an object with a deletionTimestamp except removing your own finalizer; a provider needs none.",
        CheckPhase.LIVE,
        checks.check_deletion,
    ),
    ConformanceRule(
        "recreated",
        "A recreated object gets its own verdict",
        "C9",
        "Key state by uid, not by name, and drop it when the object is deleted.",
        CheckPhase.LIVE,
        checks.check_recreated,
    ),
    ConformanceRule(
        "restart",
        "A restart changes nothing and writes nothing",
        "C9",
        "Derive the status from spec, stored status and time only, and write only a difference.",
        CheckPhase.RESTART,
        checks.check_restart,
    ),
)
"""All rules, in the order of the report."""
