"""The rules as a table: what a provider owes to those that refer to it, and what to do where it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from . import checks_broken, checks_kind, checks_life, checks_live, invariants
from .harness import Rig
from .history import Observation
from .invariants import over_all

__all__ = ["RULES", "Check", "CheckPhase", "ConformanceRule"]

Check: TypeAlias = (
    "Callable[[Rig], Awaitable[str | None]] | Callable[[Rig], Awaitable[None]] | Callable[[Rig], Awaitable[str]]"
)
"""Looks at one provider; returns a remark or None, raises ViolationError or UnjudgedError."""


class CheckPhase(Enum):
    """When a rule is looked at; those of one phase at the same time."""

    KIND = "kind"
    LIVE = "live"
    ISOLATION = "isolation"
    """Before there is any other object that cannot be followed."""
    BROKEN = "broken"
    RESTART = "restart"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class ConformanceRule:
    """One thing that a provider owes.

    :param id: how messages and ``--skip`` call it.
    :param title: what holds for a provider that keeps it.
    :param contract: the row of the contract that it comes from.
    :param fix: what to do when it is broken.
    :param required: False for what a provider had better do; then a failure is a warning.
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
        "The kind is a namespaced one of the provider group, and is served",
        "A1, A7",
        "Install a CustomResourceDefinition of that kind in the group spotschedules.5spot.finos.org with "
        "scope: Namespaced, and wait until it is Established.",
        CheckPhase.KIND,
        checks_kind.served,
    ),
    ConformanceRule(
        "status-subresource",
        "Every served version has the status subresource",
        "A3",
        "Add subresources: {status: {}} to every version, so that who may edit a schedule cannot decide for it.",
        CheckPhase.KIND,
        checks_kind.status_is_apart,
    ),
    ConformanceRule(
        "active-required",
        "The schema requires status.active as a boolean, without a default",
        "C9",
        "Declare status.active as type: boolean, list it under required of status, and give it no default: with one, "
        "a status write that leaves it out says that machines are to go.",
        CheckPhase.KIND,
        checks_kind.active_is_required,
    ),
    ConformanceRule(
        "move-label",
        "clusterctl move takes the objects along",
        "B6.3",
        'Put the label clusterctl.cluster.x-k8s.io/move: "" on the CustomResourceDefinition.',
        CheckPhase.KIND,
        checks_kind.moves_along,
        required=False,
    ),
    ConformanceRule(
        "verdict",
        "An object soon has the verdict that follows from its spec",
        "A3, A4",
        "Write status.active as a boolean for every object, true while the machine should exist. The controller needs "
        "get, list and watch on its kind, and patch (or update) on its status.",
        CheckPhase.ISOLATION,
        checks_live.decides,
    ),
    ConformanceRule(
        "ready",
        "With a valid spec, condition Ready is True or absent",
        "A5",
        "Set Ready to True when you have a verdict: with False, Unknown or anything else there is none, and machines "
        "are left as they are.",
        CheckPhase.LIVE,
        checks_live.is_ready,
    ),
    ConformanceRule(
        "flip",
        "active follows the spec, both ways",
        "A4",
        "Watch your own kind and decide again whenever metadata.generation has changed.",
        CheckPhase.LIVE,
        checks_live.flips,
    ),
    ConformanceRule(
        "flip-once",
        "active changes once for one cause, and not without one",
        "A4, C8",
        "Decide from one snapshot of spec and time, and write only the outcome; never reset active on the way.",
        CheckPhase.HISTORY,
        over_all(invariants.flips_once),
    ),
    ConformanceRule(
        "boundary",
        "A verdict that ends by the clock ends at the instant announced",
        "C8",
        "Wake up at the instant itself (not at the next poll), and announce it in status.nextTransitionTime.",
        CheckPhase.LIVE,
        checks_live.flips_at_the_boundary,
    ),
    ConformanceRule(
        "first-write",
        "A status begins with a true verdict",
        "C9",
        "Let the first status that you write hold the verdict itself; do not begin with false, or with conditions "
        "alone, and give status no default.",
        CheckPhase.HISTORY,
        over_all(invariants.begins_with_a_verdict),
    ),
    ConformanceRule(
        "active-in-every-write",
        "No write leaves status without a boolean active",
        "C9",
        "Put active into every status write, also into one that only reports a problem. Whoever replaces the status "
        "must carry it over.",
        CheckPhase.HISTORY,
        over_all(invariants.active_is_in_every_write),
    ),
    ConformanceRule(
        "conditions",
        "conditions is a list of conditions with one entry for each type",
        "A13",
        "Write conditions as a list of {type, status, reason, message}: status True, False or Unknown, reason one "
        "word; one for each type, and no second Ready.",
        CheckPhase.HISTORY,
        over_all(
            invariants.conditions_have_their_shape, given=_has_conditions, otherwise="the provider writes no conditions"
        ),
    ),
    ConformanceRule(
        "transition-time",
        "lastTransitionTime moves on a flip, and only then",
        "C9",
        "Carry lastTransitionTime over from the stored status, and set it to the present only when active (for a "
        "condition: its status) has changed.",
        CheckPhase.HISTORY,
        over_all(invariants.moves_times_on_flips_only),
    ),
    ConformanceRule(
        "observed-generation",
        "observedGeneration tells the generation that the verdict was decided for",
        "A11",
        "Set status.observedGeneration to metadata.generation of the object that you decided from, in the same write "
        "as the verdict.",
        CheckPhase.HISTORY,
        over_all(
            invariants.observes_truly,
            given=_has("observedGeneration"),
            otherwise="the provider writes no observedGeneration",
        ),
    ),
    ConformanceRule(
        "next-transition",
        "nextTransitionTime is in the future, and nothing flips before it",
        "C8",
        "Set status.nextTransitionTime to the next instant at which active changes, and to null when there is none.",
        CheckPhase.HISTORY,
        over_all(
            invariants.is_honest_about_what_comes,
            given=_has("nextTransitionTime"),
            otherwise="the provider writes no nextTransitionTime",
        ),
    ),
    ConformanceRule(
        "timestamps",
        "Times are RFC 3339, with an offset",
        "A3",
        "Write times such as 2027-01-31T06:00:00Z, and give their fields format: date-time in the schema.",
        CheckPhase.HISTORY,
        over_all(invariants.writes_rfc3339),
    ),
    ConformanceRule(
        "texts",
        "Reasons and messages have at most 1 KiB, without control characters",
        "A13",
        "Say it shorter: of longer texts only the beginning is shown on the machine.",
        CheckPhase.HISTORY,
        over_all(invariants.texts_are_short),
        required=False,
    ),
    ConformanceRule(
        "steady",
        "While nothing changes nothing is written",
        "C9",
        "Compare the status you are about to write with the stored one, and write only a difference. A status holds no "
        "heartbeat and no time of the last look.",
        CheckPhase.LIVE,
        checks_live.is_steady,
    ),
    ConformanceRule(
        "write-loop",
        "A write is not the cause of the next one",
        "C9",
        "Do not answer the events of your own status writes, and write nothing when the verdict is what it was.",
        CheckPhase.LIVE,
        checks_live.answers_once,
    ),
    ConformanceRule(
        "spec-untouched",
        "The provider writes status (and finalizers) alone",
        "A14",
        "Write through the status subresource, and keep notes of your own in the status, not in annotations or spec.",
        CheckPhase.HISTORY,
        over_all(invariants.leaves_the_spec_alone),
    ),
    ConformanceRule(
        "foreign-conditions",
        "Conditions of other writers are kept",
        "API conventions",
        "Read the stored conditions and replace your own types in them, or use server-side apply.",
        CheckPhase.LIVE,
        checks_live.keeps_foreign_conditions,
    ),
    ConformanceRule(
        "status-restored",
        "A status that was lost is written again",
        "C9",
        "Compare with the stored status at every event, not only when metadata.generation has changed.",
        CheckPhase.LIVE,
        checks_live.puts_right,
        required=False,
    ),
    ConformanceRule(
        "invalid-spec",
        "A spec that cannot be followed is said to be so",
        "C10",
        "Refuse it by schema or CEL, or set Ready to False with a reason and a message that quotes the field, and "
        "active to false if there never was a verdict.",
        CheckPhase.BROKEN,
        checks_broken.says_what_is_wrong,
    ),
    ConformanceRule(
        "verdict-held",
        "A spec that cannot be followed leaves active as it was",
        "C10",
        "With no verdict, copy active from the stored status: false would take running machines away.",
        CheckPhase.BROKEN,
        checks_broken.holds_its_verdict,
    ),
    ConformanceRule(
        "recovers",
        "When the spec is mended, Ready is True again",
        "C10",
        "Decide again at every new generation; keep nothing of an earlier failure.",
        CheckPhase.BROKEN,
        checks_broken.recovers,
    ),
    ConformanceRule(
        "isolation",
        "One broken object does not affect another",
        "C10",
        "Catch what a decision raises and report it on its own object; never let it end or block the controller.",
        CheckPhase.LIVE,
        checks_broken.harms_no_other,
    ),
    ConformanceRule(
        "deletion",
        "A deleted object goes, and is left alone",
        "API conventions",
        "Do nothing for an object with a deletionTimestamp but take your own finalizer off; a provider needs none.",
        CheckPhase.LIVE,
        checks_life.lets_go,
    ),
    ConformanceRule(
        "made-again",
        "An object that is made again starts anew",
        "C9",
        "Keep what you remember by uid, not by name, and forget it when the object is gone.",
        CheckPhase.LIVE,
        checks_life.starts_anew,
    ),
    ConformanceRule(
        "restart",
        "A restart changes nothing and writes nothing",
        "C9",
        "Derive the status from spec, stored status and time alone, and write only a difference.",
        CheckPhase.RESTART,
        checks_life.survives_a_restart,
    ),
)
"""In the order in which they are reported."""
