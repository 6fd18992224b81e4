"""Exponential back-off: the delay after a number of consecutive failures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fivespot.runtime.clock import Random

__all__ = ["Backoff", "backoff_ceiling"]


def backoff_ceiling(failures: int, *, base: float, cap: float, factor: float = 2.0) -> float:
    """Delay after ``failures`` consecutive failures (1 for the first): ``base``, multiplied each time, at most ``cap``.

    Callers that add jitter in their own way start from this; others use :class:`Backoff`.
    """
    try:
        return min(cap, base * factor ** max(0, failures - 1))
    except OverflowError:
        return cap


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with jitter.

    Base, factor and cap default to those of client-go's rate limiter for work queues.

    :param base: seconds after the first failure.
    :param factor: multiplier for each further failure.
    :param cap: longest delay in seconds; jitter never exceeds it.
    :param jitter: the fraction of a delay that is subtracted at random, so that keys which failed together are not
        retried together.
    :param connect_cap: longest delay after failures that never reached the server, where it is below ``cap``. Such
        attempts cost the server nothing, and work resumes within this time once the server is back.
    """

    base: float = 0.005
    factor: float = 2.0
    cap: float = 1000.0
    jitter: float = 0.2
    connect_cap: float = 3.0

    def __post_init__(self) -> None:
        if not (0 < self.base <= self.cap < math.inf and 1 <= self.factor < math.inf and 0 <= self.jitter < 1):
            raise ValueError(f"{self} needs 0 < base <= cap, 1 <= factor, 0 <= jitter < 1, all finite")
        if not 0 < self.connect_cap < math.inf:
            raise ValueError(f"{self} needs 0 < connect_cap, finite")

    def delay(self, failures: int, rng: Random, *, unreached: bool = False) -> float:
        """Seconds to wait after so many consecutive failures (1 for the first).

        :param unreached: the failures never reached the server.
        """
        cap = min(self.cap, self.connect_cap) if unreached else self.cap
        ceiling = backoff_ceiling(failures, base=self.base, cap=cap, factor=self.factor)
        return ceiling * (1.0 - self.jitter * rng.random())
