"""What providers may declare that they read."""

from __future__ import annotations

from typing import Final, TypeAlias

from fivespot.runtime.objects import Resource

__all__ = ["SCHEDULES", "Readable", "Schedules"]


class Schedules:
    """The type of :data:`SCHEDULES`."""

    def __repr__(self) -> str:
        return "SCHEDULES"


SCHEDULES: Final = Schedules()
"""Schedules of whatever kind, read as the provider contract reads them: their verdict, and nothing of their spec."""

Readable: TypeAlias = Schedules | Resource
"""Schedules, or a resource whose objects are read whole."""
