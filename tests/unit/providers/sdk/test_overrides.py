"""Overrides: a table for each rule, and a second implementation that goes through time minute by minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.providers.sdk import OVERRIDDEN, Override, OverrideOutcome, OverrideRecord, Verdict, apply_overrides
from fivespot.providers.sdk.override_spec import OverrideEntry, read_overrides, read_records, write_records
from fivespot.providers.sdk.overrides import OverrideState, Rule, Until

NINE, FIVE = 9, 17


def t(hour: float, day: int = 1) -> datetime:
    """An hour of a day in December 2026; the first is a Tuesday."""
    return datetime(2026, 12, day, tzinfo=UTC) + timedelta(hours=hour)


def office(at: datetime) -> Verdict:
    """09:00 to 17:00 on weekdays, in UTC."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for days in range(4):
        for hour in (NINE, FIVE):
            change = day + timedelta(days=days, hours=hour)
            if change > at and change.weekday() < 5:
                return Verdict(hour == FIVE, change, "WindowOpen" if hour == FIVE else "WindowClosed")
    raise AssertionError("a weekday comes within four days")


def always(active: bool) -> Rule:
    return lambda at: Verdict(active)


class Scene:
    """Overrides over a rule, run at instants that go forward, with the memory that status would keep."""

    def __init__(self, *overrides: Override, rule: Rule = office) -> None:
        self.overrides = list(overrides)
        self.rule = rule
        self.records: dict[str, OverrideRecord] = {}

    def run(self, now: datetime, *, base: Verdict | None = None, silent: bool = False) -> OverrideOutcome:
        base = None if silent else base or self.rule(now)
        folded = apply_overrides(self.overrides, self.records, base, self.rule, now)
        # Through the JSON of status and back, as it is remembered.
        self.records = read_records(write_records(folded.records))
        assert tuple(self.records.values()) == folded.records
        return folded

    def active(self, now: datetime) -> bool:
        verdict = self.run(now).verdict
        assert verdict is not None
        return verdict.active

    def until(self, now: datetime) -> datetime | None:
        verdict = self.run(now).verdict
        assert verdict is not None
        return verdict.until

    def states(self, now: datetime) -> dict[str, str]:
        return {entry.name: entry.state.value for entry in self.run(now).records}


def on(name: str = "on", **fields: object) -> Override:
    return Override(name, True, **fields)  # type: ignore[arg-type]


def off(name: str = "off", **fields: object) -> Override:
    return Override(name, False, **fields)  # type: ignore[arg-type]


# Which one decides ---------------------------------------------------------------------------------------------------


def test_without_overrides_the_schedule_decides() -> None:
    folded = Scene().run(t(12))
    assert (folded.verdict, folded.overridden, folded.records, folded.notes) == (office(t(12)), False, (), ())


def test_an_override_until_an_instant_holds_and_ends_by_itself() -> None:
    scene = Scene(on(until=t(23.5)))
    folded = scene.run(t(15))
    assert folded.verdict is not None
    assert (folded.verdict.active, folded.verdict.reason, folded.overridden) == (True, OVERRIDDEN, True)
    assert folded.verdict.until == t(23.5), "at 17:00 the schedule closes, and nothing changes"
    assert scene.active(t(20))
    assert not scene.active(t(23.5)), "the end is exclusive"
    assert scene.until(t(23.5)) == t(9, 2)


def test_an_override_that_says_what_the_schedule_says_changes_the_next_transition_alone() -> None:
    scene = Scene(on(until=t(19)))
    assert (scene.active(t(10)), scene.until(t(10))) == (True, t(19))
    assert Scene(on(until=t(16))).until(t(10)) == t(17), "it ends within the window"


def test_a_booked_override_has_no_effect_before_it_starts() -> None:
    scene = Scene(on(begin=t(20), until=t(22)))
    assert (scene.active(t(18)), scene.until(t(18)), scene.states(t(18))) == (False, t(20), {"on": "Pending"})
    assert (scene.active(t(20)), scene.until(t(20)), scene.states(t(20))) == (True, t(22), {"on": "InForce"})
    assert (scene.active(t(22)), scene.states(t(22))) == (False, {"on": "Expired"})


