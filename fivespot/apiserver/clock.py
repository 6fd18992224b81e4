"""Time and identifiers of the server: injected, so that a seeded run under virtual time repeats exactly."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from random import Random
from typing import Final, Protocol

__all__ = ["IdGenerator", "ServerClock", "WallClock", "micro_time", "timestamp"]

_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for generated names: without vowels, so that no words appear."""


class ServerClock(Protocol):
    """The source of the server's time: any object with these two methods."""

    def monotonic(self) -> float:
        """Seconds on the running loop's clock: for limits and bookmarks."""
        ...

    def now(self) -> datetime:
        """The wall clock as an aware UTC datetime: for timestamps in objects."""
        ...


class WallClock:
    """The loop's clock and the machine's wall clock."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return datetime.now(UTC)


class IdGenerator:
    """uids and the random parts of generated names.

    :param seed: makes the identifiers of a run repeatable; None seeds from the operating system.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = Random(seed)  # noqa: S311 - names, not secrets

    def uid(self) -> str:
        """A version 4 UUID."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five characters for a generated name."""
        return "".join(self._random.choices(_SUFFIX_LETTERS, k=5))

    def uniform(self, low: float, high: float) -> float:
        """A float between the two: used to spread watch time-outs."""
        return self._random.uniform(low, high)


def timestamp(moment: datetime) -> str:
    """A ``metav1.Time``: RFC 3339, UTC, whole seconds."""
    # Called for every write; isoformat takes a fifth of the time of strftime.
    return moment.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def micro_time(moment: datetime) -> str:
    """A ``metav1.MicroTime``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
