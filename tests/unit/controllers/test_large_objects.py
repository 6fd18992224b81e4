"""ScheduledMachines with embedded objects of a megabyte: held once, as bytes, and decoded by nobody in passing."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fivespot.controllers.scheduledmachine import sources
from fivespot.controllers.scheduledmachine.children import (
    build_embedded,
    build_machine,
    readable,
    source_of,
    template_hash,
)
from fivespot.controllers.scheduledmachine.spec import outline, read_references
from fivespot.controllers.scheduledmachine.stored_status import read_stored_status, stored_status_of
from fivespot.runtime import Object
from fivespot.runtime.cache.store import Store
from fivespot.runtime.objects import FULL, Key, decode_head

COUNT = 60
COMMANDS = [f"line {number} {'x' * 40}" for number in range(26_500)]
STATUS = {"phase": "Active", "bootstrapRef": {"apiVersion": "b.io/v1", "kind": "Boot", "name": "web-0", "uid": "u"}}


def stored(number: int = 0, spec: Any = None, **changes: Any) -> bytes:
    """A ScheduledMachine as the API server sends it, of 1.4 MB unless another spec is embedded."""
    metadata = {
        "name": f"web-{number}",
        "namespace": "team-a",
        "uid": f"5f0b6c1e-0000-4000-8000-{number:012}",
        "resourceVersion": str(number + 1),
        "generation": 1,
        "managedFields": [{"manager": "kubectl"}],
    }
    body = {
        "schedule": {"apiVersion": "s.io/v1", "kind": "Weeks", "name": "office"},
        "clusterName": "prod",
        "bootstrapSpec": {
            "apiVersion": "b.io/v1",
            "kind": "Boot",
            "metadata": {"labels": {"a": "b"}},
            "spec": {"commands": COMMANDS} if spec is None else spec,
        },
        "infrastructureSpec": {"apiVersion": "i.io/v1", "kind": "Host", "spec": {}},
    }
    return msgspec.json.encode({"metadata": metadata, "spec": body | changes, "status": STATUS})


def peak_of(read: Callable[[], object]) -> int:
    read()
    gc.collect()
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read", [outline, stored_status_of, sources.kinds_of, sources.phase_of, source_of])
def test_what_is_read_at_every_change_leaves_embedded_specs_alone(read: Callable[[Object], object]) -> None:
    obj = Object.parse(FULL.project(stored()))
    assert len(obj.raw) > 1_400_000
    assert peak_of(lambda: read(obj)) < 10_000
    assert peak_of(obj.decode) > len(obj.raw), "the whole costs more than its bytes"


def test_sixty_of_them_cost_their_bytes_and_give_them_back() -> None:
    store = Store(lambda what, error: None)
    for name, index in (
        (sources.INDEX_SCHEDULE, sources._by_schedule),
        (sources.INDEX_CLUSTER, sources._by_cluster),
        (sources.INDEX_KIND, sources._by_kind),
    ):
        store.add_index(name, index)
    size = len(stored())
    gc.collect()
    tracemalloc.start()
    try:
        empty = tracemalloc.get_traced_memory()[0]
        for number in range(COUNT):
            raw = stored(number)
            head = decode_head(raw)
            assert store.admit(head) == Key("team-a", f"web-{number}")
            store.put(Key("team-a", f"web-{number}"), Object(FULL.project(raw), head))
        del raw, head
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - empty
        assert len(store.keys_by_index(sources.INDEX_KIND, "Boot.b.io")) == COUNT
        assert held < 1.3 * COUNT * size
        for obj in store.list():
            store.remove(obj)
        del obj
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - empty < 0.01 * COUNT * size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("spec", [{}, {"a": [1, None, {"b": "ä"}]}, {"commands": COMMANDS[:3]}])
def test_children_of_the_parts_are_those_of_the_whole(spec: Any) -> None:
    obj = Object.parse(stored(spec=spec, machineTemplate={"version": "v1.34.4"}, nodeTaints=[{"key": "a"}]))
    known, source = template_hash(obj.decode()["spec"]), source_of(obj)
    for field in ("bootstrapSpec", "infrastructureSpec"):
        made = build_embedded(source, field, known_hash=known)
        assert readable(made) == build_embedded(obj.decode(), field)
        assert msgspec.json.decode(msgspec.json.encode(made)) == build_embedded(obj.decode(), field)
    for version in ("v1beta1", "v1beta2"):
        assert build_machine(source, version, known_hash=known) == build_machine(obj.decode(), version)


def test_an_embedded_spec_is_sent_as_it_was_written() -> None:
    """Numbers that Python cannot hold exactly would come back changed."""
    exact = b'{"big":12345678901234567890123,"ratio":1.0,"tiny":1e-400}'
    obj = Object.parse(stored(spec=msgspec.Raw(exact)))
    assert exact in msgspec.json.encode(build_embedded(source_of(obj), "bootstrapSpec", known_hash="0"))


@pytest.mark.parametrize("field", ["bootstrapSpec", "infrastructureSpec", "schedule", "clusterName"])
@pytest.mark.parametrize("value", ["a text", 7, None, ["a list"]])
def test_objects_from_before_the_schema_are_read_as_far_as_they_make_sense(field: str, value: object) -> None:
    changes: dict[str, Any] = {field: value}
    obj = Object.parse(stored(spec={}, **changes))
    assert read_references(outline(obj)) == read_references(obj.decode())
    assert stored_status_of(obj) == read_stored_status(obj.decode())