def test_the_one_that_started_last_decides_and_hands_back_to_the_one_before() -> None:
    scene = Scene(on("long", until=t(22)), off("short", begin=t(19), until=t(20)))
    assert scene.active(t(18))
    assert scene.until(t(18)) == t(19)
    assert (scene.active(t(19)), scene.until(t(19))) == (False, t(20))
    assert scene.states(t(19)) == {"long": "Overruled", "short": "InForce"}
    assert scene.active(t(20))
    assert scene.states(t(20)) == {"long": "InForce", "short": "Expired"}


@pytest.mark.contract("C7")
@pytest.mark.parametrize("turned", [False, True])
def test_of_two_that_start_at_once_the_last_by_name_decides(turned: bool) -> None:
    both = [on("b", until=t(23)), off("a", until=t(23))]
    assert Scene(*(reversed(both) if turned else both)).active(t(20))


def test_one_that_is_added_later_starts_later() -> None:
    scene = Scene(on("z", until="forever"))
    scene.run(t(10))
    scene.overrides.append(off("a", until="forever"))
    assert not scene.active(t(10.5))
    scene.overrides.pop()
    assert scene.active(t(11))


# When it ends --------------------------------------------------------------------------------------------------------


def test_until_the_next_transition_is_the_default_and_is_fixed_when_the_override_starts() -> None:
    """A machine stopped by hand on Tuesday at 11:00 comes back with the next window, not before."""
    scene = Scene(off())
    assert not scene.active(t(11))
    assert scene.records["off"].end == t(17)
    # What the schedule would say meanwhile, and an edit of it, do not move the end.
    scene.rule = lambda at: Verdict(True, t(20))
    assert not scene.active(t(16))
    assert scene.records["off"].end == t(17)
    assert scene.active(t(17))


def test_at_night_the_next_transition_is_the_morning() -> None:
    scene = Scene(on())
    assert scene.active(t(20))
    assert scene.until(t(20)) == t(17, 2), "it hands over to the open window without a change"
    assert scene.active(t(9, 2))
    assert scene.states(t(9, 2)) == {"on": "Expired"}


def test_a_booked_one_ends_with_the_first_transition_after_its_start() -> None:
    scene = Scene(off(begin=t(11, 2)))
    assert scene.until(t(18)) == t(9, 2)
    assert scene.until(t(10, 2)) == t(11, 2), "and then it is off until 17:00"
    # Nobody was there when it started; what ends it is what would have ended it then.
    assert scene.run(t(16, 2)).records[0].end == t(17, 2)
    assert scene.states(t(17, 2)) == {"off": "Expired"}


def test_one_that_is_over_before_it_is_seen_has_no_effect_and_says_so() -> None:
    folded = Scene(on("late", begin=t(6), until=t(7)), off("next", begin=t(8))).run(t(12))
    assert [entry.state for entry in folded.records] == [OverrideState.EXPIRED, OverrideState.EXPIRED]
    assert not folded.overridden
    assert [note.reason for note in folded.notes] == ["OverrideExpired", "OverrideExpired"]
    assert "before it was seen, and has no effect" in folded.notes[0].message
    assert folded.records[1].end == t(9), "the transition after 08:00"


def test_forever_holds_until_it_is_removed() -> None:
    scene = Scene(off(until="forever"))
    folded = scene.run(t(11))
    assert folded.verdict is not None
    assert (folded.verdict.active, folded.verdict.until, folded.again) == (False, None, None)
    assert folded.records[0].open_ended
    assert not scene.active(t(11, 28))
    scene.overrides.clear()
    assert scene.active(t(11, 28))
    assert scene.records == {}


