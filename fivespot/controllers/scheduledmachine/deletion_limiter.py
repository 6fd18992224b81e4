"""The administrator's limit on deletions by schedule (contract B8.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fivespot.runtime import Key

__all__ = ["DeletionLimiter"]

_MINUTE = 60.0
_PATIENCE = 5.0
"""Seconds after which a machine that did not take its turn lets others of its namespace go first."""
_NOTICEABLE = 1.0


@dataclass(slots=True)
class _Line:
    """The waiting machines of one namespace, in order."""

    places: dict[Key, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    keys: dict[int, Key] = field(default_factory=dict)

    def append(self, key: Key, place: int) -> None:
        self.places[key] = place
        self.order.append(place)
        self.keys[place] = key

    def remove(self, key: Key) -> None:
        place = self.places.pop(key)
        del self.order[bisect_left(self.order, place)]
        del self.keys[place]

    def index(self, key: Key) -> int:
        return bisect_left(self.order, self.places[key])

    def at(self, index: int) -> Key:
        return self.keys[self.order[index]]


class DeletionLimiter:
    """Limits how many deletions begin in any 60 seconds, and lets namespaces take turns. An unused turn is given
    back, and the next machine is woken. Times are the loop's monotonic seconds.

    :param per_minute: deletions that may begin within any 60 seconds; None for no limit.
    :param wake: called with a machine whose turn comes earlier than announced, and the seconds until then.
    """

    def __init__(self, per_minute: int | None, wake: Callable[[Key, float], None]) -> None:
        self._per_minute = per_minute
        self._wake = wake
        self._begun: deque[float] = deque()
        self._granted: set[Key] = set()
        self._lines: dict[str, _Line] = {}
        self._announced: dict[Key, float] = {}
        self._places = 0

    def __len__(self) -> int:
        return len(self._announced) + len(self._granted)

    def begin_term(self, begun: Iterable[float]) -> None:
        """Start over at the beginning of a term. :param begun: the times of known deletions, by whichever process."""
        self._lines.clear()
        self._announced.clear()
        self._granted.clear()
        self._begun = deque(sorted(begun)[-self._per_minute :] if self._per_minute is not None else ())

    def wait(self, key: Key, now: float) -> float:
        """Return the seconds until the deletion of this machine is expected to begin; 0 takes the turn."""
        if self._per_minute is None or key in self._granted:
            return 0.0
        self._expire(now)
        self._pass_over_absent(now)
        line = self._lines.setdefault(key.namespace, _Line())
        if key not in line.places:
            self._append(line, key)
        turn = self._turn(self._position(key), now)
        if turn <= now:
            self._leave(key)
            self._granted.add(key)
            # The next turn belongs to another namespace.
            if key.namespace in self._lines:
                self._lines[key.namespace] = self._lines.pop(key.namespace)
            return 0.0
        self._announced[key] = turn
        return turn - now

    def used(self, key: Key, now: float) -> None:
        """Note that the deletion has begun, or may have."""
        if key in self._granted:
            self._granted.discard(key)
            self._begun.append(now)

    def release(self, key: Key, now: float) -> None:
        """Give the turn to the next machine: the deletion was refused, or is not wanted any more."""
        waited = key in self._announced
        if waited:
            self._leave(key)
        if waited or key in self._granted:
            self._granted.discard(key)
            self._expire(now)
            self._wake_earlier(now)

    # -- turns ---------------------------------------------------------------------------------------------------

    def _append(self, line: _Line, key: Key) -> None:
        self._places += 1
        line.append(key, self._places)

    def _leave(self, key: Key) -> None:
        line = self._lines[key.namespace]
        line.remove(key)
        self._announced.pop(key, None)
        if not line.places:
            del self._lines[key.namespace]

    def _expire(self, now: float) -> None:
        while self._begun and self._begun[0] + _MINUTE <= now:
            self._begun.popleft()

    def _pass_over_absent(self, now: float) -> None:
        for line in self._lines.values():
            if len(line.places) > 1 and self._announced.get(line.at(0), now) + _PATIENCE < now:
                key = line.at(0)
                line.remove(key)
                self._append(line, key)

    def _position(self, key: Key) -> int:
        """Return the number of deletions before this one when namespaces take turns."""
        index = self._lines[key.namespace].index(key)
        before, passed = 0, False
        for namespace, line in self._lines.items():
            passed = passed or namespace == key.namespace
            before += min(len(line.order), index if passed else index + 1)
        return before

    def _turn(self, position: int, now: float) -> float:
        assert self._per_minute is not None
        free = self._per_minute - len(self._begun) - len(self._granted)
        if position < free:
            return now
        later = position - max(free, 0)
        # Turns that are taken and not used yet count as used now.
        ends = [begun + _MINUTE for begun in self._begun] + [now + _MINUTE] * (self._per_minute - len(self._begun))
        rounds, index = divmod(later, self._per_minute)
        return ends[index] + rounds * _MINUTE

    def _wake_earlier(self, now: float) -> None:
        for position, key in enumerate(self._first(self._per_minute or 0)):
            turn = self._turn(position, now)
            if turn < self._announced.get(key, turn) - _NOTICEABLE:
                self._announced[key] = turn
                self._wake(key, turn - now)

    def _first(self, count: int) -> Iterator[Key]:
        """Yield the first machines that will have a turn, in order."""
        lines, index = list(self._lines.values()), 0
        while count > 0 and (lines := [line for line in lines if len(line.order) > index]):
            for line in lines[:count]:
                yield line.at(index)
            count -= len(lines)
            index += 1
