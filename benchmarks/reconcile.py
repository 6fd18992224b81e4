"""Measure a flip without HTTP: from the provider's event to the last status write, in one process.

The manager's own controller runs on a server in memory behind the transport, so neither sockets nor TLS nor a real
API server are in the figures; ``./dev bench machines`` has those. The floor is what that server takes for the same
requests when nobody decides anything.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from fivespot.api import names
from fivespot.controllers.scheduledmachine.controller import build
from fivespot.runtime import Cache, Client, EventRecorder, ManagerContext, Metrics, SystemClock, configure_logging
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import Request, Response
from fivespot.runtime.clock import InlineOffload, system_random
from fivespot.runtime.manager import ControllerSettings
from fivespot.runtime.telemetry import EventLimits

from ._report import Row, parser, report
from ._scenes import NAMESPACES, fleet

ROUNDS = 3
PROVIDERS = f"/apis/{names.PROVIDER_GROUP}/v1alpha1/playeds"
MACHINES = f"/apis/{names.API_VERSION}/{names.PLURAL}"

Json = dict[str, Any]


class Stream:
    """One open watch."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.send = self._lines.put_nowait

    async def readline(self) -> bytes:
        return await self._lines.get()

    async def read_rest(self, limit: int) -> bytes:
        return b""

    async def close(self) -> None:
        """Nothing to close."""