@pytest.mark.contract("C7")
def test_where_no_transition_comes_it_holds_until_it_is_removed_and_that_is_told() -> None:
    scene = Scene(off(), rule=always(True))
    folded = scene.run(t(11))
    assert [(note.reason, note.warning) for note in folded.notes] == [
        ("OverrideStarted", False),
        ("OverrideOpenEnded", True),
    ]
    assert folded.records[0].open_ended
    # Also when the schedule is changed by hand: none came when it was fixed.
    assert not scene.active(t(12))
    scene.rule = always(False)
    assert scene.states(t(13)) == {"off": "InForce"}
    assert scene.run(t(14)).notes == ()


def test_where_a_change_cannot_be_foreseen_the_first_that_is_seen_ends_it() -> None:
    follows = Verdict(False, foreseen=False)
    scene = Scene(on(), rule=lambda at: follows)
    folded = scene.run(t(11))
    assert folded.verdict is not None
    assert (folded.verdict.active, folded.verdict.until) == (True, None)
    assert [note.reason for note in folded.notes] == ["OverrideStarted"]
    assert folded.records[0].base is False
    assert scene.run(t(12), silent=True).overridden, "no verdict is no change"
    assert scene.run(t(13)).overridden
    ended = scene.run(t(14), base=replace(follows, active=True))
    assert not ended.overridden
    assert (ended.records[0].state, ended.records[0].end) == (OverrideState.EXPIRED, t(14))
    assert not scene.run(t(15)).overridden, "and it stays over"


# What is remembered --------------------------------------------------------------------------------------------------


@pytest.mark.contract("C7")
def test_a_start_is_remembered_and_lost_memory_starts_anew_with_an_event() -> None:
    scene = Scene(on("first"), off("second", begin=t(18)))
    assert [note.reason for note in scene.run(t(20)).notes] == ["OverrideStarted", "OverrideStarted"]
    assert scene.run(t(21)).notes == ()
    assert scene.records["first"].start == t(20)
    scene.records = {}
    folded = scene.run(t(21.5))
    assert [entry.start for entry in folded.records] == [t(21.5), t(18)]
    # The token of one with a `from` is the same as before, so that event exists already.
    assert [note.once for note in folded.notes] == [
        "started first 2026-12-01T21:30:00+00:00",
        "started second 2026-12-01T18:00:00+00:00",
    ]


@pytest.mark.parametrize("other", [off("hold", until=t(23)), on("hold", begin=t(21), until=t(23))])
def test_another_verdict_or_start_under_the_same_name_is_another_override(other: Override) -> None:
    scene = Scene(on("hold", until=t(23)), off("between", begin=t(20.5), until=t(23)))
    scene.run(t(20))
    assert not scene.active(t(20.5))
    scene.overrides[0] = other
    folded = scene.run(t(21))
    assert folded.records[0].start == t(21)
    assert folded.records[0].state is OverrideState.IN_FORCE
    assert [note.reason for note in folded.notes] == ["OverrideStarted"]


def test_another_end_or_reason_is_the_same_override_prolonged() -> None:
    scene = Scene(on("lease", until=t(20)), off("between", begin=t(18.5), until=t(21)))
    scene.run(t(18))
    scene.overrides[0] = on("lease", until=t(23), reason="two more hours")
    folded = scene.run(t(19))
    assert folded.records[0].start == t(18)
    assert not folded.overridden or folded.records[0].state is OverrideState.OVERRULED
    # Also one that was over already.
    scene = Scene(on("lease", until=t(20)))
    scene.run(t(18))
    assert scene.states(t(20)) == {"lease": "Expired"}
    scene.overrides[0] = on("lease", until=t(23))
    assert scene.states(t(21)) == {"lease": "InForce"}


def test_an_end_that_is_changed_to_the_next_transition_is_the_next_one_from_then_on() -> None:
    scene = Scene(on(until=t(23)))
    scene.run(t(8))
    scene.overrides[0] = on()
    assert scene.run(t(18)).records[0].end == t(9, 2), "not 09:00, which was the first after the start"


def test_memory_that_cannot_be_read_counts_as_lost() -> None:
    whole = write_records(Scene(on()).run(t(11)).records)
    assert list(read_records(whole)) == ["on"]
    broken: object
    for broken in (None, {}, "text", [None], [{}], [{**whole[0], "startedAt": "noon"}], [{**whole[0], "active": 1}]):
        assert read_records(broken) == {}
    assert list(read_records([{"name": "x"}, *whole])) == ["on"]


