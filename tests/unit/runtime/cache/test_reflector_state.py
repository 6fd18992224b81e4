"""The reflector's phase machine, transition by transition, and its back-off."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.runtime.cache.reflector_state import (
    BackingOff,
    Begin,
    Commit,
    Effect,
    Event,
    FetchPage,
    Follow,
    InitialEnd,
    KindChanged,
    ListFailed,
    Listing,
    OpenWatch,
    PageRead,
    ReflectorSettings,
    Rest,
    State,
    StopAsked,
    Stopped,
    StreamStalled,
    Syncing,
    TimerFired,
    Watching,
    WatchOver,
    backoff,
    step,
)
from fivespot.runtime.client import WatchEnd
from fivespot.runtime.errors import BrokenStreamError, ConnectError, DeadlineError, TransportError, api_error

SETTINGS = ReflectorSettings()


def take_step(state: State, event: Event, rng: float = 0.5) -> tuple[State, tuple[Effect, ...]]:
    return step(state, event, SETTINGS, rng)


def refusal(code: int, reason: str = "", retry_after: float | None = None) -> Exception:
    return api_error(code, reason, "no", request="list widgets", retry_after=retry_after)


def over(end: WatchEnd, error: Exception | None = None, *, received: int = 5, lasted: float = 60.0) -> WatchOver:
    return WatchOver(end, error, received, lasted, version=70, opened=lasted > 0)


WATCHING = State(phase=Watching(), version=50, streaming=False)


def test_a_paged_list_goes_through_all_pages_an_empty_one_in_the_middle_included() -> None:
    """kube-rs#1524: an empty page is no last page; only the missing token ends a list."""
    state, effects = take_step(State(streaming=False), Begin())
    assert effects == (FetchPage(""),)
    state, effects = take_step(state, PageRead(30, "t1"))
    assert (state.phase, effects) == (Listing("t1", 30), (FetchPage("t1"),))
    state, effects = take_step(state, PageRead(30, "t2"))
    assert effects == (FetchPage("t2"),)
    state, effects = take_step(state, PageRead(30, ""))
    assert effects == (Commit(30), OpenWatch(30))
    assert state.phase == Watching()


def test_pages_of_different_versions_are_watched_from_the_oldest() -> None:
    state, _ = take_step(State(streaming=False), Begin())
    state, _ = take_step(state, PageRead(30, "t1"))
    assert take_step(state, PageRead(33, ""))[1] == (Commit(30), OpenWatch(30))


@pytest.mark.parametrize("code", [410, 400])
def test_a_refused_continue_token_restarts_the_list_at_once_and_then_after_waits(code: int) -> None:
    state, _ = take_step(State(streaming=False), Begin())
    state, _ = take_step(state, PageRead(30, "t1"))
    state, effects = take_step(state, ListFailed(refusal(code)))
    assert (state.phase, effects) == (Listing(), (FetchPage(""),))
    state, _ = take_step(state, PageRead(31, "t1"))
    state, effects = take_step(state, ListFailed(refusal(code)))
    assert state.phase == BackingOff(relist=True)
    state, effects = take_step(state, TimerFired())
    assert effects == (FetchPage(""),)


def test_a_streaming_list_changed_world_as_the_watch() -> None:
    state, effects = take_step(State(), Begin())
    assert (state.phase, effects) == (Syncing(), (OpenWatch(None),))
    state, effects = take_step(state, InitialEnd(40))
    assert (state.phase, effects) == (Watching(), (Commit(40), Follow()))


def test_a_reconnect_never_asks_for_initial_events() -> None:
    """kube-rs#1844: the second watch starts from the version reached."""
    state, _ = take_step(State(), Begin())
    state, _ = take_step(state, InitialEnd(40))
    assert take_step(state, over(WatchEnd.CLEAN))[1] == (OpenWatch(70),)


@pytest.mark.parametrize("code", [400, 405, 415, 422])
def test_a_server_without_streaming_lists_is_listed_in_pages_from_then_on(code: int) -> None:
    state, _ = take_step(State(), Begin())
    state, effects = take_step(state, over(WatchEnd.REFUSED, refusal(code), lasted=0))
    assert effects == (FetchPage(""),)
    assert not state.streaming


