"""When a request is sent again, as a pure rule."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fivespot.runtime.backoff import backoff_ceiling
from fivespot.runtime.clock import Random
from fivespot.runtime.errors import ApiError, ConnectError, DeadlineError, FivespotError, TransportError

__all__ = ["NO_RETRY", "Repeat", "RetryPolicy"]

_TRANSIENT = frozenset({429, 503, 504})


class Repeat(enum.Enum):
    """How freely a request may be sent again.

    ``UNSENT``: only when the bytes never left (POST). ``REFUSED``: also when the server said that it did not act and
    when to come back (a patch). ``ALWAYS``: whatever happened, because sending it twice ends in the same state (GET,
    PUT with a resourceVersion, DELETE with a uid, server-side apply).
    """

    UNSENT = "unsent"
    REFUSED = "refused"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how soon a failed request is sent again.

    :param attempts: how often a request is sent at most, the first time included.
    :param base: seconds before the second attempt; doubles from then on.
    :param cap: longest wait in seconds. A server that asks for more gets its error handed to the caller, whose own
        back-off does not hold a worker.
    :param jitter: the share of a wait that is added at random, so that many clients do not come back at once.
    """

    attempts: int = 4
    base: float = 0.25
    cap: float = 10.0
    jitter: float = 0.5

    def delay(self, attempt: int, error: FivespotError, rng: Random, repeat: Repeat = Repeat.ALWAYS) -> float | None:
        """Seconds until the next attempt, or None to give up.

        :param attempt: how often the request has been sent, at least 1.
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
"""For callers with a deadline and a loop of their own, such as a leader election."""


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
    # A deadline has already cost its full length; one repetition on another connection tells whether it was that one.
    return not isinstance(error, DeadlineError) or attempt == 1
