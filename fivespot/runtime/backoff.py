"""How long a key waits after a failure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fivespot.runtime.clock import Random

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off per key.

    Base, factor and cap are those of client-go's default rate limiter, which users of controllers know.

    :param base: seconds after the first failure.
    :param factor: how many times longer each further failure waits.
    :param cap: the longest wait in seconds; jitter never goes above it.
    :param jitter: the fraction of a wait that chance may take off, so that keys which failed together (an
        outage) do not come back together.
    :param connect_cap: the longest wait after failures that never reached the server, where it is below ``cap``. Such
        tries cost the server nothing, and all who wait for it go on within this time of its return.
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
        """Seconds to wait after the given number of consecutive failures (1 for the first).

        :param unreached: they are failures to reach the server.
        """
        cap = min(self.cap, self.connect_cap) if unreached else self.cap
        try:
            full = min(cap, self.base * self.factor ** max(0, failures - 1))
        except OverflowError:
            full = cap
        return full * (1.0 - self.jitter * rng.random())