def test_a_streaming_list_that_never_ends_is_given_up() -> None:
    """kubernetes#129408: the end bookmark may never come, without any error."""
    state, _ = take_step(State(), Begin())
    state, effects = take_step(state, StreamStalled())
    assert effects == (FetchPage(""),)
    assert not state.streaming


def test_streaming_lists_that_keep_breaking_are_given_up() -> None:
    state, _ = take_step(State(), Begin())
    for expected in (OpenWatch(None), OpenWatch(None), FetchPage("")):
        state, effects = take_step(state, over(WatchEnd.BROKEN, BrokenStreamError("cut"), lasted=1))
        assert isinstance(effects[0], Rest)
        state, effects = take_step(state, TimerFired())
        assert effects == (expected,)


def test_an_outage_during_a_streaming_list_says_nothing_about_streaming() -> None:
    state, _ = take_step(State(), Begin())
    for _ in range(10):
        state, _ = take_step(state, over(WatchEnd.BROKEN, BrokenStreamError("refused"), lasted=0))
        state, effects = take_step(state, TimerFired())
        assert effects == (OpenWatch(None),)


@pytest.mark.parametrize("end", [WatchEnd.EXPIRED, WatchEnd.GARBAGE])
def test_what_may_have_lost_events_leads_to_a_list(end: WatchEnd) -> None:
    state, effects = take_step(WATCHING, over(end))
    assert isinstance(effects[0], Rest)
    assert take_step(state, TimerFired())[1] == (FetchPage(""),)


@pytest.mark.parametrize("end", [WatchEnd.BROKEN, WatchEnd.IDLE, WatchEnd.THROTTLED])
def test_a_lost_connection_resumes_where_it_was(end: WatchEnd) -> None:
    state, effects = take_step(WATCHING, over(end))
    assert isinstance(effects[0], Rest)
    assert take_step(state, TimerFired())[1] == (OpenWatch(70),)


@pytest.mark.parametrize(("code", "then"), [(403, OpenWatch(70)), (500, OpenWatch(70)), (400, FetchPage(""))])
def test_a_refused_watch_is_tried_again(code: int, then: Effect) -> None:
    state, _ = take_step(WATCHING, over(WatchEnd.REFUSED, refusal(code), lasted=0))
    assert take_step(state, TimerFired())[1] == (then,)


def test_a_resource_that_is_no_longer_served_is_listed_once_it_is_again() -> None:
    state, effects = take_step(WATCHING, over(WatchEnd.REFUSED, refusal(404), lasted=0))
    assert state.phase == BackingOff(relist=True, served=False)
    assert state.phase.label == "not served"
    assert isinstance(effects[0], Rest)
    assert effects[0].until_served
    state, effects = take_step(state, KindChanged())
    assert effects == (FetchPage(""),)
    assert state.failures == 0


def test_a_watch_that_ends_at_once_is_not_repeated_in_a_hot_loop() -> None:
    state, effects = take_step(WATCHING, over(WatchEnd.CLEAN, lasted=0.01))
    assert isinstance(effects[0], Rest)
    state, _ = take_step(state, TimerFired())
    state, effects = take_step(state, over(WatchEnd.CLEAN, lasted=0.01))
    assert state.misses == 2, "although each brought something"


def test_watches_that_bring_nothing_at_all_lead_to_a_list() -> None:
    """A server behind the version asked for, such as one restored from a backup, is silent for ever."""
    state = WATCHING
    for _ in range(2):
        state, effects = take_step(state, over(WatchEnd.IDLE, received=0))
        state, effects = take_step(state, TimerFired())
        assert effects == (OpenWatch(70),)
    state, _ = take_step(state, over(WatchEnd.IDLE, received=0))
    assert take_step(state, TimerFired())[1] == (FetchPage(""),)


def rest(effects: tuple[Effect, ...]) -> float:
    assert isinstance(effects[-1], Rest)
    return effects[-1].seconds


UNAVAILABLE = refusal(503)


