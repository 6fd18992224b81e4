"""The results of a decision: a verdict, an invalid spec, or no verdict for now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from fivespot.runtime.telemetry import EventNote

__all__ = ["EventNote", "NoVerdict", "SpecError", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether machines should exist at an instant, and until when that holds.

    :param active: the verdict.
    :param until: the instant at which ``active`` changes next, aware and exact; None when it never does.
    :param reason: one CamelCase word for condition Ready, such as ``WindowOpen``; by default ``Active`` or
        ``Inactive``.
    :param message: a sentence for people.
    :param notes: for events.
    :param again: an instant at which to decide again although ``active`` does not change then, such as the one at
        which there will be a note.
    :param final: overrides do not apply while this verdict holds.
    :param foreseen: whether ``until`` is all there is to know. False when the verdict follows something that may
        change at any time, so that an ``until`` of None does not mean *never*.
    """

    active: bool
    until: datetime | None = None
    reason: str = ""
    message: str = ""
    notes: tuple[EventNote, ...] = ()
    again: datetime | None = None
    final: bool = False
    foreseen: bool = True

    def __post_init__(self) -> None:
        """:raises ValueError: an instant is not aware, which would be read in whatever zone the process has."""
        if not self.reason:
            object.__setattr__(self, "reason", "Active" if self.active else "Inactive")
        for name in ("until", "again"):
            instant = getattr(self, name)
            if instant is not None and instant.tzinfo is None:
                raise ValueError(f"Verdict.{name} {instant} has no time zone: use an aware instant, such as one in UTC")


class SpecError(ValueError):
    """A spec that cannot be followed. The text names the field, what is allowed and the nearest right value."""


class NoVerdict(Exception):
    """Raised by ``decide``: there is no verdict now, for a reason outside the spec. ``active`` stays as it was.

    :param reason: one CamelCase word for condition Ready, such as ``SourceUnavailable``.
    :param message: a sentence for people: what was tried, and what would help.
    :param ready: the status of condition Ready. ``Unknown`` says that nothing could be looked at; to those who read the
        schedule the two mean the same.
    :param patience: seconds that this has to last before it is told at all, so that a restart or a hiccup is not.
    :param retry: seconds until the next try; None leaves it to the back-off.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        ready: Literal["False", "Unknown"] = "False",
        patience: float = 0.0,
        retry: float | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.ready: Literal["False", "Unknown"] = ready
        self.patience = patience
        self.retry = retry
