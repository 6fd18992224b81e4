"""One evaluation of a ScheduledMachine: observe, decide, and ask the API server what the caches cannot tell.

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

__all__ = ["MachineEvaluation", "evaluate", "look"]

ROUNDS: Final = 12
"""Looks at the world before it counts as one that does not hold still: definitions, the Machine, what it names."""


@dataclass(frozen=True, slots=True)
class MachineEvaluation:
    """The decision for the state of the cluster at one instant.

    :param unanswered: why a question of the plan has no answer; None when it has none, or they are all answered.
    """

    snapshot: Snapshot
    plan: Plan
    unanswered: Unanswered | None = None


def look(inputs: Inputs, head: Head, spec: SpecView, stored: StoredStatus, capi_version: str | None) -> World:
    """The world around one ScheduledMachine, after everything that it names is being read.

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
    """Observe and decide until the plan asks nothing more, or a question cannot be answered.

    :param observed: takes a snapshot of the present world.
    :param answers: what live requests of this run have told before.
    :param judge: decides; with what the caller's own memory adds to it.
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
    return MachineEvaluation(snapshot, plan, Unanswered("the world kept changing"))


def with_answers(s: Snapshot, answers: Answers) -> Snapshot:
    """The snapshot with what live requests told."""
    seen = {(child.group_kind, child.head.uid) for child in s.world.children}
    more = tuple(child for child in answers.found if (child.group_kind, child.head.uid) not in seen)
    world = replace(s.world, children=s.world.children + more) if more else s.world
    return replace(s, answers=answers, world=world)