@pytest.mark.parametrize("end", [WatchEnd.BROKEN, WatchEnd.IDLE])
def test_a_connection_that_cannot_be_made_is_tried_again_within_seconds_however_long_it_lasts(end: WatchEnd) -> None:
    state, waits = WATCHING, []
    for _ in range(40):
        state, effects = take_step(state, over(end, ConnectError("refused"), lasted=0), rng=0.999)
        waits.append(rest(effects))
        state, _ = take_step(state, TimerFired())
    assert waits == sorted(waits), "slower and slower"
    assert waits[0] <= SETTINGS.backoff_base
    assert SETTINGS.connect_cap * 0.9 < waits[-1] <= SETTINGS.connect_cap


@pytest.mark.parametrize("error", [ConnectError("refused"), TransportError("reset before the answer")])
def test_a_list_that_does_not_reach_the_server_is_tried_again_within_seconds_too(error: Exception) -> None:
    state, _ = take_step(State(streaming=False), Begin())
    for _ in range(40):
        state, effects = take_step(state, ListFailed(error))
        assert rest(effects) <= SETTINGS.connect_cap
        state, _ = take_step(state, TimerFired())
    assert state.failures == 0


@pytest.mark.parametrize("error", [UNAVAILABLE, DeadlineError("slow"), BrokenStreamError("cut in the middle")])
def test_what_costs_the_server_work_is_repeated_ever_more_slowly(error: Exception) -> None:
    state, _ = take_step(State(streaming=False), Begin())
    for _ in range(40):
        state, effects = take_step(state, ListFailed(error), rng=0.999)
        state, _ = take_step(state, TimerFired())
    assert rest(effects) > SETTINGS.backoff_cap * 0.9


def test_a_server_that_answers_again_makes_lost_connections_count_no_more() -> None:
    state = WATCHING
    for _ in range(9):
        state, _ = take_step(state, over(WatchEnd.BROKEN, ConnectError("refused"), lasted=0))
        state, _ = take_step(state, TimerFired())
    state, effects = take_step(state, over(WatchEnd.BROKEN, received=1, lasted=0.5))
    assert state.misses == 1, "a watch that brought something"
    assert rest(effects) <= SETTINGS.backoff_base


def test_a_server_that_lets_us_watch_makes_its_refusals_count_no_more() -> None:
    """While it starts it refuses (403, 503, 429) for seconds, and it may be gone again before a watch lasted."""
    state = WATCHING
    for _ in range(9):
        state, _ = take_step(state, over(WatchEnd.REFUSED, UNAVAILABLE, lasted=0))
        state, _ = take_step(state, TimerFired())
    assert state.failures == 9
    state, effects = take_step(state, over(WatchEnd.BROKEN, received=0, lasted=0.1))
    assert state.failures == 0
    assert rest(effects) <= SETTINGS.backoff_base


def test_a_server_that_restarts_again_and_again_is_found_within_a_second_of_every_start() -> None:
    """Delays that add up over restarts make the last of them slow."""
    state = WATCHING
    for _ in range(10):
        # It runs for a while, goes, refuses connections, and comes back with refusals until it is ready.
        state, effects = take_step(state, over(WatchEnd.BROKEN, lasted=3.0), rng=0.999)
        for error in (ConnectError("refused"), ConnectError("refused"), UNAVAILABLE, UNAVAILABLE):
            state, _ = take_step(state, TimerFired())
            end = WatchEnd.REFUSED if error is UNAVAILABLE else WatchEnd.BROKEN
            state, effects = take_step(state, over(end, error, lasted=0), rng=0.999)
            assert rest(effects) <= 1.0
        state, _ = take_step(state, TimerFired())


def test_refusals_of_a_server_that_goes_away_before_it_lets_us_watch_do_not_add_up() -> None:
    state = WATCHING
    for _ in range(10):
        state, _ = take_step(state, over(WatchEnd.BROKEN, ConnectError("refused"), lasted=0))
        for _ in range(3):
            state, _ = take_step(state, TimerFired())
            state, effects = take_step(state, over(WatchEnd.REFUSED, UNAVAILABLE, lasted=0), rng=0.999)
            assert rest(effects) <= 1.0
        state, _ = take_step(state, TimerFired())


