"""Run random days with a time limit, for tests and for the command and its workers."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, NoReturn

import structlog

from simulation.random_day import RandomDay

__all__ = ["TEST_SEEDS", "DayResult", "chosen_seeds", "run_day", "start_worker"]

TEST_SEEDS: Final = tuple(range(1, 7))
"""The seeds that the tests run: two for each arrangement of managers, and those that the mutants need."""


def chosen_seeds() -> tuple[int, ...]:
    """Return the seeds for the tests, or the one in ``FIVESPOT_SIMULATION_SEED``."""
    one = os.environ.get("FIVESPOT_SIMULATION_SEED")
    return (int(one),) if one else TEST_SEEDS


@dataclass(frozen=True)
class DayResult:
    """The result of one day.

    :ivar failure: one line; "" if it passed.
    :ivar log: the events of the day.
    """

    seed: int
    failure: str
    log: list[str] = field(default_factory=list)


class TooLongError(Exception):
    """A day does not end: work goes on while virtual time stands still."""


def run_day(seed: int, limit: float) -> DayResult:
    """Run one day.

    :param limit: seconds of real time.
    """
    day = RandomDay(seed)
    try:
        with _limited(limit):
            day.play()
    except TooLongError:
        return DayResult(seed, f"no end within {limit:g} s of real time", day.log)
    except Exception as error:
        # The result has fields for the seed and the log.
        lines = str(error).removeprefix(f"seed {seed}: ").splitlines()
        failure = lines[0] if lines else ""
        return DayResult(
            seed, failure if isinstance(error, AssertionError) else f"{type(error).__name__}: {failure}", day.log
        )
    return DayResult(seed, "", day.log)


@contextmanager
def _limited(limit: float) -> Iterator[None]:
    def expire(number: int, frame: FrameType | None) -> NoReturn:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def start_worker() -> None:
    """Prepare a worker process: no logs, and interrupts are left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
