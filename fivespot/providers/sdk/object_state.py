"""The state that a provider's controller keeps of one object between runs; none of it is needed after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from .decider import PreparedSpec
from .verdict import Verdict
from .write_trouble import Contest, UnwrittenStatus

__all__ = ["MESSAGE_WRITE_BURST", "MESSAGE_WRITE_INTERVAL", "Decision", "ObjectState"]

MESSAGE_WRITE_BURST: Final = 10.0
MESSAGE_WRITE_INTERVAL: Final = 300.0
"""Writes of an object that change nothing but a message: this many at once, and one more per this many seconds."""

DECISION_SECONDS: Final = 60.0
"""Seconds for which a decision serves later runs, such as those that a write by somebody else causes."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict of a pure schedule at an instant."""

    prepared: PreparedSpec
    at: datetime
    verdict: Verdict

    def holds(self, prepared: PreparedSpec, now: datetime) -> bool:
        """Whether the verdict would be the same now: the spec is the same, and no instant of change has passed."""
        ends = [instant for instant in (self.verdict.until, self.verdict.again) if instant is not None]
        return (
            prepared is self.prepared
            and 0.0 <= (now - self.at).total_seconds() < DECISION_SECONDS
            and all(now < end for end in ends)
        )


@dataclass(slots=True)
class ObjectState:
    """One object.

    :ivar size: bytes of the object, the measure of what its evaluation costs.
    :ivar decision: the last decision of a pure provider.
    :ivar last_verdict: what the provider last decided, and since when; None before its first decision.
    :ivar failing: the reason for which decisions fail, and since when on the monotonic clock; None while they do not.
    :ivar failures: the number of decisions that failed in a row.
    :ivar message_budget: writes of mere messages that are allowed, and when that was computed.
    :ivar message_pending: whether a changed message waits to be written.
    :ivar in_flight: the status that is being written.
    :ivar held_until: on the monotonic clock, when a status is written that another writer has undone.
    """

    prepared: PreparedSpec
    size: int = 0
    decision: Decision | None = None
    last_verdict: tuple[bool, datetime] | None = None
    failing: tuple[tuple[str, str], float] | None = None
    failures: int = 0
    message_budget: tuple[float, float] = (MESSAGE_WRITE_BURST, 0.0)
    message_pending: bool = False
    in_flight: Mapping[str, Any] | None = None
    held_until: float | None = None
    contest: Contest = field(default_factory=Contest)
    unwritten: UnwrittenStatus = field(default_factory=UnwrittenStatus)

    def decided(self, active: bool, since: datetime) -> None:
        """Record a verdict. :param since: since when it holds, if it differs from the last."""
        self.failing, self.failures = None, 0
        if self.last_verdict is None or self.last_verdict[0] is not active:
            self.last_verdict = (active, since.replace(microsecond=0))

    def failed(self, reason: tuple[str, str], moment: float) -> bool:
        """Record a decision that failed; whether the reason is another one than before."""
        self.failures += 1
        if self.failing is not None and self.failing[0] == reason:
            return False
        self.failing = (reason, moment)
        return True

    def take_message_write(self, moment: float) -> bool:
        """Use one write of a mere message, if one is allowed now."""
        left, computed = self.message_budget
        left = min(MESSAGE_WRITE_BURST, left + (moment - computed) / MESSAGE_WRITE_INTERVAL)
        allowed = left >= 1.0
        self.message_budget = (left - allowed, moment)
        return allowed
