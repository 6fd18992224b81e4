"""What a provider decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["Note", "SpecError", "Verdict"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something people should know that changes no verdict; it becomes one event.

    :param once: a token: the event exists at most once per object and token, also across restarts.
    """

    reason: str
    message: str
    once: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether machines should exist at an instant, and until when that holds.

    :param active: the verdict.
    :param until: the instant at which ``active`` changes next, aware and exact; None when it never does.
    :param reason: one CamelCase word for condition Ready, such as ``WindowOpen``.
    :param message: a sentence for people.
    :param notes: for events.
    """

    active: bool
    until: datetime | None
    reason: str
    message: str = ""
    notes: tuple[Note, ...] = ()


class SpecError(ValueError):
    """A spec that cannot be followed. The text names the field, what is allowed and the nearest right value."""
