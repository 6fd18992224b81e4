"""The proofs that exist."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice
from multiprocessing import get_context
from random import Random
from typing import TypeVar

import pytest
from structlog.testing import capture_logs

from simulation.answers import Case, cases, play
from simulation.mutants import MUTANTS
from simulation.runner import DayResult, run_day, start_worker

from .freezes import freezes
from .proof import REPOSITORY, Budget, Proof, Result

__all__ = ["PROOFS"]

C = TypeVar("C")
T = TypeVar("T")

_DAY_LIMIT = 120.0
"""Seconds of real time for one random day."""
_COMPARISONS_PER_SECOND = 0.5


def simulation(budget: Budget) -> Result:
    """Run random days from the seed on."""
    results = list(_parallel(budget, count(budget.seed), _day))
    failed = [day for day in results if day.failure]
    failures = [f"seed {day.seed}: {day.failure} (`./dev simulate --replay {day.seed}`)" for day in failed]
    last = max((day.seed for day in results), default=budget.seed)
    return Result([("Days", f"{len(results)}, seeds {budget.seed} to {last}")], failures)


def answers(budget: Budget) -> Result:
    """Run plans with one request that gets a bad answer, in random order, until every case was run."""
    with capture_logs():
        begun = list(cases(Random(budget.seed)))
    results = list(_parallel(budget, iter(begun), _answer))
    ran = [case for case, _ in results]
    facts = [
        ("Cases", f"{len(ran)} of {len(begun)}"),
        ("Plans", str(len({case.plan for case in ran}))),
        ("Call sites of plans", str(len({(case.plan, case.site) for case in ran}))),
        ("Answers", str(len({case.answer for case in ran}))),
    ]
    return Result(facts, [f"{case}: {'; '.join(problems)}" for case, problems in results if problems])


def mutants(budget: Budget) -> Result:
    """Run every mutant on random days; a mutant that no day detects is a failure."""
    seeds = count(budget.seed)
    pairs = ((seed, number) for seed in seeds for number in range(len(MUTANTS)))
    tried: Counter[str] = Counter()
    detected: Counter[str] = Counter()
    for name, found in _parallel(budget, pairs, _mutant):
        tried[name] += 1
        detected[name] += found
    facts = [
        (f"`{mutant.__name__}`", f"{detected[mutant.__name__]} of {tried[mutant.__name__]} days detect it")
        for mutant, _, _ in MUTANTS
    ]
    return Result(facts, [f"`{name}` was never detected" for name in tried if not detected[name]])


def order(budget: Budget) -> Result:
    """Run the tests without a server in random orders."""
    rng, end = Random(budget.seed), time.monotonic() + budget.seconds
    seeds: list[int] = []
    failures = []
    while not seeds or time.monotonic() < end:
        seeds.append(rng.randrange(10**6))
        arguments = ["tests/unit", "tests/simulation", f"--order-seed={seeds[-1]}", "-n", str(budget.jobs)]
        failures += [f"{failed} (`--order-seed {seeds[-1]}`)" for failed in _pytest(arguments)]
    return Result([("Orders", f"{len(seeds)}, seeds {', '.join(map(str, seeds))}")], failures)


def comparison(budget: Budget) -> Result:
    """Compare the embedded and the real API server on random operations."""
    examples = max(20, int(budget.seconds * _COMPARISONS_PER_SECOND))
    arguments = ["tests/apiserver/test_comparison.py", f"--hypothesis-seed={budget.seed}", "--timeout=0"]
    failures = _pytest(arguments, FIVESPOT_COMPARISONS=str(examples))
    return Result([("Sequences of operations", f"{examples} for each test")], failures)


def server(budget: Budget) -> Result:
    """Run all tests of the real servers, those included that ./dev test runs on the server in memory alone."""
    folders = ["tests/e2e", "tests/server", "tests/apiserver"]
    arguments = [*folders, "--long", "-m", "not alone", "-n", str(budget.jobs + 1), "--dist", "loadfile"]
    began = time.monotonic()
    failures = _pytest([*arguments, "--no-loadscope-reorder"])
    return Result([("Seconds", f"{time.monotonic() - began:.0f}")], failures)


PROOFS = (
    Proof(
        "simulation",
        "No random day (faults of the server, killed managers, edits by users) violates an invariant of the contract.",
        simulation,
        600.0,
    ),
    Proof(
        "answers",
        "Whatever the API server answers to any request of any plan, the truth is reported within a minute, nothing is "
        "done against what is wanted, and all is well when the answers are.",
        answers,
        1800.0,
    ),
    Proof("mutants", "The simulation's checker detects deliberate mistakes in the product.", mutants, 1200.0),
    Proof("order", "No test depends on the order in which tests run.", order, 300.0),
    Proof("server", "Every test of the contract passes on the real API server.", server, 1500.0),
    Proof(
        "freezes",
        "A leader that was frozen changes nothing that another leader has decided meanwhile, on the real API server.",
        freezes,
        900.0,
    ),
    Proof("comparison", "The embedded API server answers random operations as the real one does.", comparison, 300.0),
)


def _day(seed: int) -> DayResult:
    return run_day(seed, _DAY_LIMIT)


def _answer(case: Case) -> tuple[Case, list[str]]:
    try:
        return case, play(case)
    except Exception as error:
        # A manager that ends is a failure of the case, not of the proof.
        return case, [f"{type(error).__name__}: {error}"]


def _mutant(case: tuple[int, int]) -> tuple[str, bool]:
    seed, number = case
    mutant, invariant, _ = MUTANTS[number]
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        return mutant.__name__, invariant.value in run_day(seed, _DAY_LIMIT).failure


def _parallel(budget: Budget, cases: Iterator[C], work: Callable[[C], T]) -> Iterator[T]:
    """Yield the results of all cases, or of as many as the budget allows."""
    end = time.monotonic() + budget.seconds
    context = get_context("spawn")
    with ProcessPoolExecutor(budget.jobs, mp_context=context, initializer=start_worker) as pool:
        under_way: set[Future[T]] = {pool.submit(work, case) for case in islice(cases, 2 * budget.jobs)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                if time.monotonic() < end:
                    under_way |= {pool.submit(work, case) for case in islice(cases, 1)}
                yield future.result()


def _pytest(arguments: Sequence[str], **environment: str) -> list[str]:
    """Run tests and return the failed ones."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    failed = [line.partition(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode and not failed:
        failed = [f"pytest ended with code {done.returncode}: {' '.join(done.stdout.split()[-20:])}"]
    return failed
