"""The waiting times of the contract, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fivespot.contract import UNREADABLE_PATIENCE, UNRESOLVED_RETRY, UNRESOLVED_RETRY_JITTER
from fivespot.runtime.backoff import Backoff, backoff_ceiling

__all__ = ["RETRIES", "Timings"]

RETRIES: Final = Backoff(base=0.1, cap=30.0)
"""Between tries after transient errors. While the API server cannot be reached, the waits stay at 3 seconds; the cap
applies when the server answers with errors.
"""


@dataclass(frozen=True, slots=True)
class Timings:
    """Waiting times of the controller, in seconds. No flag sets them; tests pass shorter ones.

    The comments name the row of the contract.
    """

    unresolved_recheck: float = UNRESOLVED_RETRY  # A8: a rate alert needs an evaluation per minute
    unresolved_jitter: float = UNRESOLVED_RETRY_JITTER  # A8: +-20 %, so that thousands do not coincide
    display_interval: float = 300.0  # A3: for a change of displayed values alone
    edit_interval: float = 10.0  # A3: as above, once the schedule was edited
    mirror_interval: float = 1.0  # B5.2: for a change of values mirrored from a Machine in transition alone
    recreation: float = 2.0  # A8: how long a schedule may be missing while it is recreated
    unreadable_limit: float = UNREADABLE_PATIENCE  # A15: a restart writes nothing
    start_limit: float = 15.0  # B8.5: a start that waits longer for definitions or lists goes on, and is reported
    conflict_limit: float = 15.0  # B8.5: a conflict that lasts longer is reported
    refusal_base: float = 30.0  # B1.7
    refusal_cap: float = 300.0  # B1.7
    refusal_jitter: float = 0.2  # B1.7
    reference_grace: float = 300.0  # B1.22: least grace for a changed reference that never resolved
    deletion_limit: float = 600.0  # B3.3: plus twice the drain timeout
    replacement_base: float = 10.0  # B7.1
    replacement_cap: float = 600.0  # B7.1
    replacement_reset: float = 600.0  # B7.1: of readiness
    late_deletion: float = 60.0  # B5.5: how long after a cancelled shutdown a deletion sent before may arrive
    next_look: float = 300.0  # B8.5: the longest time without another run while something is not as wanted
    clock_check: float = 10.0  # B1.21: the interval of checks whether the wall clock was set
    orphan_search: float = 600.0  # B5.5: between two searches for objects whose ScheduledMachine is gone
    orphan_age: float = 120.0  # B5.5: younger objects are left alone

    def replacement_delay(self, count: int) -> timedelta:
        """The wait before the ``count``-th replacement (1 is the first)."""
        return timedelta(seconds=backoff_ceiling(count, base=self.replacement_base, cap=self.replacement_cap))

    def refusal_delay(self, attempt: int) -> float:
        """Seconds before the try after the ``attempt``-th refusal (1 is the first), before jitter."""
        return backoff_ceiling(attempt, base=self.refusal_base, cap=self.refusal_cap)
