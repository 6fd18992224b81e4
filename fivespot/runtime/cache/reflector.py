"""What a reflector does next: list, watch, wait, as a pure state machine.

::

    Empty ──> Syncing ──────────────┐        a streaming list, where the server has one
      │          │ not supported    │
      └─────> Listing ──────────────┴──> Watching ──> Watching ...
                 ^                           │ any end but a clean one
                 └──────── BackingOff <──────┘
                                             any ──> Stopped

:func:`advance` takes what is remembered and what happened, and answers what is remembered from now on and what to
do. It reads no clock, draws no number and does no I/O: chance comes in as a number, and :mod:`.driver` acts.

Three counters govern the waits. What cost the server work and failed (a refusal, a list that broke off) is repeated
ever more slowly, and so is a list that no watch worth the name followed. A connection that was refused or broke and a
watch that was closed early are tried again within seconds, because a server that was away is to be noticed soon, and
one that starts has little work with it. A counter starts again once what it counts works again.
"""

from __future__ import annotations

from dataclasses import replace

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
    TransportError,
    UnsupportedMediaError,
)

from .course import (
    BackingOff,
    Begin,
    Commit,
    Course,
    Empty,
    FetchPage,
    Follow,
    Happening,
    InitialEnd,
    ListFailed,
    Listing,
    Nudged,
    OpenWatch,
    PageRead,
    Rest,
    Rested,
    Step,
    StopAsked,
    Stopped,
    StreamStalled,
    Syncing,
    Watching,
    WatchOver,
)
from .settings import ReflectorSettings

__all__ = ["advance", "backoff"]

_NO_STREAM = (BadRequestError, InvalidError, MethodNotAllowedError, UnsupportedMediaError)
_PATIENCE = 4.0
_CONNECTION = frozenset({WatchEnd.BROKEN, WatchEnd.IDLE})
"""Ends that say something of the connection only."""


def advance(course: Course, event: Happening, settings: ReflectorSettings, chance: float) -> Step:
    """One transition.

    :param chance: a number in [0, 1) for jitter.
    :returns: the new course, and what to do in this order; only the last takes time, and what comes of it is the
        next happening. Nothing to do means stopped.
    """
    state = course.state
    match event:
        case StopAsked():
            return replace(course, state=Stopped()), ()
        case Begin() if isinstance(state, Empty):
            return _list(course)
        case PageRead() if isinstance(state, Listing):
            return _page(course, state, event)
        case ListFailed() if isinstance(state, Listing):
            return _list_failed(course, state, event.error, settings, chance)
        case InitialEnd() if isinstance(state, Syncing):
            watching = replace(course, state=Watching(), version=event.version, barren=0, stream_failures=0, misses=0)
            return watching, (Commit(event.version), Follow())
        case StreamStalled() if isinstance(state, Syncing):
            return _list(replace(course, streaming=False))
        case WatchOver() if isinstance(state, Syncing):
            return _stream_over(course, event, settings, chance)
        case WatchOver() if isinstance(state, Watching):
            return _watch_over(course, event, settings, chance)
        case Rested() if isinstance(state, BackingOff):
            return _list(course) if state.relist else _watch(course, course.version)
        case Nudged() if isinstance(state, BackingOff):
            return _list(replace(course, failures=0, misses=0))
        case _:
            raise AssertionError(f"{event} cannot happen in {state}")


def backoff(
    count: int, settings: ReflectorSettings, chance: float, *, cap: float, retry_after: float | None = None
) -> float:
    """Seconds to wait after so many failures: between half and all of a ceiling that doubles up to the cap.

    A time that the server asks for is a floor, stretched by up to half, so that a crowd does not return together. It is
    taken at its word: the wait does not grow beyond four times that, however often it asks.
    """
    ceiling = min(cap, settings.backoff_base * 2.0 ** min(count - 1, 64))
    if retry_after is None or retry_after <= 0:
        return ceiling * (0.5 + chance / 2)
    asked = min(retry_after, settings.retry_after_cap)
    ceiling = min(ceiling, asked * _PATIENCE)
    return max(ceiling * (0.5 + chance / 2), asked * (1 + chance / 2))


def _list(course: Course) -> Step:
    if course.streaming:
        return replace(course, state=Syncing()), (OpenWatch(None),)
    return replace(course, state=Listing()), (FetchPage(""),)


def _watch(course: Course, version: int) -> Step:
    return replace(course, state=Watching(), version=version), (OpenWatch(version),)


