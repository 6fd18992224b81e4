"""The administrator's limits on creations: activations an hour, and machines in a namespace (contract B8.4)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fivespot.runtime import Key

__all__ = ["ActivationLimiter", "ActivationLimits", "Exceeded"]

_HOUR: Final = 3600.0
_SWEEP: Final = 60.0
"""Seconds between two searches for what can be forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationLimits:
    """The administrator's limits; None is no limit.

    :param per_machine: Machines that may be created for one ScheduledMachine within any hour.
    :param per_namespace: Machines that may be created in one namespace within any hour.
    :param machines: Machines that a namespace may have at a time.
    """

    per_machine: int | None = None
    per_namespace: int | None = None
    machines: int | None = None

    @property
    def any(self) -> bool:
        return (self.per_machine, self.per_namespace, self.machines) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that a creation would exceed.

    :param limit: the field of :class:`ActivationLimits`.
    :param wait: seconds until an hourly limit allows it; None where another machine has to go first.
    """

    limit: str
    allowed: int
    wait: float | None = None


class ActivationLimiter:
    """Counts creations and holds back those above a limit. Times are the loop's monotonic seconds.

    A ScheduledMachine that is deleted and created again counts as the same one.

    :param wake: called with a machine that waits for others to go once there is room.
    """

    def __init__(self, limits: ActivationLimits, wake: Callable[[Key, float], None]) -> None:
        self._limits = limits
        self._wake = wake
        self._begun: dict[str, deque[float]] = {}
        self._swept_at = -_SWEEP
        self._granted: set[Key] = set()
        self._waiting: defaultdict[str, dict[Key, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._begun) + len(self._granted) + sum(map(len, self._waiting.values()))

    def begin_term(self, begun: Iterable[tuple[Key, float]]) -> None:
        """Start over at the beginning of a term. :param begun: the known creations, by whichever process."""
        self._begun.clear()
        self._granted.clear()
        self._waiting.clear()
        for key, at in sorted(begun, key=lambda found: found[1]):
            self._count(key, at)

    def exceeded(self, key: Key, now: float, machines: Callable[[], int]) -> Exceeded | None:
        """Return the limit that the creation would exceed now; None takes the place.

        :param machines: counts the Machines of the namespace.
        """
        if not self._limits.any or key in self._granted:
            return None
        self._sweep(now)
        for limit, allowed, owner, under_way in (
            ("per_machine", self._limits.per_machine, str(key), 0),
            ("per_namespace", self._limits.per_namespace, key.namespace, self._under_way(key.namespace)),
        ):
            times = self._lately(owner, now)
            excess = len(times) + under_way - allowed if allowed is not None else -1
            if allowed is not None and excess >= 0:
                # Those under way count as begun now.
                begun = times[excess] if excess < len(times) else now
                return Exceeded(limit, allowed, begun + _HOUR - now)
        most = self._limits.machines
        if most is not None and machines() + self._under_way(key.namespace) >= most:
            self._waiting[key.namespace][key] = None
            return Exceeded("machines", most)
        self._forget_waiting(key)
        self._granted.add(key)
        return None

    def used(self, key: Key, now: float) -> None:
        """Note that the machine was created, or may have been."""
        if key in self._granted:
            self._granted.discard(key)
            self._count(key, now)

    def release(self, key: Key) -> None:
        """Give the place back: nothing was created, or nothing is wanted any more."""
        self._granted.discard(key)
        self._forget_waiting(key)

    def offer(self, key: Key, machines: Callable[[], int]) -> None:
        """Wake a machine that waits in the namespace of another, if there is room for it."""
        waiting = self._waiting.get(key.namespace)
        most = self._limits.machines
        if not waiting or most is None or machines() + self._under_way(key.namespace) >= most:
            return
        first = next((other for other in waiting if other != key), None)
        if first is not None:
            self._forget_waiting(first)
            self._wake(first, 0.0)

    def _under_way(self, namespace: str) -> int:
        return sum(key.namespace == namespace for key in self._granted)

    def _count(self, key: Key, at: float) -> None:
        if self._limits.any:
            for owner in (str(key), key.namespace):
                self._begun.setdefault(owner, deque()).append(at)

    def _lately(self, owner: str, now: float) -> deque[float]:
        """The creations of a machine or namespace in the last hour, in order."""
        times = self._begun.get(owner, deque())
        while times and times[0] + _HOUR <= now:
            times.popleft()
        return times

    def _sweep(self, now: float) -> None:
        """Forget machines and namespaces without a creation in the last hour."""
        if now - self._swept_at >= _SWEEP:
            self._swept_at = now
            for owner in [owner for owner, times in self._begun.items() if not times or times[-1] + _HOUR <= now]:
                del self._begun[owner]

    def _forget_waiting(self, key: Key) -> None:
        waiting = self._waiting.get(key.namespace)
        if waiting is not None:
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[key.namespace]
