"""The recorder: objects that it keeps, and the end of its watch."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

import msgspec
import pytest

from fivespot.runtime import Key, Resource, SystemClock
from fivespot.runtime.client import Page, WatchEnd, WatchEnded, WatchEvent
from fivespot.testing.conformance import RecordingLostError
from fivespot.testing.conformance.recorder import Recorder

RESOURCE = Resource("spotschedules.5spot.finos.org", "v1", "officehours", "OfficeHours")
KEY = Key("prod", "hours")


def event(version: int, *, name: str = KEY.name, kind: Any = "MODIFIED", **status: Any) -> WatchEvent:
    metadata = {"name": name, "namespace": KEY.namespace, "uid": "a", "resourceVersion": str(version)}
    return WatchEvent(kind, msgspec.Raw(json.dumps({"metadata": metadata, "status": status}).encode()))


class Watch:
    """A watch of given events that ends as told."""

    def __init__(self, *steps: WatchEvent | WatchEnd) -> None:
        self._steps = list(steps)

    async def next(self) -> WatchEvent:
        if not self._steps:
            await asyncio.Event().wait()
        step = self._steps.pop(0)
        if isinstance(step, WatchEnd):
            raise WatchEnded(step, f"ended: {step.value}")
        return step

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return


class Client:
    """Returns one watch after the other, and records the versions that they start from."""

    def __init__(self, *watches: Watch) -> None:
        self._watches = list(watches)
        self.versions: list[str] = []

    async def page(self, *_: Any, **__: Any) -> Page:
        return Page([], "", "7")

    async def watch(self, *_: Any, version: str, **__: Any) -> Watch:
        self.versions.append(version)
        return self._watches.pop(0)


def recorder(client: Client) -> Recorder:
    return Recorder(client, RESOURCE, KEY.namespace, SystemClock())  # type: ignore[arg-type]


@pytest.mark.looptime
async def test_registered_objects_are_recorded_and_an_ended_watch_resumes_at_its_version() -> None:
    first = Watch(event(8, kind="ADDED"), event(9, name="other"), event(10, kind="BOOKMARK"), WatchEnd.CLEAN)
    client = Client(first, Watch(event(11, active=True)))
    found = recorder(client)
    await found.begin()
    found.register(KEY)
    task = asyncio.create_task(found.run())
    seen = await found.until(KEY, lambda record: record.last and record.last.active, 5)
    task.cancel()
    assert seen is True
    assert [state.version for state in found.records[KEY].seen] == [8, 11]
    assert client.versions == ["7", "10"]
    assert set(found.records) == {KEY}


@pytest.mark.looptime
async def test_waiting_ends_at_its_limit() -> None:
    found = recorder(Client(Watch(event(8))))
    found.register(KEY)
    task = asyncio.create_task(found.run())
    begun = asyncio.get_running_loop().time()
    assert await found.until(KEY, lambda record: len(record.seen) > 1, 5) is None
    assert asyncio.get_running_loop().time() - begun == pytest.approx(5)
    task.cancel()


@pytest.mark.looptime
@pytest.mark.parametrize("end", [WatchEnd.EXPIRED, WatchEnd.GARBAGE, WatchEnd.REFUSED])
async def test_a_lost_watch_ends_the_recording(end: WatchEnd) -> None:
    with pytest.raises(RecordingLostError, match=f"officehours.*was lost: ended: {end.value}"):
        await recorder(Client(Watch(end))).run()
