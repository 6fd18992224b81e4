"""Changes that enqueue a reconciliation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.api import names
from fivespot.controllers.scheduledmachine.sources import (
    CHILDREN,
    CONTROLLER,
    add_indexes,
    child_changed,
    kept_part_changed,
    schedule_changed,
)
from fivespot.runtime import Change, ChangeType, Key, Object
from fivespot.runtime.cache.index import IndexFunction
from fivespot.runtime.cache.store import Store

KEPT = {"status": {"active": True}}


def stored(version: int, **more: object) -> Object:
    metadata = {"name": "hours", "namespace": "prod", "uid": "u", "resourceVersion": str(version), "generation": 1}
    return Object.parse(json.dumps({"metadata": metadata, **more}).encode())


def changed(*, own: bool, type_: ChangeType = ChangeType.MODIFIED) -> Change:
    new = stored(2, status={"active": False})
    old = stored(1, status={"active": True})
    writer = CONTROLLER if own else ""
    return Change(type_, new, None if type_ is ChangeType.ADDED else old, own=own, writer=writer)


@pytest.mark.contract("A12")
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("type_", list(ChangeType))
def test_a_verdict_asks_for_a_run_also_when_a_provider_of_this_process_wrote_it(own: bool, type_: ChangeType) -> None:
    assert schedule_changed(changed(own=own, type_=type_))


@pytest.mark.contract("B5.2")
@pytest.mark.parametrize("type_", list(ChangeType))
def test_what_a_run_wrote_itself_asks_for_no_other_run(type_: ChangeType) -> None:
    gone = type_ is ChangeType.DELETED
    assert kept_part_changed(changed(own=True, type_=type_)) is gone
    assert child_changed(changed(own=True, type_=type_)) is gone
    assert kept_part_changed(changed(own=False, type_=type_))


@pytest.mark.contract("B4.6")
def test_the_same_again_asks_for_no_run() -> None:
    same = Change(ChangeType.MODIFIED, stored(1, **KEPT), stored(1, **KEPT), own=False)
    assert not schedule_changed(same)
    assert not kept_part_changed(same)


class _Machines:
    """As much of an informer as takes indexes."""

    def __init__(self) -> None:
        self.functions: dict[str, IndexFunction] = {}

    def add_index(self, name: str, fn: IndexFunction) -> None:
        self.functions[name] = fn


_kinds = st.sampled_from(["A", "B"])
_specs = st.fixed_dictionaries(
    {
        "schedule": st.fixed_dictionaries({"kind": _kinds, "name": _kinds}),
        "clusterName": _kinds,
        "bootstrapSpec": st.fixed_dictionaries({"apiVersion": st.just("b.io/v1"), "kind": _kinds}),
    }
)
_refs = st.fixed_dictionaries(
    {"phase": _kinds},
    optional={
        "bootstrapRef": st.fixed_dictionaries({"apiVersion": st.just("b.io/v1"), "kind": _kinds, "name": _kinds})
    },
)


@given(states=st.lists(st.tuples(_specs, st.none() | _refs, st.booleans()), min_size=1, max_size=8))
def test_indexes_that_skip_what_did_not_change_find_what_others_find(
    states: list[tuple[dict[str, Any], dict[str, Any] | None, bool]],
) -> None:
    faults: list[str] = []
    store = Store(lambda what, error: faults.append(f"{what}: {error}"))
    machines = _Machines()
    add_indexes(machines)  # type: ignore[arg-type]
    for name, fn in machines.functions.items():
        store.add_index(name, fn)
    generation, before = 1, states[0][0]
    for version, (spec, status, keeps_spec) in enumerate(states, start=1):
        spec = before if keeps_spec else spec
        generation += spec != before
        before = spec
        meta = {"name": "web", "namespace": "prod", "uid": "u", "resourceVersion": str(version)}
        body = {"metadata": meta | {"generation": generation}, "spec": spec} | ({"status": status} if status else {})
        found = Object.parse(json.dumps(body).encode())
        store.put(Key("prod", "web"), found)
        for name, fn in machines.functions.items():
            for value in fn(Change(ChangeType.ADDED, found)) or ():
                assert store.keys_by_index(name, value) == [Key("prod", "web")]
            assert sum(len(keys) for keys in store._indexes[name]._keys.values()) == len(
                set(fn(Change(ChangeType.ADDED, found)) or ())
            )
    assert not faults


@pytest.mark.contract("B6.2")
def test_a_pause_of_a_child_is_seen_in_the_cache() -> None:
    """The search for orphans leaves alone what is paused, which a cached head has to tell."""
    assert CHILDREN.annotations is not None
    assert names.ANNOTATION_PAUSED in CHILDREN.annotations
