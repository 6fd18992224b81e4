"""One evaluation: questions are asked until there is a plan, and a question without an answer ends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from fivespot.controllers.scheduledmachine.evaluate import MachineEvaluation, evaluate, observe_machine, with_answers
from fivespot.controllers.scheduledmachine.live_lookup import LiveLookup, Unanswered
from fivespot.controllers.scheduledmachine.observe import MACHINE_KIND
from fivespot.controllers.scheduledmachine.plan import DeleteChildren, Plan, Question
from fivespot.controllers.scheduledmachine.snapshot import Answers, Slot, Snapshot
from fivespot.runtime import Resource
from unit.controllers.build import (
    BOOTSTRAP,
    DOWN,
    INFRASTRUCTURE,
    OLD_INFRASTRUCTURE,
    adopted,
    child,
    head,
    ref,
    snapshot,
    spec,
    steps,
    stored_status,
)
from unit.controllers.inputs import HOURS_KIND, Cached

BEHIND = Unanswered("the cache of Machines is behind")


@dataclass
class Lookup:
    """Answers in order."""

    answers: list[Answers | Unanswered] = field(default_factory=list)
    asked: list[tuple[Question, Resource | None]] = field(default_factory=list)

    async def answer(self, question: Question, s: Snapshot, machines: Resource | None) -> Answers | Unanswered:
        self.asked.append((question, machines))
        return self.answers.pop(0)


@dataclass
class Fetching(Cached):
    """Inputs that are complete after some rounds."""

    rounds: int = 0

    async def complete(self) -> bool:
        self.rounds -= 1
        return self.rounds >= 0


async def run(
    lookup: Lookup, observed: Callable[[], Snapshot], inputs: Cached | None = None, answers: Answers | None = None
) -> MachineEvaluation:
    known = answers or Answers()
    return await evaluate(inputs or Cached(), cast("LiveLookup", lookup), observed, answers=known)


# Left by a Machine that the cache does not show, which may yet live.
ADOPTED = snapshot(DOWN, children=adopted("m-1"), stored=stored_status(bootstrapRef=ref(BOOTSTRAP)))


async def test_a_plan_without_a_question_asks_nothing() -> None:
    lookup = Lookup()
    found = await run(lookup, lambda: snapshot(DOWN))
    assert (found.plan.settled, found.unanswered, lookup.asked) == (True, None, [])


@pytest.mark.contract("B1.10")
async def test_leftovers_are_deleted_only_after_the_server_said_that_their_machine_is_gone() -> None:
    lookup = Lookup([Answers(gone=frozenset({"m-1"}))])
    found = await run(lookup, lambda: ADOPTED)
    machines = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
    assert lookup.asked == [(Question.MACHINE_GONE, machines)]
    assert steps(found.plan, DeleteChildren)
    assert found.unanswered is None


@pytest.mark.contract("B1.10")
async def test_a_question_without_an_answer_leaves_everything_as_it_is() -> None:
    found = await run(Lookup([BEHIND]), lambda: ADOPTED)
    assert (found.unanswered, found.plan.steps, found.plan.quiet) == (BEHIND, (), True)


async def test_a_question_without_an_answer_is_asked_again_while_more_can_be_fetched() -> None:
    lookup = Lookup([BEHIND, Answers(gone=frozenset({"m-1"}))])
    # The first question to the inputs comes before the decision, the second after the failed answer.
    inputs = Fetching(rounds=0)
    turns = iter([False, True, False, False])

    async def complete() -> bool:
        return next(turns)

    inputs.complete = complete  # type: ignore[method-assign]
    found = await run(lookup, lambda: ADOPTED, inputs)
    assert found.unanswered is None
    assert len(lookup.asked) == 2


async def test_nothing_is_decided_while_what_is_named_is_still_being_fetched() -> None:
    looks: list[Snapshot] = []

    def observed() -> Snapshot:
        looks.append(snapshot(DOWN))
        return looks[-1]

    found = await run(Lookup(), observed, Fetching(rounds=3))
    assert found.plan.settled
    assert len(looks) == 4


@pytest.mark.contract("B1.10")
async def test_answers_that_never_satisfy_the_decision_end_without_a_step() -> None:
    lookup = Lookup([Answers()] * 12)
    found = await run(lookup, lambda: ADOPTED)
    assert found.unanswered is not None
    assert "kept changing" in found.unanswered.why
    assert found.plan.steps == ()


async def test_answers_of_an_earlier_round_of_the_run_are_not_asked_for_again() -> None:
    lookup = Lookup()
    found = await run(lookup, lambda: ADOPTED, answers=Answers(gone=frozenset({"m-1"})))
    assert steps(found.plan, DeleteChildren)
    assert lookup.asked == []


@pytest.mark.contract("B2.3")
def test_objects_that_a_search_found_count_as_children_once() -> None:
    cached = child(Slot.INFRASTRUCTURE, uid="i-1")
    found = child(Slot.INFRASTRUCTURE, uid="i-0", resource=OLD_INFRASTRUCTURE)
    s = with_answers(snapshot(DOWN, children=(cached,)), Answers(searched=True, found=(found, cached)))
    assert s.world.children == (cached, found)
    assert s.answers.searched
    # Another kind may have given an object the same uid in a restored cluster.
    twin = replace(cached, resource=OLD_INFRASTRUCTURE)
    assert with_answers(s, Answers(found=(twin,))).world.children == (cached, found, twin)


async def test_a_caller_can_decide_with_what_it_remembers() -> None:
    s = snapshot(DOWN)
    plan: Any = Plan(*[cast("Any", None)] * 5)
    found = await evaluate(Cached(), cast("LiveLookup", Lookup()), lambda: s, answers=Answers(), judge=lambda _: plan)
    assert (found.plan, found.snapshot) == (plan, s)


@pytest.mark.contract("B2.3")
def test_a_look_reads_the_schedule_and_every_kind_that_is_named() -> None:
    inputs = Cached()
    found = observe_machine(inputs, head(), spec(), stored_status(infrastructureRef=ref(OLD_INFRASTRUCTURE)), "v1beta2")
    kinds = [BOOTSTRAP.group_kind, INFRASTRUCTURE.group_kind, OLD_INFRASTRUCTURE.group_kind]
    assert inputs.required == [HOURS_KIND, *kinds]
    assert found.capi.version == "v1beta2"
    del inputs.kinds[MACHINE_KIND]
    assert observe_machine(inputs, head(), spec(), stored_status(), None).capi.version == ""
