"""Data behind the ``/debug`` endpoints: plans, queues, informers and tasks."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fivespot.runtime.clock import Clock
from fivespot.runtime.objects import Key

if TYPE_CHECKING:
    from fivespot.runtime.cache import Cache
    from fivespot.runtime.reconcile import Controller
__all__ = ["PlanBook", "informers", "queues", "tasks"]


class PlanBook:
    """The latest plan of each object: the steps that a controller decided on, or would take in a dry run.

    A plan is a mapping that can be encoded as JSON and holds no credentials: embedded specs are shown by their hash.

    :param size: number of plans kept; the oldest are dropped first.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._plans: OrderedDict[tuple[str, Key], Mapping[str, Any]] = OrderedDict()

    def note(self, controller: str, key: Key, plan: Mapping[str, Any]) -> None:
        self._plans[controller, key] = plan
        self._plans.move_to_end((controller, key))
        while len(self._plans) > self._size:
            self._plans.popitem(last=False)

    def forget(self, controller: str, key: Key) -> None:
        """Drop the plan of an object that no longer exists or has nothing planned."""
        self._plans.pop((controller, key), None)

    def snapshot(self) -> list[dict[str, Any]]:
        return [
            {"controller": controller, "object": str(key), "plan": plan}
            for (controller, key), plan in self._plans.items()
        ]


_QUEUE_ENTRIES = 10_000
"""Keys shown per queue, which bounds the time to encode them to milliseconds."""


def queues(controllers: Iterable[Controller]) -> dict[str, Any]:
    """Readiness and queued keys of each controller."""
    return {
        controller.name: {
            "ready": controller.ready,
            "not_ready": controller.not_ready_reason,
            "keys": [
                {**dataclasses.asdict(entry), "key": str(entry.key)}
                for entry in controller.queue.snapshot()[:_QUEUE_ENTRIES]
            ],
        }
        for controller in controllers
    }


def informers(cache: Cache, clock: Clock) -> list[dict[str, Any]]:
    """The running informers; ages in seconds."""
    now = clock.monotonic()
    return [
        {
            "resource": str(status.resource),
            "namespace": status.namespace,
            "selector": status.selector.query(),
            "projection": status.projection.name,
            "state": status.state,
            "synced": status.synced,
            "version": status.version,
            "objects": status.objects,
            "relists": status.relists,
            "watches": status.watches,
            "idle_for": None if status.last_activity is None else round(now - status.last_activity, 3),
            "failing_for": None if status.error_since is None else round(now - status.error_since, 3),
            "last_error": "" if status.last_error is None else str(status.last_error),
            "faults": status.faults,
            "undecodable": status.undecodable,
            "undecodable_objects": {str(key): reason for key, reason in status.undecodable_objects},
        }
        for status in cache.informers()
    ]


def tasks() -> list[dict[str, str]]:
    """Every task of the loop and the source line at which it waits."""
    return sorted(
        ({"name": task.get_name(), "at": _place(task)} for task in asyncio.all_tasks()), key=lambda task: task["name"]
    )


def _place(task: asyncio.Task[Any]) -> str:
    stack = task.get_stack()
    if not stack:
        return ""
    frame = stack[-1]
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
