"""A part of the answers to requests in ``answers.py``; ``./dev prove answers`` runs all of them."""

from __future__ import annotations

from random import Random

import pytest

from fivespot.controllers.scheduledmachine.reconciler import MachineReconciler
from fivespot.controllers.scheduledmachine.status_writer import MachineStatusWriter
from fivespot.runtime import Result
from fivespot.runtime.cache.store import Store

from .answers import PLANS, Case, Site, cases_of, play

SEED = 1
"""The part is the same in every run, so that a failure belongs to the change under test."""

DELETE = Site("delete", "machines")
REPORT = Site("patch", "scheduledmachines/status")


@pytest.mark.contract("B8.5")
@pytest.mark.parametrize("plan", PLANS)
def test_every_answer_is_told_and_all_is_well_when_it_ends(plan: str) -> None:
    sample = cases_of(plan, Random(SEED))[:2]
    found = {str(case): problems for case in sample if (problems := play(case))}
    assert not found


@pytest.mark.contract("B8.5")
@pytest.mark.parametrize(
    "case",
    [
        Case("kill", DELETE, "404 NotFound", lasting=False),
        Case("kill", REPORT, "404 NotFound", lasting=True),
        Case("shut down", DELETE, "404 NotFound", lasting=True),
        Case("shut down", REPORT, "404 NotFound", lasting=False),
        Case("begin", Site("patch", "scheduledmachines"), "404 NotFound", lasting=False),
    ],
    ids=str,
)
def test_an_object_that_exists_though_the_server_denied_it_is_found_again(case: Case) -> None:
    assert play(case) == []


# What the checks detect ----------------------------------------------------------------------------------------------


def test_a_deletion_that_is_never_confirmed_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    reach = Store.reach

    def believe(store: Store, version: int) -> bool:
        reach(store, version)
        return True

    monkeypatch.setattr(Store, "reach", believe)
    problems = play(Case("kill", DELETE, "404 NotFound", lasting=False))
    assert any("not well afterwards" in problem for problem in problems)


def test_a_failure_that_is_not_told_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    write = MachineStatusWriter.write

    async def write_success_alone(writer: MachineStatusWriter, *rest: object, **more: object) -> Result:
        plan = rest[2]
        if getattr(plan, "reason", "") == "MachineDeletionFailed":
            return Result(requeue_after=30.0)
        return await write(writer, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(MachineStatusWriter, "write", write_success_alone)
    monkeypatch.setattr(MachineStatusWriter, "announce", _announce_nothing)
    problems = play(Case("shut down", DELETE, "403", lasting=True))
    assert any("untold after a minute" in problem for problem in problems)


async def _announce_nothing(writer: object, obj: object, *rest: object) -> object:
    return obj


def test_a_hot_loop_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile = MachineReconciler.reconcile

    async def at_once(reconciler: MachineReconciler, key: object) -> Result:
        result = await reconcile(reconciler, key)  # type: ignore[arg-type]
        reconciler._refusals.forget_all()
        return Result(requeue_after=0.5, phase=result.phase)

    monkeypatch.setattr(MachineReconciler, "reconcile", at_once)
    problems = play(Case("create", Site("create", "machines"), "403", lasting=True))
    assert any("requests in 300 s" in problem for problem in problems)
