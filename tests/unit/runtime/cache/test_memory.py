"""The memory of cached objects."""

from __future__ import annotations

import gc
import tracemalloc

import msgspec
import pytest

from fivespot.runtime.cache.store import Store
from fivespot.runtime.objects import FULL, METADATA, Key, Object, Projection, decode_head, share

COUNT = 1000


def body(number: int) -> bytes:
    """About 3 kB, of which 1 kB is managedFields."""
    metadata = {
        "name": f"object-{number}",
        "namespace": "ns",
        "uid": f"5f0b6c1e-0000-4000-8000-{number:012}",
        "resourceVersion": str(number + 1),
        "labels": {"cluster.x-k8s.io/cluster-name": "prod"},
        "managedFields": [{"manager": "x" * 1000}],
    }
    return msgspec.json.encode({"metadata": metadata, "spec": {"text": "y" * 1800}, "status": {"phase": "Running"}})


class Slim(msgspec.Struct, gc=False):
    status: dict[str, str]


@pytest.mark.parametrize(
    ("projection", "budget"),
    [(FULL, 3300), (Projection.fields("slim", Slim), 1300), (METADATA, 1250)],
    ids=["full", "slim", "metadata"],
)
def test_an_object_costs_its_kept_bytes_and_about_a_kilobyte(projection: Projection, budget: int) -> None:
    """crossplane-contrib/provider-kubernetes PR 425: nothing pins the line or the page that an object came in."""
    store = Store(lambda what, error: None)
    store.add_index("label", lambda change: change.head.labels.values())
    gc.collect()
    tracemalloc.start()
    try:
        page = msgspec.json.encode([msgspec.Raw(body(number)) for number in range(COUNT)])
        staging = store.begin()
        for item in msgspec.json.decode(page, type=list[msgspec.Raw]):
            head = decode_head(item, projection.annotations)
            staging.put(Key(head.namespace, head.name), Object(projection.project(item), head))
        for _ in store.commit(COUNT):
            pass
        del page, item, staging, head
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(store) == COUNT
    assert used / COUNT < budget


def test_words_that_are_made_up_without_end_are_not_kept_for_ever() -> None:
    """kube-rs#1836: a memory keyed by generated names grew with each of them."""
    first, again = (msgspec.json.decode(b'"a-name-that-lasts"') for _ in range(2))
    assert first is not again
    assert share(first) is share(again)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(400_000):
            share(f"generated-{number}")
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used / 400_000 < 80
