"""The state machine of a reflector: LIST, then WATCH, then whatever mends a failure. Pure; :mod:`.reflector` runs it.

::

    Empty ──▶ Syncing (streaming list) ──▶ Watching ◀──▶ BackingOff
      │          │ not supported              ▲  │           │
      └────▶ Listing (pages) ─────────────────┘  └─ rewound ─┴──▶ Syncing or Listing

:func:`step` takes a state and an event and returns the next state with the effects to carry out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from fivespot.runtime.backoff import backoff_ceiling
from fivespot.runtime.client import WatchEnd
from fivespot.runtime.errors import (
    ApiError,
    BadRequestError,
    BrokenStreamError,
    ConnectError,
    DeadlineError,
    GoneError,
    InvalidError,
    MethodNotAllowedError,
    NotFoundError,
    NotServedError,
    TransportError,
    UnsupportedMediaError,
)

__all__ = [
    "BackingOff",
    "Begin",
    "Commit",
    "Effect",
    "Empty",
    "Event",
    "FetchPage",
    "Follow",
    "HistoryRewound",
    "InitialEnd",
    "KindChanged",
    "ListFailed",
    "Listing",
    "OpenWatch",
    "PageRead",
    "Phase",
    "ReflectorSettings",
    "Rest",
    "State",
    "StopAsked",
    "Stopped",
    "StreamStalled",
    "Syncing",
    "TimerFired",
    "Transition",
    "WatchOver",
    "Watching",
    "backoff",
    "step",
]


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Limits of a reflector; times in seconds.

    :param page_size: objects per page of a list: 500 of 3 kB take 3 ms to take in.
    :param streaming: try a streaming list (KEP-3157) before a paged one.
    :param stream_quiet: a streaming list that sends nothing for so long will never send its end.
    :param stream_total: nor will one that has not ended after this.
    :param stream_tries: streaming lists that break before paged ones are used instead.
    :param watch_timeout: how long the server is asked to hold a watch; drawn from this range, so that the watches
        of many informers do not end together.
    :param backoff_base: the longest first wait; it doubles with each failure.
    :param backoff_cap: the longest wait after what cost the server work, unless it asks for a longer one.
    :param connect_cap: the longest wait after a connection that was refused, could not be made or broke, or a watch
        that was closed early, which cost the server nothing or little.
    :param retry_after_cap: the longest wait that a server may ask for.
    :param steady_after: a watch that lasted so long makes earlier misses count no more: the server is back.
    :param healthy_after: a watch that ends in a way which only another list can mend makes earlier lists count no more
        after this.
    :param short_watch: a watch that ends cleanly sooner than this is answered with a wait, not with a hot loop.
    :param barren_limit: so many watches in a row that brought neither event nor bookmark lead to a list: a server
        that is behind the version asked for is silent (and one restored from a backup stays behind).
    :param burst_events: events after which other tasks get a turn.
    :param burst_seconds: time after which they get one in any case.
    """

    page_size: int = 500
    streaming: bool = True
    stream_quiet: float = 10.0
    stream_total: float = 120.0
    stream_tries: int = 3
    watch_timeout: tuple[float, float] = (300.0, 600.0)
    backoff_base: float = 0.25
    backoff_cap: float = 30.0
    connect_cap: float = 3.0
    retry_after_cap: float = 300.0
    steady_after: float = 2.0
    healthy_after: float = 30.0
    short_watch: float = 1.0
    barren_limit: int = 3
    burst_events: int = 200
    burst_seconds: float = 0.002


@dataclass(frozen=True, slots=True)
class Empty:
    """Before the first request."""

    label = "empty"


@dataclass(frozen=True, slots=True)
class Listing:
    """A page is being fetched.

    :param token: of the page; "" for the first.
    :param version: of the list; 0 before the first page.
    """

    token: str = ""
    version: int = 0
    label = "listing"


