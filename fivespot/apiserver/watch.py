"""Watches: event streams that read from the history, so that slow readers cost no memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from .cluster import Cluster
from .json_codec import encode_json
from .kinds import Served, ServedKind
from .messages import JSON, ApiRequest, ApiResponse
from .options import ListOptions, parse_version
from .read import selector_of, view_of
from .selectors import ObjectSelector
from .status import StatusError, expired, internal
from .store import Entry, Event
from .views import ObjectView

__all__ = ["BOOKMARK_SECONDS", "WatchStream", "watch_objects"]

BOOKMARK_SECONDS: Final = 60.0
"""The usual interval of bookmarks."""
_FAREWELL_SECONDS: Final = 2.0
"""Time between the last bookmark and the end of a watch."""
_BATCH: Final = 200
_SHORTEST: Final = 1800.0
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}


def watch_objects(
    cluster: Cluster, request: ApiRequest, kind: ServedKind, served: Served, namespace: str, options: ListOptions
) -> ApiResponse:
    """The answer to a watch.

    :raises StatusError: 400, 406, 422, 500.
    """
    view = view_of(cluster, request, kind, served, single=True)
    selector = selector_of(kind, options)
    try:
        version = parse_version(options.version)
    except ValueError as error:
        raise internal(f'resourceVersion: Invalid value: "{options.version}": {error}') from None
    # A negative time-out has passed.
    seconds = max(0, options.timeout) if options.timeout else cluster.ids.uniform(_SHORTEST, 2 * _SHORTEST)
    watch = WatchStream(cluster, kind, view, selector, namespace, bookmarks=options.bookmarks, seconds=seconds)
    watch.begin(version, options.initial_events)
    headers = [("Content-Type", JSON), ("Cache-Control", "no-cache, private")]
    return ApiResponse(200, headers, watch)


class WatchStream:
    """An open watch.

    :param seconds: time-out of the watch.
    """

    def __init__(
        self,
        cluster: Cluster,
        kind: ServedKind,
        view: ObjectView,
        selector: ObjectSelector,
        namespace: str,
        *,
        bookmarks: bool,
        seconds: float,
    ) -> None:
        self._cluster = cluster
        self._collection = cluster.collection(kind)
        self._view = view
        self._selector = selector
        self._prefix = f"{namespace}/" if namespace else ""
        self._bookmarks = bookmarks
        now = cluster.clock.monotonic()
        self._deadline = now + seconds
        farewell = self._deadline - _FAREWELL_SECONDS
        self._next_bookmark = min(now + cluster.bookmarks, farewell if farewell > now else self._deadline)
        self._position = self._collection.end
        self._initial: Iterator[bytes] = iter(())
        self._closed = False
        self._first = True
        self._future = 0
        self._failure: StatusError | None = None

    def begin(self, version: int, initial_events: bool | None) -> None:
        """Set the start of the stream.

        :param version: start after this version; 0 for any.
        :param initial_events: send the current state first; None: only without a version.
        """
        collection = self._collection
        if initial_events or (initial_events is None and version == 0):
            mark = self._cluster.store.version if initial_events and self._bookmarks else None
            self._initial = self._state(collection.snapshot(self._prefix[:-1]), mark)
            return
        if version == 0:
            return
        if version < collection.floor:
            self._failure = expired(f"too old resource version: {version} ({collection.floor})")
        elif version <= self._cluster.store.version:
            self._position = collection.position_after(version)
        else:
            # Events up to a future version are not sent.
            self._future = version

    def _state(self, entries: list[Entry], mark: int | None) -> Iterator[bytes]:
        for entry in entries:
            if self._selector.matches(entry):
                yield self._line("ADDED", entry)
        if mark is not None:
            yield _event("BOOKMARK", self._view.empty(mark, _INITIAL_END))

    async def read(self) -> bytes:
        """The next events; b"" at the end."""
        while not self._closed:
            lines = self._take()
            if lines:
                return lines
            if self._ended():
                break
            now = self._cluster.clock.monotonic()
            if now >= self._deadline:
                break
            until = self._next_bookmark if self._bookmarks and now < self._next_bookmark else self._deadline
            await self._collection.changed.wait(max(0.0, until - now))
        self._closed = True
        return b""

    def _ended(self) -> bool:
        return self._closed or self._collection.closed

    def close(self) -> None:
        """End the watch and wake its reader."""
        self._closed = True
        self._collection.changed.fire()

    def _take(self) -> bytes:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._closed = True
            return _event("ERROR", encode_json(failure.status()))
        lines = list(islice(self._initial, _BATCH))
        if lines:
            return b"".join(lines)
        while True:
            events = self._collection.events(self._position, _BATCH)
            if events is None:
                # The reader is too slow: its history is compacted. The client gets 410 when it resumes.
                self._closed = True
                return b""
            if not events:
                return self._bookmark()
            self._position += len(events)
            lines = [line for line in map(self._translate, events) if line]
            if lines:
                return b"".join(lines)

    def _translate(self, event: Event) -> bytes:
        """The line for an event; b"" when the watch does not select it."""
        new = event.new
        if not new.key.startswith(self._prefix) or event.version <= self._future:
            return b""
        before = event.old is not None and self._selector.matches(event.old)
        after = not event.deleted and self._selector.matches(new)
        if after:
            return self._line("MODIFIED" if before else "ADDED", new)
        if not before:
            return b""
        if event.deleted:
            return self._line("DELETED", new)
        assert event.old is not None
        # The object left the selector: send its previous state at the version of the change.
        return self._line("DELETED", event.old.at(event.version))

    def _line(self, type_: str, entry: Entry) -> bytes:
        line = _event(type_, self._view.event(entry, first=self._first))
        self._first = False
        return line

    def _bookmark(self) -> bytes:
        now = self._cluster.clock.monotonic()
        if not self._bookmarks or now < self._next_bookmark or now >= self._deadline:
            return b""
        last = self._deadline - _FAREWELL_SECONDS
        self._next_bookmark = self._deadline if now >= last else min(now + self._cluster.bookmarks, last)
        if self._cluster.store.version < self._future:
            return b""
        return _event("BOOKMARK", self._view.empty(self._cluster.store.version, {}))


def _event(type_: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), body)
