"""Dependencies of decisions: who read what, and reads that were not declared."""

from __future__ import annotations

import pytest

from fivespot.providers.sdk import (
    Context,
)
from fivespot.providers.sdk.dependencies import Dependency, DependencyIndex
from fivespot.runtime import GroupKind, Key, Resource


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
