"""One evaluation of a ScheduledMachine: observe, decide, and ask the API server for what the caches do not have.

The controller and ``fivespot why`` both run it; they differ in their inputs alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fivespot.api import names
from fivespot.runtime import GroupKind, Head

from .decide import decide
from .live_lookup import LiveLookup, Unanswered
from .observe import machine_resource, named_kinds, observe, see_machine
from .plan import Plan
from .protocols import Inputs
from .snapshot import Answers, Snapshot, World
from .spec import SpecView
from .stored_status import StoredStatus

__all__ = ["MachineEvaluation", "evaluate", "observe_machine"]

ROUNDS: Final = 12
"""Attempts at a stable snapshot before the run is given up: definitions, the Machine, and the kinds that it names."""


@dataclass(frozen=True, slots=True)
class MachineEvaluation:
    """The decision for the state of the cluster at one instant.

    :param unanswered: the reason why a question of the plan has no answer; None if none is open.
    """

    snapshot: Snapshot
    plan: Plan
    unanswered: Unanswered | None = None


def observe_machine(
    inputs: Inputs, head: Head, spec: SpecView, stored: StoredStatus, capi_version: str | None
) -> World:
    """Return the world around one ScheduledMachine, once everything that it names is being read.

    :param capi_version: the Machine version that the administrator asked for, if any.
    """
    seen = see_machine(inputs, head, capi_version)
    schedule = GroupKind(names.PROVIDER_GROUP, spec.schedule.kind)
    inputs.require(schedule, named_kinds(spec, stored, seen.ours(head.uid)))
    return observe(inputs, head, spec, stored, seen)


async def evaluate(
    inputs: Inputs,
    lookup: LiveLookup,
    observed: Callable[[], Snapshot],
    *,
    answers: Answers,
    judge: Callable[[Snapshot], Plan] = decide,
) -> MachineEvaluation:
    """Observe and decide until the plan has no open question, or one that cannot be answered.

    :param observed: takes a snapshot of the current world.
    :param answers: the answers to live requests of this run so far.
    :param judge: decides, with what the caller remembers between runs.
    """
    for _ in range(ROUNDS):
        snapshot = with_answers(observed(), answers)
        if await inputs.complete():
            continue
        plan = judge(snapshot)
        if plan.ask is None:
            return MachineEvaluation(snapshot, plan)
        machines = machine_resource(inputs, snapshot.world.capi.version)
        answer = await lookup.answer(plan.ask, snapshot, machines)
        if isinstance(answer, Answers):
            answers = answer
        elif not await inputs.complete():
            return MachineEvaluation(snapshot, plan, answer)
    return MachineEvaluation(snapshot, plan, Unanswered("the objects kept changing while they were read"))


def with_answers(s: Snapshot, answers: Answers) -> Snapshot:
    """Return the snapshot with the answers to live requests."""
    seen = {(child.group_kind, child.head.uid) for child in s.world.children}
    more = tuple(child for child in answers.found if (child.group_kind, child.head.uid) not in seen)
    world = replace(s.world, children=s.world.children + more) if more else s.world
    return replace(s, answers=answers, world=world)