@dataclass(frozen=True, slots=True)
class Syncing:
    """A streaming list: the objects arrive as the first events of the watch."""

    label = "syncing"


@dataclass(frozen=True, slots=True)
class Watching:
    """A watch is open, or is being opened."""

    label = "watching"


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Waiting after a failure.

    :param relist: go on with a list, not with a watch from the version reached.
    :param served: False if the server does not know the resource at all.
    """

    relist: bool
    served: bool = True

    @property
    def label(self) -> str:
        return "backing off" if self.served else "not served"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reflector has ended."""

    label = "stopped"


Phase: TypeAlias = Empty | Listing | Syncing | Watching | BackingOff | Stopped


@dataclass(frozen=True, slots=True)
class State:
    """The state of a reflector: its phase, and counts that limits and back-offs depend on.

    :param version: the version reached: where the next watch begins.
    :param failures: requests in a row that cost the server work and failed, which the back-off grows with.
    :param misses: connections in a row that brought nothing, and watches that were closed early.
    :param relists: lists in a row that a watch led to and that no lasting watch followed.
    :param barren: watches in a row that were opened and brought nothing.
    :param restarts: lists in a row that were begun again because their continue token was refused.
    :param streaming: whether streaming lists are still tried.
    :param stream_failures: streaming lists in a row that broke.
    """

    phase: Phase = Empty()
    version: int = 0
    failures: int = 0
    misses: int = 0
    relists: int = 0
    barren: int = 0
    restarts: int = 0
    streaming: bool = True
    stream_failures: int = 0


@dataclass(frozen=True, slots=True)
class Begin:
    """The reflector was started."""


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page was taken in; ``token`` is "" for the last."""

    version: int
    token: str


@dataclass(frozen=True, slots=True)
class ListFailed:
    """A page could not be fetched or decoded."""

    error: Exception


@dataclass(frozen=True, slots=True)
class InitialEnd:
    """The bookmark arrived that ends a streaming list."""

    version: int


@dataclass(frozen=True, slots=True)
class StreamStalled:
    """A streaming list did not end within its limits."""


@dataclass(frozen=True, slots=True)
class WatchOver:
    """A watch ended or could not be opened.

    :param received: events and bookmarks that it brought.
    :param lasted: seconds since it was open; 0 if it never was.
    :param version: the version reached.
    """

    end: WatchEnd
    error: Exception | None
    received: int
    lasted: float
    version: int
    opened: bool = True


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The wait has ended."""


@dataclass(frozen=True, slots=True)
class KindChanged:
    """The definition of the resource changed: it may be served now."""


@dataclass(frozen=True, slots=True)
class HistoryRewound:
    """The answer to a write proves that the version reached belongs to a history that the server no longer has."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The reflector is no longer wanted."""


Event: TypeAlias = (
    Begin
    | PageRead
    | ListFailed
    | InitialEnd
    | StreamStalled
    | WatchOver
    | TimerFired
    | KindChanged
    | HistoryRewound
    | StopAsked
)


@dataclass(frozen=True, slots=True)
class FetchPage:
    """Fetch a page; with an empty token what was read of the list before is void."""

    token: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Swap in the list, which is complete."""

    version: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Open a watch at a version; None asks for a streaming list first."""

    version: int | None


@dataclass(frozen=True, slots=True)
class Follow:
    """Go on with the watch that is open."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait. A wait for a resource that is not served ends early when a change of its definition is seen."""

    seconds: float
    until_served: bool = False


Effect: TypeAlias = FetchPage | Commit | OpenWatch | Follow | Rest

Transition: TypeAlias = tuple[State, tuple[Effect, ...]]

_NO_STREAM: Final = (BadRequestError, InvalidError, MethodNotAllowedError, UnsupportedMediaError)
"""Refusals of a request that the server does not know."""
_MOST_OF_ASKED: Final = 4.0
"""The longest wait, as a multiple of the time that a server asks for."""
_CONNECTION: Final = frozenset({WatchEnd.BROKEN, WatchEnd.IDLE})
"""Ends of a watch that are about the connection only."""


