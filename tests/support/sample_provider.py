"""A small provider that keeps every rule of the conformance kit, as the base of those that break one.

A toy's spec is ``{active: bool, until?: instant}``; without ``active`` it cannot be followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from fivespot.runtime import (
    DONE,
    Change,
    ChangeType,
    Condition,
    Controller,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    merge_diff,
    merge_patch,
    open_manager,
    set_conditions,
)
from fivespot.runtime.objects import rfc3339
from fivespot.testing.conformance import Spec, Subject

__all__ = ["GROUP", "FollowingToy", "Running", "Toy", "following_subject", "toy_subject"]

GROUP = "spotschedules.5spot.finos.org"
_READY = 30.0

Json = dict[str, Any]


class Toy:
    """The reconciler of one toy kind; subclasses break a rule each, and say which.

    :cvar rules: ids of the rules that it breaks.
    :cvar words: what the kit's message has to say besides.
    """

    rules: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[str] = ""

    def __init__(self, context: ManagerContext) -> None:
        self.client = context.client
        self.clock = context.clock
        self.resource = self.make_resource()
        self.informer = context.cache.informer(self.resource)

    # -- the kind ------------------------------------------------------------------------------------------------

    @classmethod
    def make_resource(cls) -> Resource:
        return Resource(GROUP, "v1", f"{cls.__name__.lower()}s", cls.__name__)

    @classmethod
    def status_schema(cls) -> Json:
        return {
            "type": "object",
            "required": ["active"],
            "properties": {"active": {"type": "boolean"}},
            "x-kubernetes-preserve-unknown-fields": True,
        }

    @classmethod
    def definition(cls) -> Json:
        names = cls.make_resource()
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"type": "object", "properties": {"spec": anything, "status": cls.status_schema()}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": names.qualified, "labels": {"clusterctl.cluster.x-k8s.io/move": ""}},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {
                    "kind": names.kind,
                    "listKind": f"{names.kind}List",
                    "plural": names.plural,
                    "singular": names.kind.lower(),
                },
                "versions": [{**version, "subresources": {"status": {}}}],
            },
        }

    # -- the controller ------------------------------------------------------------------------------------------

    def build(self, context: ManagerContext) -> Controller:
        controller = context.controller(self.resource.kind, self)
        controller.watches(self.informer, predicate=self.wakes)
        return controller

    def wakes(self, change: Change) -> bool:
        return not (change.writer == self.resource.kind and change.type is ChangeType.MODIFIED)

    async def reconcile(self, key: Key) -> Result:
        obj = self.informer.get(key)
        if obj is None or (obj.head.deleting and not self.sees_deleting()):
            return DONE
        body = obj.decode()
        old = body.get("status") or {}
        spec = body.get("spec") or {}
        now = self.clock.now()
        wanted = self.status(key, spec, old, obj, now)
        await self.write(key, obj, old, wanted)
        ends = _ends(spec)
        return DONE if ends is None or ends <= now else Result(requeue_after=self.sleep((ends - now).total_seconds()))

    def sees_deleting(self) -> bool:
        return False

    def sleep(self, seconds: float) -> float:
        return seconds + 0.001

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        """The status that an object should have."""
        if not isinstance(spec.get("active"), bool):
            return self.broken(old, obj, now)
        ends = _ends(spec)
        active = self.verdict(key, bool(spec["active"]) and (ends is None or now < ends))
        since = old.get("lastTransitionTime")
        flipped = old.get("active") is not active
        return {
            **old,
            "active": active,
            "conditions": self.conditions(old, Condition("Ready", "True", "Decided", "as asked"), obj, now),
            "observedGeneration": obj.head.generation,
            "lastTransitionTime": self.time(since, now, flipped=flipped),
            "nextTransitionTime": rfc3339(ends) if active and ends is not None else None,
        }

    def broken(self, old: Json, obj: Object, now: datetime) -> Json:
        ready = Condition("Ready", "False", "InvalidSpec", "spec.active: must be true or false")
        return {
            **old,
            "active": old.get("active") is True,
            "conditions": self.conditions(old, ready, obj, now),
            "observedGeneration": obj.head.generation,
            "nextTransitionTime": None,
        }

    def verdict(self, key: Key, active: bool) -> bool:
        return active

    def time(self, since: str | None, now: datetime, *, flipped: bool) -> Any:
        return rfc3339(now) if flipped or since is None else since

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        return set_conditions(old.get("conditions"), [ready], generation=obj.head.generation, now=now)

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        change = merge_diff(old, wanted)
        if change:
            await self.patch(key, {**change, "active": wanted.get("active")})

    async def patch(self, key: Key, status: Mapping[str, Any]) -> None:
        try:
            await self.client.patch(self.resource, key, merge_patch({"status": status}), subresource="status")
        except NotFoundError:
            return


class FollowingToy(Toy):
    """Follows something outside the cluster, which it asks often."""

    world: ClassVar[dict[Key, bool]] = {}

    async def reconcile(self, key: Key) -> Result:
        await super().reconcile(key)
        return Result(requeue_after=0.2)

    def verdict(self, key: Key, active: bool) -> bool:
        return self.world.get(key, False)


class Running:
    """Providers that run in this process, each with a manager of its own, so that one can be restarted."""

    def __init__(self, kubeconfig: Path, group: asyncio.TaskGroup) -> None:
        self._kubeconfig = kubeconfig
        self._group = group
        self._stops: dict[type[Toy], tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._controllers: dict[type[Toy], Controller] = {}

    async def start(self, toy: type[Toy]) -> None:
        stop, ready = asyncio.Event(), asyncio.Event()
        task = self._group.create_task(self._run(toy, stop, ready))
        self._stops[toy] = stop, task
        async with asyncio.timeout(_READY):
            await ready.wait()
            while not self._controllers[toy].ready:
                await asyncio.sleep(0.05)

    async def stop(self, toy: type[Toy]) -> None:
        stop, task = self._stops.pop(toy)
        stop.set()
        await task

    async def stop_all(self) -> None:
        for toy in list(self._stops):
            await self.stop(toy)

    async def restart(self, toy: type[Toy]) -> None:
        await self.stop(toy)
        await self.start(toy)

    async def _run(self, toy: type[Toy], stop: asyncio.Event, ready: asyncio.Event) -> None:
        async with open_manager(toy.__name__.lower(), kubeconfig=str(self._kubeconfig)) as manager:

            def build(context: ManagerContext) -> Controller:
                controller = self._controllers[toy] = toy(context).build(context)
                ready.set()
                return controller

            manager.add(build)
            await manager.run(stop)


def toy_subject(toy: type[Toy], **more: Any) -> Subject:
    """Describe a sample provider to the conformance kit."""
    return Subject(
        **{
            "kind": toy.__name__,
            "active": {"active": True},
            "inactive": {"active": False},
            "invalid": {},
            "boundary": _boundary,
            **more,
        }
    )


def following_subject(**more: Any) -> Subject:
    """The same for the one whose specs say nothing, and which needs another object to be there."""

    async def flip(namespace: str, name: str, active: bool) -> None:
        FollowingToy.world[Key(namespace, name)] = active

    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    return toy_subject(FollowingToy, inactive=None, boundary=None, flip=flip, prerequisites=[settings], **more)


def _boundary(now: datetime) -> tuple[Spec, datetime]:
    # The verdict before it has to be there by then, also on a busy machine.
    ends = (now + timedelta(seconds=8)).replace(microsecond=0).astimezone(UTC)
    return {"active": True, "until": rfc3339(ends)}, ends


def _ends(spec: Mapping[str, Any]) -> datetime | None:
    return datetime.fromisoformat(spec["until"]) if spec.get("until") else None
