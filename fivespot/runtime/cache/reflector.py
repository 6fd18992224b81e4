"""The reflector: carries out what the state machine of :mod:`.reflector_state` decides, against a server."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from fivespot.runtime.client import Client, Watch, WatchEnd, WatchEnded, WatchEvent
from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import ApiError, ProtocolError, TransportError, UndecodableObjectError
from fivespot.runtime.objects import Key, decode, parse_version
from fivespot.runtime.telemetry import LogLimiter

from .reflector_state import (
    BackingOff,
    Begin,
    Commit,
    Effect,
    Event,
    FetchPage,
    Follow,
    HistoryRewound,
    InitialEnd,
    KindChanged,
    ListFailed,
    OpenWatch,
    PageRead,
    Rest,
    State,
    StreamStalled,
    TimerFired,
    WatchOver,
    step,
)
from .shared_informer import SharedInformer
from .yield_budget import YieldBudget

__all__ = ["Reflector"]

_log = structlog.get_logger(__name__)

_ORDINARY = frozenset({WatchEnd.CLEAN, WatchEnd.EXPIRED})
"""Ends of a watch that are part of the protocol."""
_LOG_INTERVAL = 300.0
"""Seconds between two records of one kind of failure while it lasts."""
_INITIAL_END = "k8s.io/initial-events-end"


class Reflector:
    """Keeps one store in step with the server until it is cancelled.

    :param no_streaming: resources for which streaming lists have failed; shared by all reflectors of a cache.
    """

    def __init__(
        self, client: Client, shared: SharedInformer, *, clock: Clock, rng: Random, no_streaming: set[str]
    ) -> None:
        self._client = client
        self._shared = shared
        self._settings = shared.settings
        self._clock = clock
        self._rng = rng
        self._no_streaming = no_streaming
        self._budget = YieldBudget(shared.settings.burst_events, shared.settings.burst_seconds)
        self._limiter = LogLimiter(_LOG_INTERVAL)
        self._watch: Watch | None = None
        self._following: asyncio.Timeout | None = None
        self._opened_at = 0.0
        self._received = 0

    async def run(self) -> None:
        """List and watch until cancelled."""
        shared = self._shared
        streaming = self._settings.streaming and shared.resource.qualified not in self._no_streaming
        state = State(streaming=streaming)
        event: Event | None = Begin()
        try:
            while event is not None:
                before = state
                state, effects = step(state, event, self._settings, self._rng.random())
                self._note(before, state, event)
                event = None
                for effect in effects:
                    event = await self._do(effect)
        finally:
            shared.state = "stopped"
            shared.store.abandon()
            await self._close()

    def reconnect(self) -> None:
        """Give up the connection of the watch that is followed, if one is, and resume on another."""
        following = self._following
        # One that is ending by itself, or was given up already, is left alone.
        if following is not None and following.when() is None:
            following.reschedule(self._clock.monotonic())

    async def _do(self, effect: Effect) -> Event | None:
        match effect:
            case FetchPage(token):
                return await self._fetch_page(token)
            case OpenWatch(None):
                return await self._stream()
            case OpenWatch(version):
                return await self._open(version) or await self._follow()
            case Follow():
                return await self._follow()
            case Commit(version):
                self._recovered()
                await self._shared.swap(version)
                return None
            case Rest(seconds, until_served):
                return await self._rest(seconds, until_served)

    # Lists

    async def _fetch_page(self, token: str) -> Event:
        shared = self._shared
        if not token:
            self._begin_list()
        try:
            page = await self._client.page(
                shared.resource,
                shared.namespace,
                selector=shared.selector,
                metadata_only=shared.projection.metadata_only,
                limit=self._settings.page_size,
                continue_token=token,
                # The newest state, not that of some server's cache: a list must show every confirmed write.
                version=None,
                match=None,
            )
            version = parse_version(page.version)
            if token and page.continue_token == token:
                raise ProtocolError(f"list {shared.resource.qualified}: the same continue token came twice")
            for item in page.items:
                shared.stage(item)
                await self._breathe()
        except (ApiError, TransportError, ProtocolError) as error:
            return ListFailed(error)
        return PageRead(version, page.continue_token)

    async def _stream(self) -> Event:
        """A streaming list: all objects as events, then a bookmark that says so (KEP-3157)."""
        self._begin_list()
        refused = await self._open(None)
        if refused is not None:
            return refused
        try:
            async with asyncio.timeout(self._settings.stream_quiet) as limit:
                return await self._read_initial(limit)
        except TimeoutError:
            if not limit.expired():
                raise
            await self._close()
            return StreamStalled()

    async def _read_initial(self, limit: asyncio.Timeout) -> Event:
        shared, watch = self._shared, self._watch
        assert watch is not None
        extended = self._opened_at
        end = self._opened_at + self._settings.stream_total
        try:
            while True:
                event = await watch.next()
                self._received += 1
                if event.type == "BOOKMARK":
                    version, initial_end = _read_bookmark(event.object)
                    if initial_end:
                        return InitialEnd(version)
                elif event.type == "DELETED":
                    head = event.head()
                    shared.store.staging.drop(Key(head.namespace, head.name))
                else:
                    shared.stage(event.object, event.meta)
                await self._breathe()
                now = self._clock.monotonic()
                if now - extended > 1.0:
                    extended = now
                    limit.reschedule(min(now + self._settings.stream_quiet, end))
        except WatchEnded as ended:
            return await self._over(ended.reason, ended)
        except ProtocolError as error:
            return await self._over(WatchEnd.GARBAGE, error)

    # Watches

    async def _open(self, version: int | None) -> Event | None:
        """Open a watch; None if it is open."""
        shared = self._shared
        self._received = 0
        self._opened_at = self._clock.monotonic()
        shared.kind_changed.clear()
        if version is not None and shared.store.rewound:
            return HistoryRewound()
        try:
            self._watch = await self._client.watch(
                shared.resource,
                shared.namespace,
                selector=shared.selector,
                metadata_only=shared.projection.metadata_only,
                version="" if version is None else str(version),
                initial_events=version is None,
                server_timeout=self._rng.uniform(*self._settings.watch_timeout),
            )
        except WatchEnded as ended:
            return await self._over(ended.reason, ended, opened=False)
        self._opened_at = shared.last_activity = self._clock.monotonic()
        shared.watches += 1
        if version is not None:
            self._recovered()
        return None

    async def _follow(self) -> Event:
        if self._history_rewound():
            await self._close()
            return HistoryRewound()
        try:
            async with asyncio.timeout(None) as self._following:
                return await self._read_events()
        except TimeoutError:
            if self._following is None or not self._following.expired():
                raise
            if self._history_rewound():
                await self._close()
                return HistoryRewound()
            return await self._over(WatchEnd.BROKEN, TransportError("the connection was given up"))
        finally:
            self._following = None

    async def _read_events(self) -> Event:
        shared, watch, annotations = self._shared, self._watch, self._shared.projection.annotations
        assert watch is not None
        store = shared.store
        try:
            while True:
                event = await watch.next()
                self._received += 1
                kind = event.type
                if kind == "BOOKMARK":
                    if not store.reach(_read_bookmark(event.object)[0]):
                        error = ProtocolError("an object that the server said is gone was never reported as deleted")
                        return await self._over(WatchEnd.GARBAGE, error)
                else:
                    try:
                        head = event.head(annotations)
                    except UndecodableObjectError as error:
                        self._take_undecodable(event, error)
                    else:
                        assert event.meta is not None
                        if kind == "DELETED":
                            shared.dispatch(store.remove(shared.make(event.object, head, event.meta)))
                        else:
                            key = store.admit(head)
                            if key is not None:
                                shared.dispatch(store.put(key, shared.make(event.object, head, event.meta)))
                now = shared.last_activity = self._clock.monotonic()
                if self._budget.over(now):
                    await asyncio.sleep(0)
        except WatchEnded as ended:
            return await self._over(ended.reason, ended)
        except ProtocolError as error:
            # It may have been a DELETED, whose object would stay here for ever: only a list can tell.
            return await self._over(WatchEnd.GARBAGE, error)

    def _take_undecodable(self, event: WatchEvent, error: UndecodableObjectError) -> None:
        """Take in an event whose object has no readable metadata.

        :raises UndecodableObjectError: an object was deleted, and only a list can tell for certain which.
        """
        if event.type == "DELETED":
            raise error
        # The state before stands. A list would show no more of the object than the event does.
        self._shared.note_undecodable(error)

    async def _over(self, end: WatchEnd, error: Exception, *, opened: bool = True) -> WatchOver:
        await self._close()
        lasted = self._clock.monotonic() - self._opened_at if opened else 0.0
        cause = error.error if isinstance(error, WatchEnded) and error.error is not None else error
        return WatchOver(end, cause, self._received, lasted, self._shared.store.version, opened)

    async def _close(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    def _history_rewound(self) -> bool:
        # A method, because the answer changes while others are awaited.
        return self._shared.store.rewound

    def _begin_list(self) -> None:
        self._shared.kind_changed.clear()
        self._shared.begin_list()

    # Waiting

    async def _breathe(self) -> None:
        """Let other tasks run if it is time."""
        now = self._shared.last_activity = self._clock.monotonic()
        if self._budget.over(now):
            await asyncio.sleep(0)

    async def _rest(self, seconds: float, until_served: bool) -> Event:
        self._shared.store.abandon()
        if not until_served:
            await asyncio.sleep(seconds)
            return TimerFired()
        try:
            async with asyncio.timeout(seconds):
                await self._shared.kind_changed.wait()
        except TimeoutError:
            return TimerFired()
        return KindChanged()

    # Status and log

    def _note(self, before: State, state: State, event: Event) -> None:
        shared = self._shared
        shared.state = state.phase.label
        if before.streaming and not state.streaming:
            self._no_streaming.add(shared.resource.qualified)
            _log.info("streaming list not usable, listing in pages from now on", informer=str(shared))
        if not isinstance(state.phase, BackingOff):
            return
        match event:
            case ListFailed(error):
                failure = error
            case WatchOver(end=end, error=error) if error is not None:
                if end in _ORDINARY and state.failures + state.misses + state.relists == 1:
                    # Only a row of them is a failure.
                    return
                failure = error
            case _:
                return
        shared.failed(failure)
        kind = (type(failure), getattr(failure, "status", None), getattr(failure, "reason", None))
        held_back = self._limiter.allow(kind, self._clock.monotonic())
        if held_back is not None:
            # A resource that is not served (yet) is ordinary: its definition may come at any time.
            level = _log.warning if state.phase.served else _log.info
            level("cannot read from the server", informer=str(shared), error=str(failure), held_back=held_back)

    def _recovered(self) -> None:
        if self._shared.recovered():
            _log.info("reading from the server again", informer=str(self._shared))


class _BookmarkMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta


_bookmark_decoder = msgspec.json.Decoder(_Bookmark)


def _read_bookmark(raw: bytes) -> tuple[int, bool]:
    """Read the version of a bookmark, and whether it ends the initial events of a streaming list."""
    try:
        meta = decode(_bookmark_decoder, raw).metadata
    except ProtocolError as error:
        raise ProtocolError(f"a bookmark that cannot be decoded: {error}") from error
    return parse_version(meta.resource_version), (meta.annotations or {}).get(_INITIAL_END) == "true"
