"""One random day, played by whoever asks for it: a test, a command, a worker of one."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import structlog

from fivespot.testing.virtual_time import run_virtual
from simulation.chaos import Chaos

__all__ = ["Day", "begin_worker", "play"]


@dataclass(frozen=True)
class Day:
    """One day as it went.

    :ivar wrong: what is wrong, in one line; "" when nothing is.
    :ivar story: everything that happened.
    """

    seed: int
    wrong: str
    story: list[str] = field(default_factory=list)


class TooLongError(Exception):
    """A day does not end: something goes on without the clock going on."""


def play(seed: int, limit: float) -> Day:
    """Play one day.

    :param limit: seconds of real time.
    """
    chaos = Chaos(seed)
    try:
        with _limited(limit):
            run_virtual(chaos.run())
    except TooLongError:
        return Day(seed, f"no end within {limit:g} s of real time", chaos.log)
    except Exception as error:
        # The seed and the story are told apart.
        lines = str(error).removeprefix(f"seed {seed}: ").splitlines()
        wrong = lines[0] if lines else ""
        return Day(seed, wrong if isinstance(error, AssertionError) else f"{type(error).__name__}: {wrong}", chaos.log)
    return Day(seed, "", chaos.log)


@contextmanager
def _limited(limit: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> NoReturn:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def begin_worker() -> None:
    """Play without a word, and leave interrupts to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
