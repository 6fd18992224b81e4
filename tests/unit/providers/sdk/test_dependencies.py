"""Dependencies of decisions: who read what, and reads that were not declared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fivespot.providers.sdk import (
    Context,
    NoVerdict,
)
from fivespot.providers.sdk.dependencies import Dependencies, Dependency, DependencyIndex
from fivespot.runtime import GroupKind, Key, Object, Resource


def test_a_context_reads_nothing_that_was_not_declared() -> None:
    context = Context("ns", "name")
    with pytest.raises(ValueError, match="declare SCHEDULES"):
        context.schedule("Kind", "name")
    with pytest.raises(ValueError, match="declare it in the provider's reads"):
        context.get(Resource("", "v1", "configmaps", "ConfigMap"), "name")


KIND, OTHER = GroupKind("g", "Kind"), GroupKind("g", "Other")


def dependency(name: str, kind: GroupKind = KIND) -> Dependency:
    return Dependency(kind, Key("ns", name))


def test_objects_whose_decision_read_something_are_found_and_others_are_not() -> None:
    index = DependencyIndex()
    one, two = Key("ns", "one"), Key("ns", "two")
    for dependent, names in ((one, ["a", "b"]), (two, ["b"])):
        index.begin(dependent)
        for name in names:
            index.add(dependent, dependency(name))
        index.end(dependent)
    assert set(index.dependents(dependency("b"))) == {one, two}
    assert set(index.dependents(dependency("a"))) == {one}
    assert index.dependents(dependency("c")) == ()
    assert set(index.dependents_of_kind(KIND)) == {one, two}
    assert set(index.dependents_of_kind(OTHER)) == set()
    index.begin(one)
    index.add(one, dependency("c", OTHER))
    assert set(index.dependents(dependency("a"))) == {one}, "until the new decision is complete"
    index.end(one)
    assert index.dependents(dependency("a")) == ()
    assert index.kinds() == {KIND, OTHER}
    index.forget(one)
    assert index.kinds() == {KIND}
    index.forget(two)
    index.forget(two)
    assert (index.kinds(), index.dependents(dependency("b"))) == (frozenset(), ())


# Objects of a declared resource --------------------------------------------------------------------------------------

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
CALENDAR = Key("ns", "calendar")


@dataclass
class Read:
    """The cache, informer and status of ConfigMaps."""

    synced: bool = True
    last_error: Exception | None = None
    error_since: float | None = None
    objects: dict[Key, Object] = field(default_factory=dict)
    signals: list[Callable[..., None]] = field(default_factory=list)

    @property
    def status(self) -> Read:
        return self

    def informer(self, resource: Resource) -> Read:
        return self

    def on_status(self, call: Callable[..., None]) -> None:
        self.signals.append(call)

    def subscribe(self, call: Callable[..., None], *, on_synced: Callable[..., None]) -> None:
        self.signals += [call, on_synced]

    def get(self, key: Key) -> Object | None:
        return self.objects.get(key)

    def put(self, data: dict[str, str]) -> None:
        metadata = {"namespace": "ns", "name": "calendar", "uid": "u", "resourceVersion": "1"}
        self.objects[CALENDAR] = Object.parse(json.dumps({"metadata": metadata, "data": data}).encode())


def reading(cache: Read, changed: Callable[[Key], None] = lambda key: None) -> Dependencies:
    return Dependencies(cast("Any", cache), [CONFIGMAPS], changed)


def test_a_declared_object_is_read_whole_and_may_be_missing() -> None:
    cache = Read()
    reader = reading(cache).begin(Key("ns", "one"))
    assert reader.get(CONFIGMAPS, CALENDAR) is None
    cache.put({"closed": "monday"})
    found = reader.get(CONFIGMAPS, CALENDAR)
    assert found is not None
    assert found["data"] == {"closed": "monday"}


@pytest.mark.parametrize(
    "cache",
    [Read(synced=False), Read(error_since=4.0, last_error=TimeoutError("no answer"))],
    ids=["not-listed", "synced-once-and-failing-now"],
)
def test_an_object_whose_cache_may_be_outdated_gives_no_verdict_instead_of_an_old_one(cache: Read) -> None:
    cache.put({"closed": "monday"})
    reader = reading(cache).begin(Key("ns", "one"))
    with pytest.raises(NoVerdict, match="configmaps cannot be read") as caught:
        reader.get(CONFIGMAPS, CALENDAR)
    assert (caught.value.ready, caught.value.patience) == ("Unknown", 30.0), "a restart is not reported"


def test_a_read_that_failed_is_decided_again_once_the_cache_can_be_read() -> None:
    asked: list[Key] = []
    cache = Read(synced=False)
    dependencies = reading(cache, asked.append)
    one = Key("ns", "one")
    with pytest.raises(NoVerdict):
        dependencies.begin(one).get(CONFIGMAPS, CALENDAR)
    dependencies.end(one)
    status_changed, _, synced = cache.signals
    status_changed()
    synced()
    assert asked == [one, one]
    dependencies.forget(one)
    synced()
    assert asked == [one, one], "it is gone"