def _rest(course: Course, error: Exception | None, settings: ReflectorSettings, chance: float, *, relist: bool) -> Step:
    """Wait after an attempt that the server worked on."""
    served = not isinstance(error, NotFoundError)
    failures = course.failures + 1
    course = replace(course, state=BackingOff(relist or not served, served), failures=failures)
    asked = error.retry_after if isinstance(error, ApiError) else None
    seconds = backoff(failures, settings, chance, cap=settings.backoff_cap, retry_after=asked)
    return course, (Rest(seconds, until_served=not served),)


def _relist(course: Course, error: Exception | None, settings: ReflectorSettings, chance: float) -> Step:
    """Wait for a list after a watch that cannot be resumed."""
    relists = course.relists + 1
    course = replace(course, state=BackingOff(relist=True), relists=relists, barren=0)
    asked = error.retry_after if isinstance(error, ApiError) else None
    return course, (Rest(backoff(relists, settings, chance, cap=settings.backoff_cap, retry_after=asked)),)


def _reconnect(course: Course, settings: ReflectorSettings, chance: float, *, relist: bool) -> Step:
    """Wait after an attempt that did not reach the server, or that ended early without a refusal."""
    misses = course.misses + 1
    # A server that was away has started anew: what it refused before is not held against it.
    course = replace(course, state=BackingOff(relist), misses=misses, failures=0)
    return course, (Rest(backoff(misses, settings, chance, cap=settings.connect_cap)),)


def _unreached(error: Exception) -> bool:
    """Whether a list failed before the server can have begun with it."""
    if isinstance(error, ConnectError):
        return True
    return isinstance(error, TransportError) and not isinstance(error, DeadlineError | BrokenStreamError)


def _page(course: Course, state: Listing, event: PageRead) -> Step:
    # All pages of one list are of one version. Should a server say otherwise, the watch begins at the oldest:
    # what it then tells twice is dropped as old news, while a gap would never be closed.
    version = min(state.version, event.version) if state.version else event.version
    if event.token:
        return replace(course, state=Listing(event.token, version)), (FetchPage(event.token),)
    course = replace(course, state=Watching(), version=version, barren=0, restarts=0, misses=0)
    return course, (Commit(version), OpenWatch(version))


def _list_failed(course: Course, state: Listing, error: Exception, settings: ReflectorSettings, chance: float) -> Step:
    if state.token and isinstance(error, (GoneError, BadRequestError)):
        # The continue token has expired, which happens to a list that is read slowly: begin again, at once the
        # first time, since only this list is affected.
        course = replace(course, restarts=course.restarts + 1)
        if course.restarts == 1:
            return replace(course, state=Listing()), (FetchPage(""),)
    if _unreached(error):
        return _reconnect(course, settings, chance, relist=True)
    return _rest(course, error, settings, chance, relist=True)


def _stream_over(course: Course, event: WatchOver, settings: ReflectorSettings, chance: float) -> Step:
    if isinstance(event.error, _NO_STREAM):
        return _list(replace(course, streaming=False))
    if not event.opened and event.end in _CONNECTION:
        return _reconnect(course, settings, chance, relist=True)
    if event.opened:
        broken = course.stream_failures + 1
        course = replace(course, stream_failures=broken, streaming=course.streaming and broken < settings.stream_tries)
    return _rest(course, event.error, settings, chance, relist=True)


def _watch_over(course: Course, event: WatchOver, settings: ReflectorSettings, chance: float) -> Step:
    lost = event.end in {WatchEnd.EXPIRED, WatchEnd.GARBAGE} or isinstance(event.error, _NO_STREAM)
    course = replace(course, version=event.version)
    if event.opened:
        course = _credit(course, event, settings, lost=lost)
    if lost or course.barren >= settings.barren_limit:
        return _relist(course, event.error, settings, chance)
    if event.end is WatchEnd.CLEAN and event.lasted >= settings.short_watch:
        return _watch(course, event.version)
    if event.end is WatchEnd.CLEAN or event.end in _CONNECTION:
        return _reconnect(course, settings, chance, relist=False)
    return _rest(course, event.error, settings, chance, relist=False)


def _credit(course: Course, event: WatchOver, settings: ReflectorSettings, *, lost: bool) -> Course:
    """What a watch that was open says of the failures before it."""
    steady = event.lasted >= settings.steady_after
    # A list is dear: only a watch that went on from it shows that it was worth it.
    went_on = event.lasted >= settings.healthy_after if lost else steady or event.received > 0
    # One that the server closes early each time may well bring something each time.
    reached = steady or (event.received > 0 and event.end is not WatchEnd.CLEAN)
    return replace(
        course,
        failures=0,
        misses=0 if reached else course.misses,
        relists=0 if went_on else course.relists,
        barren=0 if event.received else course.barren + 1,
    )
