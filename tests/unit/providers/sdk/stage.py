"""A provider's controller in virtual time, on a server in memory that merges patches and counts generations."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from fivespot.api.names import PROVIDER_GROUP
from fivespot.providers.sdk import Provider, build_controller
from fivespot.runtime import CRDS, Cache, Client, EventRecorder, Key, ManagerContext, Metrics, Resource
from fivespot.runtime.cache import ReflectorSettings
from fivespot.runtime.client import Request, Response
from fivespot.runtime.clock import InlineOffload, LoopClock
from fivespot.runtime.manager import ControllerSettings
from unit.runtime.cache.fakes import Server, failing, settle

__all__ = ["START", "Stage", "at", "on_stage"]

Json = dict[str, Any]

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
"""A Tuesday, noon."""


def at(**after: float) -> datetime:
    """An instant after the start."""
    return START + timedelta(**after)


class SteppedClock(LoopClock):
    """A wall clock that a person sets."""

    step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step


class Stage(Server):
    """The server, and short words for what tests do to it and see of it."""

    def __init__(self) -> None:
        super().__init__()
        self.objects[CRDS.collection_path()] = {}
        self.events: list[Json] = []
        self.writes: list[tuple[float, Json]] = []
        """Status patches that came through, with the seconds since the start."""
        self.clock = SteppedClock(START)
        self.metrics = Metrics(process=False)

    def serve(self, resource: Resource) -> None:
        """Have a kind defined and served."""
        self.objects.setdefault(resource.collection_path(), {})
        names = {"kind": resource.kind, "plural": resource.plural}
        versions = [{"name": resource.version, "served": True, "storage": True}]
        spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": versions}
        conditions = [{"type": "Established", "status": "True"}]
        self.put(CRDS, resource.qualified, spec=spec, status={"acceptedNames": names, "conditions": conditions})

    def withdraw(self, resource: Resource) -> None:
        """Have its definition gone, and all objects with it."""
        for key in list(self.objects[resource.collection_path()]):
            self.delete(resource, key.name, key.namespace)
        del self.objects[resource.collection_path()]
        self.delete(CRDS, resource.qualified)

    def apply(self, resource: Resource, name: str, spec: Mapping[str, Any], namespace: str = "ns") -> None:
        """Apply a spec as kubectl does: generation counts its changes."""
        before = self.objects[resource.collection_path()].get(Key(namespace, name))
        generation = before["metadata"].get("generation", 1) if before else 0
        if before is None or before["spec"] != spec:
            generation += 1
        self._next_generation = generation
        self.put(resource, name, namespace, spec=json.loads(json.dumps(spec)))

    _next_generation: int | None = None

    def put(self, resource: Resource, name: str, namespace: str | None = None, **fields: Any) -> Json:
        key = Key(namespace if namespace is not None else ("ns" if resource.namespaced else ""), name)
        before = self._stored(resource).get(key)
        generation, self._next_generation = self._next_generation, None
        if generation is None and before is not None:
            generation = before["metadata"].get("generation", 1)
        self._generation = generation or 1
        return super().put(resource, name, namespace, **fields)

    _generation = 1

    def _happened(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        if after is not None:
            after["metadata"]["generation"] = self._generation
        super()._happened(resource, before, after)

    def get(self, resource: Resource, name: str, namespace: str = "ns") -> Json:
        return self.objects[resource.collection_path()][Key(namespace, name)]

    def status(self, resource: Resource, name: str, namespace: str = "ns") -> Json:
        found: Json = self.get(resource, name, namespace).get("status") or {}
        return found

    def ready(self, resource: Resource, name: str, namespace: str = "ns") -> tuple[str, str]:
        """Status and reason of condition Ready."""
        [ready] = [c for c in self.status(resource, name, namespace)["conditions"] if c["type"] == "Ready"]
        return ready["status"], ready["reason"]

    def told(self) -> list[str]:
        """Reasons of all events, in order."""
        return [event["reason"] for event in self.events]

    def _answer(self, request: Request) -> Response:
        if request.method == "POST" and request.path.endswith("/events"):
            event = msgspec.json.decode(request.body or b"")
            self.events.append(event)
            return Response(201, {}, msgspec.json.encode({**event, "metadata": {**event["metadata"], **_META}}))
        if request.method != "PATCH" or not request.path.endswith("/status"):
            return super()._answer(request)
        collection, namespace, name = self._place(request.path)
        found = self.objects[collection].get(Key(namespace or "", name or ""))
        if found is None:
            return failing(404, "NotFound")
        change = msgspec.json.decode(request.body or b"")
        if change["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return failing(409, "Conflict")
        self.writes.append((asyncio.get_running_loop().time(), change["status"]))
        _, _, group, version, plural = collection.split("/")
        resource = Resource(group, version, plural, found["kind"])
        status = _merged(found.get("status") or {}, change["status"])
        return Response(200, {}, msgspec.json.encode(self.put(resource, name or "", namespace, status=status)))


_META = {"uid": "event", "resourceVersion": "1"}


def _merged(old: Json, change: Json) -> Json:
    found = {name: value for name, value in old.items() if change.get(name, ...) is not None}
    for name, value in change.items():
        if isinstance(value, dict):
            found[name] = _merged(found.get(name) or {}, value)
        elif value is not None:
            found[name] = value
    return found


@asynccontextmanager
async def on_stage(stage: Stage, *providers: Provider[Any], dry_run: bool = False) -> AsyncIterator[ManagerContext]:
    """Controllers of the providers, running until the block is left; may be entered again, as after a restart."""
    rng = random.Random(1)
    client = Client(stage, field_manager="test", clock=stage.clock, rng=rng)
    for provider in providers:
        if provider.resource.collection_path() not in stage.objects:
            stage.serve(provider.resource)
    metrics = Metrics(process=False)
    stage.metrics = metrics
    async with Cache(client, clock=stage.clock, rng=rng, settings=ReflectorSettings(streaming=False)) as cache:
        context = ManagerContext(
            client=client,
            cache=cache,
            clock=stage.clock,
            rng=rng,
            offload=InlineOffload(),
            metrics=metrics,
            events=EventRecorder(client, controller="test", instance="i", clock=stage.clock, rng=rng, metrics=metrics),
            settings=ControllerSettings(dry_run=dry_run),
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(build_controller(provider, context).run()) for provider in providers]
            tasks.append(group.create_task(context.events.run()))
            await asyncio.sleep(0.01)
            await settle()
            yield_error: BaseException | None = None
            try:
                yield context
            except BaseException as error:
                yield_error = error
            for task in tasks:
                task.cancel()
        if yield_error is not None:
            raise yield_error


def schedules_of(plural: str, kind: str) -> Resource:
    return Resource(PROVIDER_GROUP, "v1alpha1", plural, kind)
