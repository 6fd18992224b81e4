"""Sources of kinds whose definition comes and goes."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Self

import pytest

from fivespot.runtime.clock import SystemClock
from fivespot.runtime.objects import Key, KindAbsent, KindState, KindUnknown, Resource
from fivespot.runtime.reconcile import Controller, KindSource

from .fakes import WIDGET, FakeInformer, FakeKinds, Runs, kind_state, make_object

pytestmark = pytest.mark.looptime


class World:
    """A controller with one kind source, and the informers that were opened for it."""

    def __init__(self, facts: KindState | KindAbsent | KindUnknown, **settings: Any) -> None:
        self.kinds = FakeKinds(facts)
        self.opened: list[FakeInformer] = []
        self.synced = True
        self.objects = [make_object("a")]
        self.runs = Runs()
        self.controller = Controller("test", self.runs, clock=SystemClock(), rng=random.Random(1))
        self.changes = 0
        self.source: KindSource = self.controller.watches_kind(
            self.kinds, WIDGET, self.open, on_change=self.changed, **settings
        )

    def open(self, resource: Resource) -> FakeInformer:
        informer = FakeInformer(*self.objects, synced=self.synced, resource=resource)
        self.opened.append(informer)
        return informer

    def changed(self) -> None:
        assert self.source is not None
        self.changes += 1

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.controller.run())
        await asyncio.sleep(0.001)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_an_absent_kind_counts_as_synced_and_empty() -> None:
    world = World(KindAbsent())
    other = FakeInformer(make_object("other"))
    world.controller.watches(other)
    assert world.kinds.groups == ["example.com"]
    assert (world.controller.ready, world.source.informer) == (True, None)
    async with world:
        await asyncio.sleep(1)
    assert world.runs.keys == [Key("ns", "other")]


@pytest.mark.parametrize("facts", [kind_state("v1", established=False), kind_state()])
async def test_a_kind_that_serves_nothing_counts_as_empty_too(facts: KindState) -> None:
    world = World(facts)
    assert (world.controller.ready, world.source.informer) == (True, None)


async def test_a_kind_of_which_nothing_is_known_holds_back_start_and_readiness() -> None:
    world = World(KindUnknown("CustomResourceDefinitions are not listed yet"))
    other = FakeInformer(make_object("other"))
    world.controller.watches(other)
    async with world:
        await asyncio.sleep(100)
        assert not world.runs.keys
        expected = "Widget.example.com is unknown: CustomResourceDefinitions are not listed yet"
        assert world.controller.not_ready_reason == expected
        world.kinds.set(KindAbsent())
        await asyncio.sleep(1)
    assert world.runs.keys == [Key("ns", "other")]
    assert world.controller.ready


async def test_a_kind_that_appears_is_opened_and_its_objects_run() -> None:
    world = World(KindAbsent())
    world.synced = False
    async with world:
        world.kinds.set(kind_state("v2", "v1", storage="v1"))
        (informer,) = world.opened
        assert informer.resource == Resource("example.com", "v1", "widgets", "Widget")
        assert world.source.informer is informer
        assert world.controller.not_ready_reason == "widgets.example.com/v1 is not synced"
        informer.sync()
        assert world.controller.ready
        await asyncio.sleep(1)
        informer.put(make_object("b"))
        await asyncio.sleep(1)
    assert world.runs.keys == [Key("ns", "a"), Key("ns", "b")]
    assert world.changes == 2


async def test_a_kind_that_is_there_gates_until_it_has_told_everything() -> None:
    world = World(kind_state("v1"))
    assert world.changes == 0
    world.opened[0].synced = False
    async with world:
        await asyncio.sleep(10)
        assert not world.runs.keys
        world.opened[0].sync()
        await asyncio.sleep(1)
    assert world.runs.keys == [Key("ns", "a")]


async def test_a_kind_that_goes_is_released_and_whoever_depended_on_it_runs() -> None:
    world = World(kind_state("v1"))
    seen = []

    async with world:
        assert world.runs.keys == [Key("ns", "a")]
        deliver = world.source._deliver
        world.source._deliver = lambda change: (seen.append(change), deliver(change))[1]  # type: ignore[func-returns-value]
        world.kinds.set(KindAbsent())
        await asyncio.sleep(1)
        assert world.runs.keys == [Key("ns", "a")] * 2
    assert world.opened[0].released
    assert (world.opened[0].subscribers, world.opened[0].listeners) == ([], [])
    assert [(change.type.value, change.final_state_unknown) for change in seen] == [("DELETED", True)]
    assert world.source.informer is None
    assert world.controller.ready


async def test_a_failure_to_read_the_definition_is_no_verdict() -> None:
    world = World(kind_state("v1"))
    async with world:
        world.kinds.set(KindUnknown("forbidden"))
        assert not world.opened[0].released
        assert world.controller.ready
        world.opened[0].put(make_object("b"))
        await asyncio.sleep(1)
    assert world.runs.keys == [Key("ns", "a"), Key("ns", "b")]


async def test_a_kind_that_is_being_deleted_is_read_until_it_is_gone() -> None:
    world = World(kind_state("v1"))
    world.kinds.set(kind_state("v1", deleting=True))
    assert not world.opened[0].released
    world.kinds.set(KindAbsent())
    assert world.opened[0].released


async def test_a_version_is_kept_while_it_is_served_and_left_when_it_is_not() -> None:
    world = World(kind_state("v1"))
    async with world:
        world.kinds.set(kind_state("v2", "v1", storage="v2"))
        assert len(world.opened) == 1
        world.kinds.set(kind_state("v2"))
        assert [informer.resource.version for informer in world.opened] == ["v1", "v2"]
        assert world.opened[0].released
        assert not world.opened[1].released
        world.kinds.set(kind_state("v2", plural="widgetries"))
        assert [informer.resource.plural for informer in world.opened] == ["widgets", "widgets", "widgetries"]


async def test_a_version_that_is_chosen_is_read_and_left_when_another_is_chosen() -> None:
    world = World(kind_state("v2", "v1", storage="v1"), version=lambda state: "v2" if "v2" in state.served else "")
    async with world:
        assert [informer.resource.version for informer in world.opened] == ["v2"]
        world.kinds.set(kind_state("v3", "v2", storage="v3"))
        assert len(world.opened) == 1
        world.kinds.set(kind_state("v3", "v1", storage="v3"))
        assert [informer.resource.version for informer in world.opened] == ["v2", "v3"]
        world.kinds.set(kind_state("v3", "v2", storage="v3"))
        assert [informer.resource.version for informer in world.opened] == ["v2", "v3", "v2"]
        assert [informer.released for informer in world.opened] == [True, True, False]


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (KindAbsent(), "Widget.example.com is not installed"),
        (kind_state("v1", established=False), "Widget.example.com is not established"),
        (kind_state(), "Widget.example.com serves no version"),
    ],
)
async def test_a_required_kind_is_waited_for(facts: KindState | KindAbsent, problem: str) -> None:
    world = World(facts, required=True)
    async with world:
        await asyncio.sleep(100)
        assert world.controller.not_ready_reason == problem
        world.kinds.set(kind_state("v1"))
        await asyncio.sleep(1)
        assert world.controller.ready
    assert world.runs.keys == [Key("ns", "a")]


async def test_facts_of_other_groups_change_nothing() -> None:
    world = World(KindAbsent())
    world.kinds.facts = kind_state("v1")
    for listener in world.kinds.listeners:
        listener("elsewhere.org")
    assert not world.opened


async def test_closing_the_source_releases_everything() -> None:
    world = World(kind_state("v1"))
    async with world:
        world.source.close()
        assert world.opened[0].released
        assert world.kinds.listeners == []
        world.kinds.set(KindUnknown("later"))
        assert world.controller.ready
    assert world.runs.keys == [Key("ns", "a")]


async def test_a_standby_holds_the_informer_open_without_delivering() -> None:
    world = World(kind_state("v1"))
    world.opened[0].put(make_object("b"))
    assert len(world.controller.queue) == 0
    async with world:
        pass
    assert not world.opened[0].released
    assert world.opened[0].subscribers == []
    assert sorted(key.name for key in world.runs.keys) == ["a", "b"]
