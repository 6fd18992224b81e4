"""What the process remembers of one object between its runs; nothing of it is needed after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from .decider import Prepared
from .verdict import Verdict

__all__ = ["WORDS_AT_ONCE", "WORDS_INTERVAL", "Decision", "ObjectState"]

WORDS_AT_ONCE: Final = 10.0
WORDS_INTERVAL: Final = 300.0
"""Writes of an object that change nothing but a message: so many at once, and one more each so many seconds."""


DECISION_SECONDS: Final = 60.0
"""For how long a decision is good for another run: for the echo of its own write, and for other people's writes."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pure schedule said at an instant."""

    prepared: Prepared
    at: datetime
    verdict: Verdict

    def holds(self, prepared: Prepared, now: datetime) -> bool:
        """Whether it would say the same now: nothing was edited, and no instant came at which to decide again."""
        ends = [instant for instant in (self.verdict.until, self.verdict.again) if instant is not None]
        return (
            prepared is self.prepared
            and 0.0 <= (now - self.at).total_seconds() < DECISION_SECONDS
            and all(now < end for end in ends)
        )


@dataclass(slots=True)
class ObjectState:
    """One object.

    :ivar decision: the last decision of a pure provider.
    :ivar said: what the provider last decided, and since when; None when it did not yet.
    :ivar troubled: how decisions fail, and since when on the monotonic clock; None while they do not.
    :ivar failures: how many have failed one after another.
    :ivar words: writes of mere words that are allowed, and when that was counted.
    :ivar sent: the status that is on its way to the server.
    :ivar held: whether other words for what is told already wait to be written.
    """

    prepared: Prepared
    decision: Decision | None = None
    said: tuple[bool, datetime] | None = None
    troubled: tuple[tuple[str, str], float] | None = None
    failures: int = 0
    words: tuple[float, float] = (WORDS_AT_ONCE, 0.0)
    held: bool = False
    sent: Mapping[str, Any] | None = None

    def decided(self, active: bool, since: datetime) -> None:
        """There is a verdict. :param since: since when, if it is another one than before."""
        self.troubled, self.failures = None, 0
        if self.said is None or self.said[0] is not active:
            self.said = (active, since.replace(microsecond=0))

    def failed(self, sort: tuple[str, str], moment: float) -> bool:
        """There is none, for a reason of that sort; whether that is another one than before."""
        self.failures += 1
        if self.troubled is not None and self.troubled[0] == sort:
            return False
        self.troubled = (sort, moment)
        return True

    def may_word(self, moment: float) -> bool:
        """Whether a write of mere words is allowed now, and if so take it."""
        left, counted = self.words
        left = min(WORDS_AT_ONCE, left + (moment - counted) / WORDS_INTERVAL)
        allowed = left >= 1.0
        self.words = (left - allowed, moment)
        return allowed
