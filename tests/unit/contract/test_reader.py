"""A7, A15: one resolution of references for machines and for schedules, on plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from fivespot.contract import (
    Reference,
    Resolution,
    Resolved,
    Unreadable,
    Unresolved,
    cut_provider,
    resolve_schedule,
)
from fivespot.contract.reader import KindInfo
from fivespot.runtime import GroupKind, Head, Key, KindAbsent, KindUnknown, Object
from fivespot.runtime.objects import KindState

GROUP = "spotschedules.5spot.finos.org"
HOURS = KindState(
    group=GROUP,
    kind="Hours",
    plural="hours",
    crd_name=f"hours.{GROUP}",
    namespaced=True,
    established=True,
    deleting=False,
    served=("v1",),
    storage="v1",
    labels={},
    uid="1",
    version=1,
)


@dataclass
class Status:
    synced: bool = True
    last_error: Exception | None = None
    error_since: float | None = None


@dataclass
class World:
    """A kind and its schedules, as caches hold them."""

    kind: KindInfo = HOURS
    status: Status = field(default_factory=Status)
    objects: dict[Key, Object] = field(default_factory=dict)
    opened: list[GroupKind] = field(default_factory=list)

    @property
    def informer(self) -> World:
        return self

    def get(self, key: Key) -> Object | None:
        return self.objects.get(key)

    def open(self, group_kind: GroupKind, state: KindState) -> World:
        self.opened.append(group_kind)
        return self

    def put(self, name: str, status: bytes, *, namespace: str = "ns") -> None:
        head = Head(namespace=namespace, name=name, uid="u", version=1, generation=7)
        self.objects[Key(namespace, name)] = Object(cut_provider(b'{"status": ' + status + b"}"), head)

    def resolve(self, name: str = "office", namespace: str = "ns") -> Resolution:
        return resolve_schedule(
            Reference("Hours", name),
            group=GROUP,
            namespace=namespace,
            field="spec.schedule",
            lookup=lambda group_kind: self.kind,
            open_kind=self.open,
        )


def test_a_ready_schedule_resolves_to_its_verdict() -> None:
    world = World()
    world.put("office", b'{"active": true, "conditions": [{"type": "Ready", "status": "True"}]}')
    found = world.resolve()
    assert isinstance(found, Resolved)
    assert (found.active, found.display.generation) == (True, 7)
    assert world.opened == [GroupKind(GROUP, "Hours")]


def test_a_schedule_of_another_namespace_is_not_found() -> None:
    world = World()
    world.put("office", b'{"active": true}')
    found = world.resolve(namespace="other")
    assert isinstance(found, Unresolved)
    assert (found.reason, found.message) == (
        "ProviderNotFound",
        "Hours/office does not exist in namespace other: create it, or correct spec.schedule.name",
    )


def test_a_schedule_without_a_verdict_is_unresolved() -> None:
    world = World()
    world.put("office", b"{}")
    found = world.resolve()
    assert isinstance(found, Unresolved)
    assert found.reason == "StatusActiveMissing"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (KindAbsent(), "accepts kind Hours: install the provider, or correct spec.schedule.kind"),
        (replace(HOURS, established=False), "is not established"),
        (replace(HOURS, deleting=True), "is being deleted"),
        (replace(HOURS, served=()), "serves no version"),
        (replace(HOURS, namespaced=False), "is not namespaced"),
    ],
)
def test_a_kind_that_is_not_installed_is_unresolved_and_not_read(kind: KindInfo, words: str) -> None:
    world = World(kind)
    found = world.resolve()
    assert isinstance(found, Unresolved)
    assert found.reason == "ProviderCRDNotInstalled"
    assert words in found.message
    assert world.opened == []


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (World(KindUnknown("403")), f"the definition of Hours.{GROUP} cannot be read: 403"),
        (World(status=Status(synced=False)), "Hours objects cannot be read: not listed yet"),
        (World(status=Status(synced=False, last_error=Exception("403"))), "Hours objects cannot be read: 403"),
        # A cache that was read once holds a verdict that may be stale.
        (World(status=Status(last_error=Exception("500"), error_since=1.0)), "Hours objects cannot be read: 500"),
    ],
)
def test_a_schedule_that_cannot_be_read_gives_no_verdict_even_if_it_is_cached(world: World, words: str) -> None:
    world.put("office", b'{"active": true}')
    assert world.resolve() == Unreadable(words)


def test_a_new_state_of_a_schedule_is_read_anew() -> None:
    world = World()
    world.put("office", b'{"active": true}')
    first = world.resolve()
    world.put("office", b'{"active": false}')
    assert [isinstance(each, Resolved) and each.active for each in (first, world.resolve())] == [True, False]


def test_a_reference_is_a_kind_and_a_name() -> None:
    assert str(Reference("Kind", "name")) == "Kind/name"
