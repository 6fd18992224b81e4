"""Statuses are written a limited number at a time; events wait for them, and none is lost."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fivespot.providers.sdk.status_writer import WRITERS, StatusWriter
from fivespot.runtime import ManagerContext, NotFoundError, Object, Resource
from fivespot.runtime.telemetry import EventNote
from fivespot.testing.virtual_time import run_virtual

KIND = Resource("spotschedules.5spot.finos.org", "v1alpha1", "tides", "Tide")
NOTE = EventNote(reason="Sample", message="m", warning=False)


class World:
    """A server whose writes take a second each, and a recorder of events."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.running = self.most = self.written = 0
        self.events: list[int] = []
        self.reporters: list[str] = []
        context = SimpleNamespace(client=self, events=SimpleNamespace(note=self._note))
        self.writer = StatusWriter(KIND, cast("ManagerContext", context), "tide")

    def _note(self, *_: Any, controller: str) -> None:
        self.events.append(self.written)
        self.reporters.append(controller)

    async def patch_status(self, *_: Any) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(1)
        finally:
            self.running -= 1
        if self.error is not None:
            raise self.error
        self.written += 1


def obj(name: str = "x") -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    return Object.parse(json.dumps({"metadata": metadata}).encode())


def test_no_more_than_a_limited_number_of_writes_run_at_once_and_all_are_made() -> None:
    async def main() -> World:
        world = World()
        await asyncio.gather(*(world.writer.write(obj(), {}, lambda: True) for _ in range(3 * WRITERS)))
        return world

    world = run_virtual(main())
    assert (world.most, world.written) == (WRITERS, 3 * WRITERS)


def test_a_status_that_was_superseded_while_it_waited_is_not_written() -> None:
    async def main() -> tuple[World, bool]:
        world = World()
        newest = True
        waiting = [asyncio.create_task(world.writer.write(obj(), {}, lambda: True)) for _ in range(WRITERS)]
        late = asyncio.create_task(world.writer.write(obj(), {}, lambda: newest))
        await asyncio.sleep(0.5)
        newest = False
        await asyncio.gather(*waiting)
        return world, await late

    world, written = run_virtual(main())
    assert not written
    assert world.written == WRITERS


def test_events_wait_for_statuses_and_come_after_the_last() -> None:
    async def main() -> World:
        world = World()
        writes = [asyncio.create_task(world.writer.write(obj(), {}, lambda: True)) for _ in range(2)]
        await asyncio.sleep(0.1)
        world.writer.record(obj(), NOTE)
        assert world.events == []
        await asyncio.gather(*writes)
        return world

    assert run_virtual(main()).events == [2]


def test_an_event_without_a_write_is_recorded_at_once() -> None:
    async def main() -> World:
        world = World()
        world.writer.record(obj(), NOTE)
        return world

    world = run_virtual(main())
    assert (world.events, world.reporters) == ([0], ["tide"])


def test_a_write_that_fails_or_is_cancelled_holds_no_event_back() -> None:
    async def main() -> World:
        world = World(NotFoundError(404, "NotFound", "gone", request="patch"))
        write = asyncio.create_task(world.writer.write(obj(), {}, lambda: True))
        cancelled = asyncio.create_task(world.writer.write(obj(), {}, lambda: True))
        await asyncio.sleep(0.1)
        world.writer.record(obj(), NOTE)
        cancelled.cancel()
        with pytest.raises(NotFoundError):
            await write
        return world

    assert run_virtual(main()).events == [0]


def test_under_endless_writes_events_beyond_a_limit_are_recorded_all_the_same() -> None:
    async def main() -> World:
        world = World()
        write = asyncio.create_task(world.writer.write(obj(), {}, lambda: True))
        await asyncio.sleep(0.1)
        for _ in range(5000):
            world.writer.record(obj(), NOTE)
        assert 0 < len(world.events) < 5000
        await write
        return world

    assert len(run_virtual(main()).events) == 5000
