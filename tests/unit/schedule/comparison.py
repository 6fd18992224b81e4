"""Holds an implementation against an oracle, over all zones and near the changes of their clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Protocol

from hypothesis import settings
from hypothesis import strategies as st

from fivespot.schedule import Evaluation, zone_names
from fivespot.schedule.civil import Zone
from fivespot.schedule.search import Readings, Search, Segment
from unit.schedule.oracle import jump_between, local_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALL = sorted(zone_names())
EVERY_DAY = frozenset(range(7))
HOUR, DAY = 3600, 86_400
FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2026, 2028))

QUICK = settings(max_examples=150)


class Timeline(Protocol):
    """The results that are compared."""

    _search: Search

    def evaluate(self, at: datetime) -> Evaluation: ...

    def transitions(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, bool]]: ...


class Oracle(Protocol):
    """The oracle of a comparison."""

    def active(self, at: int) -> bool: ...


def year(number: int) -> int:
    """The first second of a year."""
    return int((datetime(number, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())


def instant(at: int) -> datetime:
    return EPOCH + timedelta(seconds=at)


def changes_in(timeline: Timeline, start: int, end: int) -> tuple[bool, list[tuple[int, bool]]]:
    """The state at the start, and the changes before the end."""
    found = [
        (int((at - EPOCH).total_seconds()), active) for at, active in timeline.transitions(instant(start), instant(end))
    ]
    return timeline.evaluate(instant(start)).active, found


def check(timeline: Timeline, oracle: Oracle, start: int, end: int, step: int, lag: int = 0) -> None:
    """The two agree at every step, on both sides of every change, and changes alternate.

    Every fifth instant is also looked at afresh, as by a process that has just started.

    :param lag: the schedule's lag time in seconds, by which it is later than its search.
    """
    state, changes = changes_in(timeline, start, end)
    following = iter([*changes, (end, False)])
    change, new_state = next(following)
    moments = sorted(
        {*range(start, end, step), *(at for at, _ in changes), *(at - 1 for at, _ in changes)} - {start - 1}
    )
    for index, at in enumerate(moments):
        while at >= change:
            assert new_state is not state, f"no change at {instant(change)}"
            state = new_state
            change, new_state = next(following)
        assert oracle.active(at) is state, f"{instant(at)} by {oracle}"
        if index % 5:
            continue
        afresh = timeline._search.search(at - lag)
        assert (afresh.active, min(afresh.end + lag, end)) == (state, change), f"{instant(at)} by {oracle}"


@cache
def clock_changes(zone: str) -> tuple[int, ...]:
    """The instants of 2026 and 2027 at which the zone's offset changes, found day by day by the oracle's library."""
    return tuple(
        jump_between(zone, day, day + DAY)
        for day in range(FIRST, LAST, DAY)
        if local_time(zone, day).offset != local_time(zone, day + DAY).offset
    )


@cache
def clock_behaviour(zone: str) -> tuple[tuple[int, int, int], ...]:
    """The changes of 2026 and 2027 by the oracle's library: the instant, and the offsets before and after."""

    def offset(at: int) -> int:
        return round(local_time(zone, at).offset.total("seconds"))

    return tuple((at, offset(at - 1), offset(at)) for at in clock_changes(zone))


@cache
def one_zone_of_each_kind() -> tuple[str, ...]:
    """A zone for each list of changes in 2026 and 2027; all zones with the same list go through the same readings."""
    return tuple({clock_behaviour(zone): zone for zone in reversed(ALL) if clock_behaviour(zone)}.values())


zones: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(ALL),
    st.sampled_from(["Australia/Lord_Howe", "Antarctica/Troll", "America/Santiago", "Europe/Berlin", "Africa/Cairo"]),
)


@st.composite
def periods(draw: st.DrawFn, earliest: int, latest: int) -> tuple[str, int]:
    """A zone and a whole quarter of an hour, often near a change of the zone's clock."""
    zone = draw(zones)
    nearby = clock_changes(zone)
    if nearby and draw(st.integers(0, 3)) > 0:
        at = draw(st.sampled_from(nearby)) - draw(st.integers(0, 3 * DAY))
    else:
        at = draw(st.integers(earliest, latest))
    return zone, at - at % 900


class Plodding(Search):
    """Looks at each week in turn, for fifty years."""

    def search(self, at: int) -> Segment:
        first = self.active(at, at + DAY)
        active = bool(first) and first[0][0] == at
        for start in range(at, at + 50 * 366 * DAY, 28 * DAY):
            end = self._edge(self.active(start, start + 28 * DAY), start, start + 28 * DAY, active)
            if end is not None:
                return Segment(at, end, active)
        return Segment(at, 10**15, active)


def check_skipping_ahead(zone: Zone, pattern: Readings, lead: int, at: int) -> None:
    """Skipping ahead finds what looking at each week finds."""
    quick, plodding = Search(zone, pattern, lead).search(at), Plodding(zone, pattern, lead).search(at)
    assert quick == plodding or (
        plodding.end == 10**15 and quick.end > at + 50 * 365 * DAY and quick.active == plodding.active
    )