class Server:
    """Objects as JSON, by collection and by namespace and name; enough of an API for one controller."""

    def __init__(self) -> None:
        self.objects: defaultdict[str, dict[str, Json]] = defaultdict(dict)
        self.watches: defaultdict[str, list[Stream]] = defaultdict(list)
        self.version = 1
        self.sent: list[Request] = []
        self.record = False

    async def request(self, request: Request) -> Response:
        if self.record:
            self.sent.append(request)
        await asyncio.sleep(0)
        collection, key = self.place(request.path)
        stored = self.objects[collection]
        if request.method == "GET" and not key:
            items = b",".join(map(msgspec.json.encode, stored.values()))
            return Response(200, {}, b'{"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (self.version, items))
        if request.method == "POST":
            made = msgspec.json.decode(request.body or b"")
            meta = made["metadata"]
            meta |= {"uid": f"made-{self.version}", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
            if collection.endswith("/events"):
                return self._answer(made, 201)
            return self.put(collection, f"{meta['namespace']}/{meta['name']}", made, "ADDED")
        found = stored.get(key)
        if found is None:
            return Response(404, {}, b'{"kind":"Status","code":404,"reason":"NotFound","metadata":{}}')
        if request.method == "DELETE":
            self.put(collection, key, stored.pop(key), "DELETED")
            return Response(200, {}, b'{"kind":"Status","status":"Success","metadata":{}}')
        if request.method == "PATCH":
            return self.put(collection, key, merged(found, msgspec.json.decode(request.body or b"")), "MODIFIED")
        return self._answer(found, 200)

    async def stream(self, request: Request) -> Stream:
        stream = Stream()
        self.watches[self.place(request.path)[0]].append(stream)
        return stream

    async def close(self) -> None:
        """Nothing to close."""

    @staticmethod
    def place(path: str) -> tuple[str, str]:
        """The collection of a path, and namespace and name of an object."""
        parts = path.removesuffix("/status").split("/")
        if "namespaces" not in parts:
            return ("/".join(parts[:5]), f"/{parts[5]}") if len(parts) > 5 else (path, "")
        at = parts.index("namespaces")
        collection = "/".join([*parts[:at], parts[at + 2]])
        return collection, f"{parts[at + 1]}/{parts[at + 3]}" if len(parts) > at + 3 else ""

    def put(self, collection: str, key: str, body: Json, happened: str) -> Response:
        """Store or remove an object, and send the change to the watches."""
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        if happened != "DELETED":
            self.objects[collection][key] = body
        raw = msgspec.json.encode(body)
        line = b'{"type":"%s","object":%s}' % (happened.encode(), raw)
        for watch in self.watches[collection]:
            watch.send(line)
        return Response(200, {}, raw)

    def _answer(self, body: Json, status: int) -> Response:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        return Response(status, {}, msgspec.json.encode(body))


def merged(old: Json, change: Json) -> Json:
    """RFC 7386."""
    result = dict(old)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


class Bench:
    """Machines at rest on a server in memory."""

    def __init__(self, count: int) -> None:
        self.server = Server()
        self.count = count
        children = ("/machines", "/standinbootstraps", "/standinmachines")
        for path, collection in fleet(count).items():
            for number in range(0 if path.endswith(children) else collection.count):
                body = msgspec.json.decode(collection.make(number))
                body.get("status", {}).pop("machineRef", None)
                if path == PROVIDERS:
                    body["status"]["active"] = False
                elif path == MACHINES:
                    body["status"] = {}
                    body["spec"]["gracefulShutdownTimeout"] = "0s"
                meta = body["metadata"]
                self.server.put(path, f"{meta.get('namespace', '')}/{meta['name']}", body, "ADDED")

    async def measure(self) -> list[Row]:
        clock, rng = SystemClock(), system_random(1)
        client, metrics = Client(self.server, clock=clock, rng=rng), Metrics(process=False)
        events = EventRecorder(
            client,
            controller="bench",
            instance="b",
            clock=clock,
            rng=rng,
            metrics=metrics,
            # Every round writes its events, so that all rounds do the same.
            limits=EventLimits(burst=10_000),
        )
        context = ManagerContext(
            client=client,
            cache=Cache(client, clock=clock, rng=rng, settings=ReflectorSettings(streaming=False)),
            clock=clock,
            rng=rng,
            offload=InlineOffload(),
            metrics=metrics,
            events=events,
            settings=ControllerSettings(),
        )
        rows: list[Row] = []
        async with context.cache:
            tasks = [asyncio.create_task(events.run()), asyncio.create_task(build(context).run())]
            await self._until("Inactive", events)
            for active, phase in ((True, "Active"), (False, "Inactive")):
                rows.append(await self._flips(active, phase, events))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return rows

    async def _flips(self, active: bool, phase: str, events: EventRecorder) -> Row:
        best, floor = float("inf"), float("inf")
        for _ in range(ROUNDS):
            self.server.sent.clear()
            self.server.record = True
            begun = time.process_time()
            self._say(active)
            await self._until(phase, events)
            best = min(best, time.process_time() - begun)
            self.server.record = False
            floor = min(floor, await self._replayed(list(self.server.sent)))
            requests = len(self.server.sent) / self.count
            self._say(not active)
            await self._until("Inactive" if active else "Active", events)
        self._say(active)
        await self._until(phase, events)
        each = 1e6 / self.count
        return {
            "flip": "on" if active else "off",
            "requests": round(requests, 2),
            "us of CPU": round(best * each),
            "us of the server": round(floor * each),
            "ratio": best / floor,
        }

    async def _replayed(self, requests: list[Request]) -> float:
        """Seconds that a server takes for these requests alone."""
        server = Server()
        server.objects.update({path: dict(stored) for path, stored in self.server.objects.items()})
        begun = time.process_time()
        for request in requests:
            await server.request(request)
        return time.process_time() - begun

    def _say(self, active: bool) -> None:
        for key, body in list(self.server.objects[PROVIDERS].items()):
            self.server.put(PROVIDERS, key, merged(body, {"status": {"active": active}}), "MODIFIED")

    async def _until(self, phase: str, events: EventRecorder) -> None:
        machines = self.server.objects[MACHINES]
        async with asyncio.timeout(120):
            while any(body.get("status", {}).get("phase") != phase for body in machines.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await events.flush(60)


def main() -> None:
    options = parser("reconcile", __doc__)
    options.add_argument("--machines", type=int, default=500, metavar="N")
    given = options.parse_args()
    with Path(os.devnull).open("wb") as nowhere:
        configure_logging(stream=nowhere)
        rows = asyncio.run(Bench(given.machines).measure())
    report(
        given, f"{given.machines} machines in {NAMESPACES} namespaces flip; best of {ROUNDS}, for each machine", rows
    )


if __name__ == "__main__":
    main()