# What the schedule says ----------------------------------------------------------------------------------------------


def test_a_final_verdict_is_not_overridden_and_settles_no_end() -> None:
    scene = Scene(on(), off("later", begin=t(20), until=t(21)))
    disabled = Verdict(False, None, "WindowClosed", "disabled", final=True)
    scene.rule = lambda at: disabled
    folded = scene.run(t(11))
    assert folded.verdict == disabled
    assert [entry.state for entry in folded.records] == [OverrideState.OVERRULED, OverrideState.PENDING]
    assert folded.records[0].end is None
    scene.rule = office
    assert scene.run(t(12)).records[0].end == t(17), "the next transition once there is a schedule again"


def test_while_the_schedule_gives_no_verdict_an_override_decides_all_the_same() -> None:
    scene = Scene(on(until=t(20)))
    folded = scene.run(t(11), silent=True)
    assert folded.verdict is not None
    assert folded.verdict.active
    assert "the schedule itself gives no verdict" in folded.verdict.message
    assert (folded.verdict.until, folded.again) == (None, t(20)), "what comes then cannot be said"
    after = scene.run(t(20), silent=True)
    assert after.verdict is None
    assert after.records[0].state is OverrideState.EXPIRED


def test_the_end_of_one_that_starts_without_a_schedule_is_settled_when_there_is_one() -> None:
    scene = Scene(off())
    assert scene.run(t(11), silent=True).records[0].end is None
    assert scene.run(t(18)).records[0].end == t(9, 2)


def test_a_schedule_whose_until_is_too_soon_is_looked_at_again_and_never_for_ever() -> None:
    scene = Scene(on(begin=t(11, 20)), rule=lambda at: Verdict(True, at + timedelta(minutes=1)))
    found = scene.until(t(11))
    assert found is not None
    assert found > t(11)


def test_messages_say_who_why_and_until_when() -> None:
    def message(override: Override, *, silent: bool = False) -> str:
        verdict = Scene(override).run(t(11), silent=silent).verdict
        assert verdict is not None
        return verdict.message

    assert message(off("stop", reason="disk swap")) == (
        "inactive by override stop (disk swap) until 2026-12-01T17:00:00Z; the schedule itself says active"
    )
    assert message(on("go", until="forever")) == (
        "active by override go until it is removed; the schedule itself says active"
    )
    assert message(on("go"), silent=True) == (
        "active by override go until the schedule's next change; the schedule itself gives no verdict"
    )


def test_entries_of_the_spec_become_values_in_utc() -> None:
    entries = [
        OverrideEntry(name="a", active=True),
        OverrideEntry(name="b", active=False, from_="2026-12-01T12:00:00+02:00", until="2026-12-01T12:00:00.5Z"),
        OverrideEntry(name="c", active=False, until="forever", reason="why"),
    ]
    assert read_overrides(entries) == (
        on("a"),
        off("b", begin=t(10), until=t(12) + timedelta(milliseconds=500)),
        off("c", until="forever", reason="why"),
    )
    assert read_overrides(None) == ()


# A second implementation ---------------------------------------------------------------------------------------------

HORIZON = 60
MINUTE = timedelta(minutes=1)


def minute(number: int) -> datetime:
    return t(0) + number * MINUTE


@dataclass(frozen=True)
class Asked:
    """An override as the model knows it: all in minutes. It is in the spec from `seen` on, until `gone`."""

    name: str
    active: bool
    seen: int
    gone: int
    begin: int | None
    until: int | str

    def override(self) -> Override:
        until: Until = minute(self.until) if isinstance(self.until, int) else self.until  # type: ignore[assignment]
        return Override(self.name, self.active, None if self.begin is None else minute(self.begin), until)