@pytest.mark.parametrize("end", [WatchEnd.REFUSED, WatchEnd.THROTTLED, WatchEnd.BROKEN])
def test_a_watch_that_lasted_forgets_earlier_failures(end: WatchEnd) -> None:
    state = WATCHING
    for failures in (1, 2, 3):
        state, _ = take_step(state, over(WatchEnd.REFUSED, UNAVAILABLE, lasted=0))
        assert state.failures == failures
        state, _ = take_step(state, TimerFired())
    state, _ = take_step(state, over(end, received=0, lasted=SETTINGS.steady_after))
    assert state.failures + state.misses == 1


def test_watches_that_break_at_once_are_not_opened_in_a_hot_loop() -> None:
    state = WATCHING
    for _ in range(40):
        state, effects = take_step(state, over(WatchEnd.BROKEN, received=0, lasted=0.01), rng=0.999)
        state, _ = take_step(replace(state, barren=0), TimerFired())
    assert rest(effects) > SETTINGS.connect_cap * 0.9


@pytest.mark.parametrize("end", [WatchEnd.EXPIRED, WatchEnd.GARBAGE])
def test_watches_that_lead_to_a_list_again_and_again_slow_down_unless_they_last_long(end: WatchEnd) -> None:
    state, _ = take_step(WATCHING, over(end, lasted=0.1))
    for lists in (2, 3):
        state, _ = take_step(state, TimerFired())
        state, _ = take_step(state, PageRead(80, ""))
        state, _ = take_step(state, over(end, lasted=SETTINGS.steady_after))
        assert state.relists == lists, "a list is dear, so a good one forgets nothing"
    state, _ = take_step(state, TimerFired())
    state, _ = take_step(state, PageRead(80, ""))
    state, _ = take_step(state, over(end, lasted=SETTINGS.healthy_after))
    assert state.relists == 1


@pytest.mark.parametrize("end", [WatchEnd.CLEAN, WatchEnd.BROKEN])
def test_a_server_that_ends_every_watch_at_once_is_listed_ever_more_seldom(end: WatchEnd) -> None:
    state, waits = WATCHING, []
    for _ in range(60):
        state, effects = take_step(state, over(end, received=0, lasted=0.1), rng=0.999)
        if isinstance(state.phase, BackingOff) and state.phase.relist:
            waits.append(rest(effects))
            state, _ = take_step(state, TimerFired())
            state, _ = take_step(state, PageRead(80, ""))
        else:
            assert rest(effects) <= SETTINGS.connect_cap, "a watch costs little"
            state, _ = take_step(state, TimerFired())
    assert waits == sorted(waits)
    assert waits[-1] > SETTINGS.backoff_cap * 0.9


def test_a_server_that_closes_watches_while_it_starts_is_read_within_seconds_after_many_starts() -> None:
    """It lets watch, is not ready after all and closes, and all it refused before must not add up."""
    state = WATCHING
    for _ in range(10):
        state, _ = take_step(state, over(WatchEnd.BROKEN, received=1, lasted=0.9))
        refused = (over(WatchEnd.REFUSED, UNAVAILABLE, lasted=0),) * 3
        expired = over(WatchEnd.EXPIRED, received=0, lasted=0.01)
        for each in (*refused, expired):
            state, effects = take_step(replace(state, phase=Watching()), each, rng=0.999)
            assert rest(effects) <= SETTINGS.connect_cap
        state, _ = take_step(replace(state, phase=Listing()), PageRead(80, ""))
        state, effects = take_step(state, over(WatchEnd.CLEAN, received=0, lasted=0.2), rng=0.999)
        assert rest(effects) <= SETTINGS.connect_cap
        state, _ = take_step(state, TimerFired())


def test_stop_is_the_end_of_any_state() -> None:
    for phase in (Listing(), Syncing(), Watching(), BackingOff(relist=False)):
        state, effects = take_step(State(phase=phase), StopAsked())
        assert (state.phase, effects) == (Stopped(), ())


def test_what_cannot_happen_is_a_mistake_of_the_driver() -> None:
    with pytest.raises(AssertionError, match="cannot happen"):
        take_step(WATCHING, PageRead(1, ""))


CAPS = st.sampled_from([SETTINGS.backoff_cap, SETTINGS.connect_cap])


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True), CAPS)
def test_back_off_stays_between_half_and_all_of_its_ceiling(count: int, rng: float, cap: float) -> None:
    ceiling = min(cap, SETTINGS.backoff_base * 2 ** min(count - 1, 64))
    assert ceiling / 2 <= backoff(count, SETTINGS, rng, cap=cap) <= ceiling


