"""A small API server in memory behind the transport seam, which misbehaves when told to."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fivespot.runtime.cache import Cache, ReflectorSettings
from fivespot.runtime.client import Client, Limits, Request, Response
from fivespot.runtime.clock import SystemClock
from fivespot.runtime.errors import ConnectError, DeadlineError, TransportError
from fivespot.runtime.objects import Change, Key, Object, Resource

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")

Json = dict[str, Any]
Fault = Callable[[Request], Response | TransportError | bytes | None]


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def status(code: int, reason: str = "", message: str = "no", **details: Any) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def failing(code: int, reason: str = "", **headers: str) -> Response:
    return Response(code, headers, encode(status(code, reason)))


TEXT_404 = Response(404, {"content-type": "text/plain"}, b"404 page not found\n")


@dataclass(frozen=True)
class Event:
    version: int
    collection: str
    before: Json | None
    after: Json | None


class Stream:
    """One open watch."""

    def __init__(self, status_: int, limits: Limits, close: Callable[[Stream], None] = lambda _: None) -> None:
        self.status = status_
        self.headers: Mapping[str, str] = {}
        self.closed = False
        self._limits = limits
        self._lines: deque[bytes | TransportError] = deque()
        self._some = asyncio.Event()
        self._close = close

    def send(self, line: bytes | TransportError) -> None:
        self._lines.append(line)
        self._some.set()

    async def readline(self) -> bytes:
        while not self._lines:
            self._some.clear()
            try:
                async with asyncio.timeout(self._limits.read):
                    await self._some.wait()
            except TimeoutError:
                raise DeadlineError("nothing arrived") from None
        line = self._lines[0]
        if isinstance(line, TransportError):
            raise line
        if line:
            self._lines.popleft()
        return line

    async def read_rest(self, limit: int) -> bytes:
        return b"".join(line for line in self._lines if isinstance(line, bytes))[:limit]

    async def close(self) -> None:
        self.closed = True
        self._close(self)


@dataclass
class Follower:
    stream: Stream
    collection: str
    namespace: str | None
    selector: str
    metadata_only: bool
    position: int


@dataclass
class Server:
    """Objects with revisions, lists in pages, watches with selectors.

    Watches tell what happened at once unless ``lagging``; then :meth:`catch_up` makes them.

    :ivar faults: tried in order on each request; the first that answers is used, and removed if it is in ``once``.
    :ivar log: requests as ``list``, ``watch``, ``get`` ... with the time at which they came.
    """

    revision: int = 10
    lagging: bool = False
    streaming: bool = True
    faults: list[Fault] = field(default_factory=list)
    log: list[tuple[str, float, Request]] = field(default_factory=list)
    objects: dict[str, dict[Key, Json]] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)
    followers: list[Follower] = field(default_factory=list)
    oldest: int = 0
    bookmark_every: float | None = None

    # What others do

    def put(self, resource: Resource, name: str, namespace: str | None = None, **fields: Any) -> Json:
        """Create or change an object; fields: labels, annotations, finalizers, spec, status."""
        key = Key(namespace if namespace is not None else ("ns" if resource.namespaced else ""), name)
        stored = self._stored(resource)
        before = stored.get(key)
        self.revision += 1
        metadata: Json = {
            "name": name,
            "uid": before["metadata"]["uid"] if before else f"uid-{self.revision}",
            "resourceVersion": str(self.revision),
        }
        if key.namespace:
            metadata["namespace"] = key.namespace
        for part in ("labels", "annotations", "finalizers", "deletionTimestamp", "managedFields"):
            if part in fields:
                metadata[part] = fields.pop(part)
            elif before and part in before["metadata"]:
                metadata[part] = before["metadata"][part]
        body = {**(before or {}), "apiVersion": resource.api_version, "kind": resource.kind, **fields}
        body["metadata"] = metadata
        stored[key] = body
        self._happened(resource, before, body)
        return body

    def delete(self, resource: Resource, name: str, namespace: str | None = None) -> None:
        key = Key(namespace if namespace is not None else ("ns" if resource.namespaced else ""), name)
        before = self._stored(resource).pop(key)
        self.revision += 1
        self._happened(resource, before, None)

    def tell(self, line: Any) -> None:
        """Send a line, or end with an error, on every open watch."""
        for follower in list(self.followers):
            follower.stream.send(line if isinstance(line, (bytes, TransportError)) else encode(line))

    def bookmark(self) -> None:
        for follower in list(self.followers):
            meta = {"resourceVersion": str(self.revision)}
            follower.stream.send(encode({"type": "BOOKMARK", "object": {"kind": "Widget", "metadata": meta}}))

    def cut(self, error: TransportError | None = None) -> None:
        """End every open watch: cleanly, or with an error."""
        for follower in self.followers:
            follower.stream.send(b"" if error is None else error)
        self.followers.clear()

    def lose(self) -> None:
        """Forget every open watch without a word, as a half-open connection does."""
        self.followers.clear()

    def compact(self) -> None:
        self.oldest = self.revision

    def catch_up(self) -> None:
        for follower in list(self.followers):
            self._advance(follower)

    def next_fault(self, what: str, answer: Response | TransportError | bytes) -> None:
        """Answer the next request of a sort with this; bytes are the body of a 200."""
        self.fault_while(lambda request: _sort(request) == what, answer, times=1)

    def fault_while(
        self, matches: Callable[[Request], bool], answer: Response | TransportError | bytes, times: int = 1 << 30
    ) -> Fault:
        left = times

        def fault(request: Request) -> Response | TransportError | bytes | None:
            nonlocal left
            if left and matches(request):
                left -= 1
                return answer
            return None

        self.faults.append(fault)
        return fault

    def sorts(self) -> list[str]:
        return [sort for sort, _, _ in self.log]

    def times(self, sort: str) -> list[float]:
        return [at for what, at, _ in self.log if what == sort]

    def last(self, sort: str) -> Request:
        return next(request for what, _, request in reversed(self.log) if what == sort)

    # Transport

    async def request(self, request: Request) -> Response:
        answer = self._fault(request)
        if isinstance(answer, TransportError):
            raise answer
        if isinstance(answer, bytes):
            return Response(200, {}, answer)
        await asyncio.sleep(0)
        return answer or self._answer(request)

    async def stream(self, request: Request) -> Stream:
        answer = self._fault(request)
        if isinstance(answer, TransportError):
            raise answer
        await asyncio.sleep(0)
        if answer is not None:
            stream = Stream(answer.status if isinstance(answer, Response) else 200, request.limits)
            body = answer.body if isinstance(answer, Response) else answer
            stream.headers = answer.headers if isinstance(answer, Response) else {}
            for line in body.splitlines():
                stream.send(line)
            stream.send(b"")
            return stream
        return self._follow(request)

    async def close(self) -> None:
        self.cut(ConnectError("closed"))

    # Own steps

    def _fault(self, request: Request) -> Response | TransportError | bytes | None:
        self.log.append((_sort(request), asyncio.get_running_loop().time(), request))
        for fault in self.faults:
            answer = fault(request)
            if answer is not None:
                return answer
        return None

    def _stored(self, resource: Resource) -> dict[Key, Json]:
        return self.objects.setdefault(resource.collection_path(), {})

    def _happened(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        self.history.append(Event(self.revision, resource.collection_path(), before, after))
        if not self.lagging:
            self.catch_up()

    def _answer(self, request: Request) -> Response:
        collection, namespace, name = self._place(request.path)
        stored = self.objects.get(collection)
        if stored is None:
            return TEXT_404
        if request.method == "POST":
            body = msgspec.json.decode(request.body or b"")
            resource = _resource(collection, body["kind"])
            if Key(namespace or "", body["metadata"]["name"]) in stored:
                return failing(409, "AlreadyExists")
            fields = {**{k: v for k, v in body.items() if k not in ("metadata", "kind", "apiVersion")}}
            meta = {k: v for k, v in body["metadata"].items() if k in ("labels", "finalizers")}
            made = self.put(resource, body["metadata"]["name"], namespace or "", **fields, **meta)
            return Response(201, {}, encode(made))
        if name is None:
            return self._page(request, stored, namespace)
        key = Key(namespace or "", name)
        found = stored.get(key)
        if found is None:
            return Response(404, {}, encode(status(404, "NotFound", name=name)))
        if request.method == "DELETE":
            resource = _resource(collection, found["kind"])
            if found["metadata"].get("finalizers"):
                return Response(200, {}, encode(self.put(resource, name, namespace or "", deletionTimestamp="2026")))
            self.delete(resource, name, namespace or "")
            return Response(200, {}, encode({**status(200), "status": "Success"}))
        if request.method == "PATCH":
            change = msgspec.json.decode(request.body or b"")
            resource = _resource(collection, found["kind"])
            fields = {k: v for k, v in change.items() if k != "metadata"}
            meta = {k: v for k, v in change.get("metadata", {}).items() if k in ("labels", "finalizers")}
            if found["metadata"].get("deletionTimestamp") and meta.get("finalizers") == []:
                # The real server answers with the old version, and the object is gone.
                gone = {**found, "metadata": {**found["metadata"], "finalizers": []}}
                self.delete(resource, name, namespace or "")
                return Response(200, {}, encode(gone))
            return Response(200, {}, encode(self.put(resource, name, namespace or "", **fields, **meta)))
        return Response(200, {}, encode(found))

    def _page(self, request: Request, stored: dict[Key, Json], namespace: str | None) -> Response:
        query = request.query
        limit = int(query.get("limit", "0")) or 1 << 30
        start, version = 0, self.revision
        if token := query.get("continue"):
            version, start = (int(part) for part in token.split("-"))
        slim = "PartialObjectMetadata" in request.headers.get("Accept", "")
        items = [
            _shown(body, slim)
            for key, body in stored.items()
            if (namespace is None or key.namespace == namespace) and _selects(query.get("labelSelector", ""), body)
        ]
        meta: Json = {"resourceVersion": str(version)}
        if start + limit < len(items):
            meta["continue"] = f"{version}-{start + limit}"
        return Response(200, {}, encode({"metadata": meta, "items": items[start : start + limit]}))

    def _follow(self, request: Request) -> Stream:
        collection, namespace, _ = self._place(request.path)
        if collection not in self.objects:
            stream = Stream(404, request.limits)
            stream.send(TEXT_404.body)
            return stream
        query = request.query
        slim = "PartialObjectMetadata" in request.headers.get("Accept", "")
        selector = query.get("labelSelector", "")
        initial = "sendInitialEvents" in query
        if initial and not self.streaming:
            stream = Stream(400, request.limits)
            stream.send(encode(status(400, "BadRequest", "sendInitialEvents is forbidden")))
            return stream
        stream = Stream(200, request.limits, self._closed)
        version = self.revision if initial else int(query["resourceVersion"])
        if initial:
            for key, body in self.objects[collection].items():
                if (namespace is None or key.namespace == namespace) and _selects(selector, body):
                    stream.send(encode({"type": "ADDED", "object": _shown(body, slim)}))
            meta = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
            stream.send(encode({"type": "BOOKMARK", "object": {"kind": "Widget", "metadata": meta}}))
        elif version < self.oldest:
            stream.send(encode({"type": "ERROR", "object": status(410, "Expired", "too old resource version")}))
            stream.send(b"")
            return stream
        position = next((i for i, event in enumerate(self.history) if event.version > version), len(self.history))
        follower = Follower(stream, collection, namespace, selector, slim, position)
        self.followers.append(follower)
        if not self.lagging:
            self._advance(follower)
        return stream

    def _advance(self, follower: Follower) -> None:
        while follower.position < len(self.history):
            event = self.history[follower.position]
            follower.position += 1
            some = event.after or event.before
            assert some is not None
            if event.collection != follower.collection or (
                follower.namespace is not None and some["metadata"]["namespace"] != follower.namespace
            ):
                continue
            was = event.before is not None and _selects(follower.selector, event.before)
            now = event.after is not None and _selects(follower.selector, event.after)
            if now:
                assert event.after is not None
                line = {
                    "type": "MODIFIED" if was else "ADDED",
                    "object": _shown(event.after, follower.metadata_only),
                }
            elif was:
                assert event.before is not None
                # The state before, at the version of the event, as the real server sends it.
                metadata = {**event.before["metadata"], "resourceVersion": str(event.version)}
                last = {**event.before, "metadata": metadata}
                line = {"type": "DELETED", "object": _shown(last, follower.metadata_only)}
            else:
                continue
            follower.stream.send(encode(line))

    def _closed(self, stream: Stream) -> None:
        self.followers = [follower for follower in self.followers if follower.stream is not stream]

    def _place(self, path: str) -> tuple[str, str | None, str | None]:
        parts = path.strip("/").split("/")
        base, rest = parts[:3], parts[3:]
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        return "/" + "/".join([*base, rest[0]]), namespace, rest[1] if len(rest) > 1 else None


def _resource(collection: str, kind: str) -> Resource:
    _, _, group, version, plural = collection.split("/")
    return Resource(group, version, plural, kind, kind not in {"CustomResourceDefinition", "Machine"})


def _shown(body: Json, slim: bool) -> Json:
    if not slim:
        return body
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": body["metadata"]}


def _selects(selector: str, body: Json) -> bool:
    labels = body["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        name, equals, value = term.partition("=")
        if (labels.get(name) != value) if equals else (name not in labels):
            return False
    return True


def _sort(request: Request) -> str:
    if request.method != "GET":
        return request.method.lower()
    if "watch" in request.query:
        return "stream" if "sendInitialEvents" in request.query else "watch"
    if "continue" in request.query:
        return "continue"
    return "list" if "limit" in request.query else "get"


PAGED = ReflectorSettings(streaming=False)


def make_client(server: Server, *, idle: float = 90.0) -> Client:
    return Client(
        server,
        clock=SystemClock(),
        rng=random.Random(1),
        watch_limits=Limits(connect=10.0, read=idle, total=None),
    )


def make_cache(
    client: Client, settings: ReflectorSettings = PAGED, *, seed: int = 1, namespaces: list[str] | None = None
) -> Cache:
    return Cache(client, clock=SystemClock(), rng=random.Random(seed), namespaces=namespaces, settings=settings)


class Recorder:
    """A handler that remembers, and checks that what it is told makes sense: its mirror is what one would believe."""

    def __init__(self) -> None:
        self.told: list[Change] = []
        self.mirror: dict[Key, Object] = {}

    def __call__(self, change: Change) -> None:
        self.told.append(change)
        key, known = change.key, self.mirror.get(change.key)
        if change.type.value == "ADDED":
            assert known is None, f"{change} of a key that is there"
            assert change.old is None
            self.mirror[key] = change.object
        else:
            assert known is not None, f"{change} of a key that is not there"
            assert change.old is known
            assert change.object.head.uid == known.head.uid
            if change.type.value == "MODIFIED":
                assert change.object.head.version > known.head.version
                self.mirror[key] = change.object
            else:
                del self.mirror[key]

    @property
    def lines(self) -> list[str]:
        return [
            f"{change.type.value} {change.key.name}"
            + (" own" if change.own else "")
            + (" unknown" if change.final_state_unknown else "")
            for change in self.told
        ]


async def settle(turns: int = 50) -> None:
    """Let everything run that can run without time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)