def asked(name: str) -> st.SearchStrategy[Asked]:
    moments = st.integers(0, HORIZON)

    def settle(active: bool, seen: int, length: int, begin: int | None, until: int | str) -> Asked:
        start = seen if begin is None else begin
        if isinstance(until, int) and until <= start:
            until = start + 1
        return Asked(name, active, seen, seen + length, begin, until)

    return st.builds(
        settle,
        st.booleans(),
        moments,
        st.integers(1, HORIZON),
        st.one_of(st.none(), moments),
        st.one_of(moments, st.sampled_from(["nextTransition", "forever"])),
    )


flips = st.lists(st.integers(1, HORIZON), unique=True, max_size=8).map(sorted)
plans = st.tuples(*(st.one_of(st.none(), asked(name)) for name in ("alfa", "bravo", "charlie"))).map(
    lambda found: [one for one in found if one is not None]
)


def rule_of(changes: Sequence[int], first: bool) -> Callable[[datetime], Verdict]:
    def rule(at: datetime) -> Verdict:
        passed = [change for change in changes if minute(change) <= at]
        ahead = [change for change in changes if minute(change) > at]
        return Verdict(first ^ (len(passed) % 2 == 1), minute(ahead[0]) if ahead else None)

    return rule


def model(plan: Iterable[Asked], changes: Sequence[int], first: bool, now: int) -> bool:
    """Evaluate a minute from the rules alone."""
    best: tuple[int, str, bool] | None = None
    for one in plan:
        start = one.seen if one.begin is None else one.begin
        end: float = float("inf")
        if isinstance(one.until, int):
            end = one.until
        elif one.until == "nextTransition":
            end = min((change for change in changes if change > start), default=end)
        if start <= now < end:
            candidate = (start, one.name, one.active)
            best = candidate if best is None else max(best, candidate)
    if best is not None:
        return best[2]
    return first ^ (sum(change <= now for change in changes) % 2 == 1)


def present(plan: Iterable[Asked], now: int) -> list[Asked]:
    return [one for one in plan if one.seen <= now < one.gone]


@pytest.mark.contract("C7")
@given(plans, flips, st.booleans())
def test_minute_by_minute_it_says_what_the_rules_say_and_when_that_changes(
    plan: list[Asked], changes: list[int], first: bool
) -> None:
    rule = rule_of(changes, first)
    memory: Mapping[str, OverrideRecord] = {}
    for now in range(HORIZON + 1):
        here = present(plan, now)
        folded = apply_overrides([one.override() for one in here], memory, rule(minute(now)), rule, minute(now))
        memory = {entry.name: entry for entry in folded.records}
        assert folded.verdict is not None
        says = folded.verdict.active
        assert says is model(here, changes, first, now)
        future = (later for later in range(now + 1, 3 * HORIZON) if model(here, changes, first, later) is not says)
        expected = next(future, None)
        assert folded.verdict.until == (None if expected is None else minute(expected))


@given(plans, flips, st.booleans())
def test_waking_up_when_it_asks_to_is_as_good_as_looking_every_minute(
    plan: list[Asked], changes: list[int], first: bool
) -> None:
    """Nothing is edited: all overrides are there from the start, and runs are at the announced instants alone."""
    plan = [replace(one, seen=0, gone=HORIZON * 4) for one in plan]
    rule = rule_of(changes, first)
    often: Mapping[str, OverrideRecord] = {}
    seldom: Mapping[str, OverrideRecord] = {}
    due: datetime | None = minute(0)
    said: bool | None = None
    overrides = [one.override() for one in plan]
    for now in range(HORIZON + 1):
        at = minute(now)
        folded = apply_overrides(overrides, often, rule(at), rule, at)
        often = {entry.name: entry for entry in folded.records}
        if due is not None and at >= due:
            rare = apply_overrides(overrides, seldom, rule(at), rule, at)
            assert rare.verdict is not None
            seldom = {entry.name: entry for entry in rare.records}
            said = rare.verdict.active
            due = min((instant for instant in (rare.verdict.until, rare.again) if instant is not None), default=None)
        assert folded.verdict is not None
        assert said is folded.verdict.active
        assert often == seldom