def step(state: State, event: Event, settings: ReflectorSettings, jitter: float) -> Transition:
    """Make one transition.

    :param jitter: a number in [0, 1) that spreads waits.
    :returns: the new state, and the effects to carry out in this order. Only the last one takes time, and its outcome
        is the next event. No effects mean that the reflector has stopped.
    """
    phase = state.phase
    match event:
        case StopAsked():
            return replace(state, phase=Stopped()), ()
        case Begin() if isinstance(phase, Empty):
            return _list(state)
        case PageRead() if isinstance(phase, Listing):
            return _page(state, phase, event)
        case ListFailed() if isinstance(phase, Listing):
            return _list_failed(state, phase, event.error, settings, jitter)
        case InitialEnd() if isinstance(phase, Syncing):
            watching = replace(state, phase=Watching(), version=event.version, barren=0, stream_failures=0, misses=0)
            return watching, (Commit(event.version), Follow())
        case StreamStalled() if isinstance(phase, Syncing):
            return _list(replace(state, streaming=False))
        case WatchOver() if isinstance(phase, Syncing):
            return _stream_over(state, event, settings, jitter)
        case WatchOver() if isinstance(phase, Watching):
            return _watch_over(state, event, settings, jitter)
        case TimerFired() if isinstance(phase, BackingOff):
            return _list(state) if phase.relist else _watch(state, state.version)
        case HistoryRewound() if isinstance(phase, Watching):
            return _list(replace(state, barren=0))
        case KindChanged() if isinstance(phase, BackingOff):
            return _list(replace(state, failures=0, misses=0))
        case _:
            raise AssertionError(f"{event} cannot happen in {phase}")


def backoff(
    count: int, settings: ReflectorSettings, jitter: float, *, cap: float, retry_after: float | None = None
) -> float:
    """Compute the seconds to wait after so many failures: between half and all of a ceiling that doubles up to the cap.

    A time that the server asks for is a floor, stretched by up to half, so that many clients do not return together.
    The wait does not grow beyond four times that, however often the server asks.
    """
    ceiling = backoff_ceiling(count, base=settings.backoff_base, cap=cap)
    if retry_after is None or retry_after <= 0:
        return ceiling * (0.5 + jitter / 2)
    asked = min(retry_after, settings.retry_after_cap)
    ceiling = min(ceiling, asked * _MOST_OF_ASKED)
    return max(ceiling * (0.5 + jitter / 2), asked * (1 + jitter / 2))


def _list(state: State) -> Transition:
    if state.streaming:
        return replace(state, phase=Syncing()), (OpenWatch(None),)
    return replace(state, phase=Listing()), (FetchPage(""),)


def _watch(state: State, version: int) -> Transition:
    return replace(state, phase=Watching(), version=version), (OpenWatch(version),)


def _rest(
    state: State, error: Exception | None, settings: ReflectorSettings, jitter: float, *, relist: bool
) -> Transition:
    """Wait after an attempt that the server worked on."""
    served = not isinstance(error, (NotFoundError, NotServedError))
    failures = state.failures + 1
    state = replace(state, phase=BackingOff(relist or not served, served), failures=failures)
    asked = error.retry_after if isinstance(error, ApiError) else None
    seconds = backoff(failures, settings, jitter, cap=settings.backoff_cap, retry_after=asked)
    return state, (Rest(seconds, until_served=not served),)


def _relist(state: State, error: Exception | None, settings: ReflectorSettings, jitter: float) -> Transition:
    """Wait for a list after a watch that cannot be resumed."""
    relists = state.relists + 1
    state = replace(state, phase=BackingOff(relist=True), relists=relists, barren=0)
    asked = error.retry_after if isinstance(error, ApiError) else None
    return state, (Rest(backoff(relists, settings, jitter, cap=settings.backoff_cap, retry_after=asked)),)


