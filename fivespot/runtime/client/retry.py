"""Retry policy of requests, as a pure function."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fivespot.runtime.backoff import backoff_ceiling
from fivespot.runtime.clock import Random
from fivespot.runtime.errors import ApiError, ConnectError, DeadlineError, FivespotError, TransportError

__all__ = ["NO_RETRY", "Repeat", "RetryPolicy"]

_TRANSIENT = frozenset({429, 503, 504})


class Repeat(enum.Enum):
    """Conditions under which a request may be repeated.

    ``UNSENT``: only if no byte was sent (POST). ``REFUSED``: also if the server did not act and said when to retry (a
    patch). ``ALWAYS``: after any failure, because sending it twice leads to the same state (GET, PUT with a
    resourceVersion, DELETE with a uid, server-side apply).
    """

    UNSENT = "unsent"
    REFUSED = "refused"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts of a request, and the delays between them.

    :param attempts: maximum number of attempts, including the first.
    :param base: delay before the second attempt in seconds; doubles with each further attempt.
    :param cap: maximum delay in seconds. If the server asks for more, its error is raised: the caller's own back-off
        does not block a worker.
    :param jitter: fraction of a delay that is added at random, so that many clients do not retry at once.
    """

    attempts: int = 4
    base: float = 0.25
    cap: float = 10.0
    jitter: float = 0.5

    def delay(self, attempt: int, error: FivespotError, rng: Random, repeat: Repeat = Repeat.ALWAYS) -> float | None:
        """Seconds until the next attempt, or None to give up.

        :param attempt: number of attempts so far, at least 1.
        """
        if attempt >= self.attempts or not _worth_repeating(attempt, error, repeat):
            return None
        wait = backoff_ceiling(attempt, base=self.base, cap=self.cap)
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None:
            if asked > self.cap:
                return None
            wait = max(wait, asked)
        return wait * (1.0 + self.jitter * rng.random())


NO_RETRY = RetryPolicy(attempts=1)
"""For callers with a deadline and a retry loop of their own, such as leader election."""


def _worth_repeating(attempt: int, error: FivespotError, repeat: Repeat) -> bool:
    if isinstance(error, ConnectError):
        return True
    if repeat is Repeat.UNSENT:
        return False
    if isinstance(error, ApiError):
        if error.status not in _TRANSIENT:
            return False
        return repeat is Repeat.ALWAYS or error.retry_after is not None
    if not isinstance(error, TransportError) or repeat is not Repeat.ALWAYS:
        return False
    # A deadline has already cost its full length; one retry on another connection rules out a dead connection.
    return not isinstance(error, DeadlineError) or attempt == 1