@given(st.floats(0.001, 10_000), st.floats(0, 1, exclude_max=True))
def test_no_request_comes_before_the_server_wants_it(asked: float, rng: float) -> None:
    """kube-rs#717: Retry-After is a floor; but a hostile one does not stop us for ever."""
    wait = backoff(1, SETTINGS, rng, cap=SETTINGS.backoff_cap, retry_after=asked)
    assert min(asked, SETTINGS.retry_after_cap) <= wait <= SETTINGS.retry_after_cap * 1.5


@given(st.integers(1, 100), st.floats(0.001, 10), st.floats(0, 1, exclude_max=True))
def test_a_server_that_says_when_to_come_back_is_taken_at_its_word(count: int, asked: float, rng: float) -> None:
    """ "storage is (re)initializing", says a server that starts, again and again, and asks for a second each time."""
    assert backoff(count, SETTINGS, rng, cap=SETTINGS.backoff_cap, retry_after=asked) <= 4 * asked


@pytest.mark.parametrize("cap", [SETTINGS.backoff_cap, SETTINGS.connect_cap])
@pytest.mark.parametrize("retry_after", [None, 7.0])
def test_a_crowd_of_informers_does_not_come_back_together(retry_after: float | None, cap: float) -> None:
    """kube-rs#1897: jitter that is really used, shown by its distribution."""
    rng = random.Random(3)
    waits = sorted(backoff(6, SETTINGS, rng.random(), cap=cap, retry_after=retry_after) for _ in range(600))
    spread = waits[-1] - waits[0]
    assert spread > 0.4 * waits[-1] * (1 if retry_after is None else 0.7)
    tenths = [sum(1 for wait in waits if waits[0] + spread * i / 10 <= wait) for i in range(10)]
    in_each = [a - b for a, b in zip(tenths, [*tenths[1:], 0], strict=True)]
    assert min(in_each) > 30


EVENTS: dict[type[Event], st.SearchStrategy[Event]] = {
    PageRead: st.builds(PageRead, st.integers(1, 100), st.sampled_from(["", "t"])),
    ListFailed: st.builds(
        ListFailed,
        st.sampled_from([*(refusal(code) for code in (400, 403, 404, 410, 429, 500)), ConnectError("x")]),
    ),
    InitialEnd: st.builds(InitialEnd, st.integers(1, 100)),
    StreamStalled: st.just(StreamStalled()),
    WatchOver: st.builds(
        WatchOver,
        st.sampled_from(list(WatchEnd)),
        st.sampled_from([None, *(refusal(code) for code in (400, 403, 404, 422, 429, 503))]),
        st.integers(0, 2),
        st.sampled_from([0.0, 0.5, 100.0]),
        st.integers(1, 100),
        st.booleans(),
    ),
    TimerFired: st.just(TimerFired()),
}

POSSIBLE: dict[type[Effect], tuple[type[Event], ...]] = {
    FetchPage: (PageRead, ListFailed),
    OpenWatch: (InitialEnd, StreamStalled, WatchOver),
    Follow: (WatchOver,),
    Rest: (TimerFired,),
}


@settings(max_examples=100)
@given(st.data(), st.booleans())
def test_whatever_happens_there_is_one_next_step_and_no_hot_loop(data: st.DataObject, streaming: bool) -> None:
    state, effects = take_step(State(streaming=streaming), Begin())
    immediate = 0
    for _ in range(25):
        last = effects[-1]
        assert all(isinstance(effect, Commit) for effect in effects[:-1])
        expected = POSSIBLE[type(last)]
        if isinstance(last, OpenWatch) and last.version is not None:
            expected = (WatchOver,)
        event = data.draw(st.one_of([EVENTS[kind] for kind in expected]))
        state, effects = take_step(state, event)
        assert effects
        failed = isinstance(event, ListFailed) or (
            isinstance(event, WatchOver) and (event.end is not WatchEnd.CLEAN or event.lasted < 1)
        )
        if failed:
            immediate = 0 if isinstance(effects[-1], Rest) else immediate + 1
            assert immediate <= 2, "failures follow one another without a wait"