def _reconnect(state: State, settings: ReflectorSettings, jitter: float, *, relist: bool) -> Transition:
    """Wait after an attempt that did not reach the server, or that ended early without a refusal."""
    misses = state.misses + 1
    # A server that was away has started anew: what it refused before is not held against it.
    state = replace(state, phase=BackingOff(relist), misses=misses, failures=0)
    return state, (Rest(backoff(misses, settings, jitter, cap=settings.connect_cap)),)


def _unreached(error: Exception) -> bool:
    """Whether a list failed before the server can have begun with it."""
    if isinstance(error, ConnectError):
        return True
    return isinstance(error, TransportError) and not isinstance(error, DeadlineError | BrokenStreamError)


def _page(state: State, phase: Listing, event: PageRead) -> Transition:
    # All pages of one list are of one version. Should a server say otherwise, the watch begins at the oldest:
    # what it then tells twice is dropped as old news, while a gap would never be closed.
    version = min(phase.version, event.version) if phase.version else event.version
    if event.token:
        return replace(state, phase=Listing(event.token, version)), (FetchPage(event.token),)
    state = replace(state, phase=Watching(), version=version, barren=0, restarts=0, misses=0)
    return state, (Commit(version), OpenWatch(version))


def _list_failed(
    state: State, phase: Listing, error: Exception, settings: ReflectorSettings, jitter: float
) -> Transition:
    if phase.token and isinstance(error, (GoneError, BadRequestError)):
        # The continue token has expired, which happens to a list that is read slowly: begin again, at once the
        # first time, since only this list is affected.
        state = replace(state, restarts=state.restarts + 1)
        if state.restarts == 1:
            return replace(state, phase=Listing()), (FetchPage(""),)
    if _unreached(error):
        return _reconnect(state, settings, jitter, relist=True)
    return _rest(state, error, settings, jitter, relist=True)


def _stream_over(state: State, event: WatchOver, settings: ReflectorSettings, jitter: float) -> Transition:
    if isinstance(event.error, _NO_STREAM):
        return _list(replace(state, streaming=False))
    if not event.opened and event.end in _CONNECTION:
        return _reconnect(state, settings, jitter, relist=True)
    if event.opened:
        broken = state.stream_failures + 1
        state = replace(state, stream_failures=broken, streaming=state.streaming and broken < settings.stream_tries)
    return _rest(state, event.error, settings, jitter, relist=True)


def _watch_over(state: State, event: WatchOver, settings: ReflectorSettings, jitter: float) -> Transition:
    lost = event.end in {WatchEnd.EXPIRED, WatchEnd.GARBAGE} or isinstance(event.error, _NO_STREAM)
    state = replace(state, version=event.version)
    if event.opened:
        state = _credit(state, event, settings, lost=lost)
    if lost or state.barren >= settings.barren_limit:
        return _relist(state, event.error, settings, jitter)
    if event.end is WatchEnd.CLEAN and event.lasted >= settings.short_watch:
        return _watch(state, event.version)
    if event.end is WatchEnd.CLEAN or event.end in _CONNECTION:
        return _reconnect(state, settings, jitter, relist=False)
    return _rest(state, event.error, settings, jitter, relist=False)


def _credit(state: State, event: WatchOver, settings: ReflectorSettings, *, lost: bool) -> State:
    """Forget the failures before a watch that was open, as far as it shows that they are over."""
    steady = event.lasted >= settings.steady_after
    # A list is dear: only a watch that went on from it shows that it was worth it.
    went_on = event.lasted >= settings.healthy_after if lost else steady or event.received > 0
    # One that the server closes early each time may well bring something each time.
    reached = steady or (event.received > 0 and event.end is not WatchEnd.CLEAN)
    return replace(
        state,
        failures=0,
        misses=0 if reached else state.misses,
        relists=0 if went_on else state.relists,
        barren=0 if event.received else state.barren + 1,
    )
