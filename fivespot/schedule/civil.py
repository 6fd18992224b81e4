"""The wall clock of a zone: converts between instants and wall-clock readings.

Instants are whole seconds from 1970 in UTC; wall-clock readings are counted the same way, as if the wall showed
UTC. Both are plain integers, so that no date is out of range and no arithmetic depends on a zone by accident.

**The one rule.** A boundary takes effect once: the first time the wall clock reads it, and at the jump if it falls in
a gap; that is, at the first instant at which the clock reads *that or more*. Equivalently, windows follow a second
clock that never goes back: it stands still while an hour is repeated, and jumps over a gap with the wall clock. Since
it only moves forward, boundaries take effect in order, and adjacent windows stay adjacent in every zone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

FAR = 10**15
"""A number of seconds beyond every date: 'never', and negated 'always'."""

CYCLE = 146_097 * 86_400
"""Seconds in 400 years, after which dates and weekdays, and with them the rules for summer time, repeat."""


class Era(NamedTuple):
    """A period with one offset: ``start`` inclusive, ``end`` exclusive, ``offset`` in seconds east of UTC."""

    start: int
    end: int
    offset: int


class Zone:
    """A time zone. Equal only to itself: get one from :func:`fivespot.schedule.load_zone`.

    ``instants`` are its changes and ``offsets`` the offsets between them (one more). When ``cycle_start`` is
    given, everything from there on repeats every 400 years, and the lists must reach two years beyond the first
    repetition; otherwise the last offset lasts forever.
    """

    __slots__ = (
        "_clock_offsets",
        "_clock_starts",
        "_cycle_start",
        "_instants",
        "_offsets",
        "_readings",
        "name",
    )

    def __init__(
        self, name: str, instants: Sequence[int], offsets: Sequence[int], cycle_start: int | None = None
    ) -> None:
        self.name = name
        self._cycle_start = FAR if cycle_start is None else cycle_start
        self._instants: list[int] = []
        self._offsets = [offsets[0]]
        for instant, offset in zip(instants, offsets[1:], strict=True):
            if offset != self._offsets[-1]:  # many changes only rename the offset
                self._instants.append(instant)
                self._offsets.append(offset)

        # The clock that never goes back, in pieces: first reading, offset, first instant.
        self._readings = [-FAR]
        self._clock_offsets = [self._offsets[0]]
        self._clock_starts = [-FAR]
        highest = self._instants[0] + self._offsets[0] if self._instants else FAR
        for index, start in enumerate(self._instants):
            offset = self._offsets[index + 1]
            end = self._instants[index + 1] if index + 1 < len(self._instants) else FAR
            if end + offset > highest:
                reading = max(start + offset, highest)
                self._readings.append(reading)
                self._clock_offsets.append(offset)
                self._clock_starts.append(reading - offset)
                highest = end + offset

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    @property
    def settled(self) -> int:
        """The instant from which on the zone repeats every 400 years; :data:`FAR` when it only ever has one
        offset after its last change."""
        return self._cycle_start

    def era(self, at: int) -> Era:
        """Return the period of one offset that contains ``at``."""
        shift = self._repetition(at)
        index = bisect_right(self._instants, at - shift)
        start = self._instants[index - 1] + shift if index else -FAR
        end = self._instants[index] + shift if index < len(self._instants) else FAR
        return Era(start, end, self._offsets[index])

    def instant_of(self, reading: int) -> int:
        """Return the first instant at which the wall clock reads ``reading`` or more."""
        shift = self._repetition(reading)
        reading -= shift
        index = bisect_right(self._readings, reading)
        instant = reading - self._clock_offsets[index - 1]
        if index < len(self._readings) and instant > self._clock_starts[index]:
            instant = self._clock_starts[index]  # the reading is in a gap
        return instant + shift

    def changes(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield every change of offset in ``[start, end)``: the instant, the offset before and the one after."""
        era = self.era(start - 1)
        while era.end < end:
            following = self.era(era.end)
            yield era.end, era.offset, following.offset
            era = following

    def _repetition(self, at: int) -> int:
        """Return the whole cycles by which ``at`` must be moved back to be within the lists."""
        beyond = at - self._cycle_start
        return beyond // CYCLE * CYCLE if beyond >= CYCLE else 0
