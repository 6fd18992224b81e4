"""Holds by administrators: the stop for everything, and the wait for the admission policy (contract B8.4).

The manager's process feeds them, and the controller asks for them at each decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from fivespot.api import Reason, names
from fivespot.contract import clean
from fivespot.runtime import Object
from fivespot.runtime.objects import field_writer
from fivespot.runtime.telemetry import EventNote

__all__ = ["CreationHold", "Holds"]

_TEXT: Final = 256
"""Bytes of the administrator's own words that are shown."""

_log = structlog.get_logger("fivespot.scheduledmachine")


@dataclass(frozen=True, slots=True)
class CreationHold:
    """A reason for which a machine that is wanted is not created yet.

    :param until: when it ends by itself; None if that is unknown.
    """

    reason: str
    message: str
    until: datetime | None = None


class Holds:
    """The stop and the wait for the admission policy, for all machines of the process.

    :param require_policy: hold back every creation until the admission policy is known to be bound.
    :ivar stopped: the reason for which nothing is created or deleted; "" where nothing is stopped.
    :ivar set_by: who set the stop and when, as far as the Lease tells; "" otherwise.
    :ivar unbound: problems of the admission policies by name, "" for one that is in force; empty until they were read.
    """

    def __init__(self, *, require_policy: bool = False) -> None:
        self.stopped = ""
        self.set_by = ""
        self.unbound: Mapping[str, str] = {}
        self._require_policy = require_policy
        self._subscribers: list[Callable[[], None]] = []

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have a function called whenever a hold begins, changes or ends."""
        self._subscribers.append(changed)

    def lease_observed(self, lease: Object) -> EventNote | None:
        """Take over the stop from the manager's Lease, as just read or written; return an event if that changed it."""
        text = lease.head.annotations.get(names.ANNOTATION_STOP)
        stopped = ""
        if text is not None:
            stopped = f"stopped by annotation {names.ANNOTATION_STOP} on Lease {lease.head.namespace}/{lease.head.name}"
            words = clean(text, _TEXT)
            stopped = f"{stopped}: {words}" if words else stopped
        if stopped == self.stopped:
            return None
        before, self.stopped = self.stopped, stopped
        writer = field_writer(lease.decode(), "metadata", "annotations", names.ANNOTATION_STOP) if stopped else None
        self.set_by = str(writer or "")
        self._changed()
        if not stopped:
            _log.warning("the stop has ended", was=before)
            return EventNote(reason=Reason.RESUMED, message=f"the stop has ended; it was {before}", warning=False)
        _log.warning("nothing is created or deleted, kill switches excepted", reason=stopped, set_by=self.set_by)
        message = f"nothing is created or deleted, kill switches excepted: {self.stop_note()}"
        # Every replica reads the Lease; the token has one event written of them.
        return EventNote(reason=Reason.STOPPED, message=message, warning=True, once=self.set_by)

    def policies_observed(self, unbound: Mapping[str, str]) -> None:
        """Take over the problems of the admission policies by name, "" for one that is in force."""
        before = self.creation
        self.unbound = unbound
        if self.creation != before:
            self._changed()

    @property
    def creation(self) -> CreationHold | None:
        """The hold of every creation for want of the admission policy, None where there is none."""
        if not self._require_policy:
            return None
        problem = self.unbound.get(names.ADMISSION_POLICY, "it is not known yet whether the admission policy is bound")
        if not problem:
            return None
        message = f"{problem}; nothing is created until it is in force (--require-admission-policy)"
        return CreationHold(Reason.ADMISSION_POLICY_MISSING, message)

    def policy_note(self) -> str:
        """A remark for ``/readyz``: the policies that are not in force."""
        return "; ".join(problem for problem in self.unbound.values() if problem)

    def stop_note(self) -> str:
        """A remark for ``/readyz``: the stop."""
        return f"{self.stopped} ({self.set_by})" if self.set_by else self.stopped

    def bound_readings(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """The samples of ``fivespot_admission_policy_bound``."""
        return [((policy,), float(not problem)) for policy, problem in self.unbound.items()]

    def _changed(self) -> None:
        for changed in self._subscribers:
            changed()
