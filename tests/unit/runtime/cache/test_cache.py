"""Informers of one cache: shared, synchronous, in step with our own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
import pytest
import structlog

from fivespot.runtime.cache import Cache, InformerStatus, ReflectorSettings
from fivespot.runtime.client import Client
from fivespot.runtime.objects import FULL, METADATA, Change, Key, Projection, Resource, Selector, merge_patch

from .fakes import PAGED, WIDGETS, Recorder, Server, make_cache, make_client, settle

pytestmark = pytest.mark.looptime

A, B = Key("ns", "a"), Key("ns", "b")


@pytest.fixture
def server() -> Server:
    server = Server()
    server.put(WIDGETS, "a", spec={"size": 1})
    return server


@pytest.fixture
def client(server: Server) -> Client:
    return make_client(server)


@pytest.fixture
async def cache(client: Client) -> AsyncIterator[Cache]:
    async with make_cache(client) as cache:
        yield cache


async def test_an_informer_asked_for_before_the_cache_runs_starts_with_it(server: Server, client: Client) -> None:
    cache = make_cache(client)
    informer = cache.informer(WIDGETS)
    assert not informer.synced
    assert informer.get(A) is None
    async with cache:
        await informer.wait_synced()
        obj = informer.get(A)
        assert obj
        assert obj.decode()["spec"] == {"size": 1}
    assert [status.state for status in cache.informers()] == ["stopped"]
    with pytest.raises(RuntimeError, match="was left"):
        cache.informer(WIDGETS)


async def test_changes_are_seen_as_they_happen(server: Server, cache: Cache) -> None:
    informer, seen = cache.informer(WIDGETS), Recorder()
    informer.subscribe(seen)
    await informer.wait_synced()
    server.put(WIDGETS, "b")
    server.put(WIDGETS, "b", spec={"size": 2})
    server.delete(WIDGETS, "a")
    await settle()
    assert seen.lines == ["ADDED a", "ADDED b", "MODIFIED b", "DELETED a"]
    assert informer.keys() == [B]
    assert len(informer) == 1


async def test_equal_requests_share_one_informer_until_the_last_release(server: Server, cache: Cache) -> None:
    first, second = cache.informer(WIDGETS), cache.informer(WIDGETS)
    await second.wait_synced()
    assert server.sorts() == ["list", "watch"]
    first.release()
    first.release()
    assert first.get(A) is None
    assert not first.synced
    server.put(WIDGETS, "b")
    await settle()
    assert second.get(B)
    second.release()
    await settle()
    assert cache.informers() == []
    assert not server.followers
    with pytest.raises(RuntimeError, match="released"):
        _ = second.status


async def test_a_wider_informer_serves_a_narrower_request_but_not_the_reverse(server: Server, cache: Cache) -> None:
    narrow = cache.informer(WIDGETS, projection=METADATA)
    wide = cache.informer(WIDGETS)
    narrower = cache.informer(WIDGETS, projection=METADATA)
    other = cache.informer(WIDGETS, selector=Selector.labels({"on": "yes"}))
    assert len(cache.informers()) == 3
    await wide.wait_synced()
    await narrower.wait_synced()
    narrow.release()
    assert len(cache.informers()) == 3, "the exact match was shared, and its second user is still there"
    for informer in (wide, narrower, other):
        informer.release()
    assert cache.informers() == []
    full = cache.informer(WIDGETS)
    served = cache.informer(WIDGETS, projection=METADATA)
    assert len(cache.informers()) == 1
    full.release()
    await served.wait_synced()
    assert served.status.projection == FULL


async def test_metadata_informers_never_ask_for_bodies(server: Server, cache: Cache) -> None:
    informer = cache.informer(WIDGETS, projection=METADATA)
    await informer.wait_synced()
    for sort in ("list", "watch"):
        assert "PartialObjectMetadata" in server.last(sort).headers["Accept"]
    obj = informer.get(A)
    assert obj
    assert obj.raw == b"{}"


async def test_a_projection_keeps_what_it_names_and_managed_fields_are_never_kept(server: Server, cache: Cache) -> None:
    class Shape(msgspec.Struct, gc=False):
        spec: dict[str, int]

    server.put(WIDGETS, "a", managedFields=[{"manager": "x"}], status={"big": "x" * 100})
    server.put(WIDGETS, "odd", spec="not a dict")
    slim = cache.informer(WIDGETS, projection=Projection.fields("slim", Shape, annotations=frozenset()))
    full = cache.informer(WIDGETS)
    await slim.wait_synced()
    await full.wait_synced()
    kept, whole, odd = slim.get(A), full.get(A), slim.get(Key("ns", "odd"))
    assert kept
    assert kept.raw == b'{"spec":{"size":1}}'
    assert whole
    assert b"managedFields" not in whole.raw
    assert odd
    assert odd.raw == b"{}", "one body that cannot be read affects no other object"
    assert (slim.status.undecodable, slim.status.faults) == (1, 0)


async def test_our_own_writes_are_read_at_once_and_told_once(server: Server, client: Client, cache: Cache) -> None:
    """controller-runtime#403: no stale read after a write, however far the watch is behind."""
    informer, seen = cache.informer(WIDGETS), Recorder()
    informer.subscribe(seen)
    await informer.wait_synced()
    server.lagging = True
    await client.create(WIDGETS, {"kind": "Widget", "metadata": {"name": "b", "namespace": "ns"}})
    assert informer.get(B)
    patched = await client.patch(WIDGETS, B, merge_patch({"spec": {"size": 3}}))
    held = informer.get(B)
    assert held
    assert held.head.version == patched.head.version
    obj = informer.get(A)
    assert obj
    await client.delete(WIDGETS, A, uid=obj.head.uid)
    assert informer.get(A) is None
    assert seen.lines == ["ADDED a", "ADDED b own", "MODIFIED b own", "DELETED a own"]
    server.catch_up()
    server.lagging = False
    server.put(WIDGETS, "b", spec={"size": 4})
    await settle()
    assert seen.lines[4:] == ["MODIFIED b"]


async def test_a_removed_last_finalizer_removes_the_object_at_once(
    server: Server, client: Client, cache: Cache
) -> None:
    server.put(WIDGETS, "a", finalizers=["example.com/x"])
    informer, seen = cache.informer(WIDGETS), Recorder()
    informer.subscribe(seen)
    await informer.wait_synced()
    server.lagging = True
    obj = informer.get(A)
    assert obj
    await client.delete(WIDGETS, A, uid=obj.head.uid)
    deleting = informer.get(A)
    assert deleting
    assert deleting.head.deleting
    await client.patch(WIDGETS, A, merge_patch({"metadata": {"finalizers": []}}))
    assert informer.get(A) is None
    server.catch_up()
    await settle()
    assert seen.lines == ["ADDED a", "MODIFIED a own", "DELETED a own"]


async def test_own_writes_pass_the_selector_the_namespace_and_the_projection(
    server: Server, client: Client, cache: Cache
) -> None:
    selected = cache.informer(WIDGETS, selector=Selector.labels({"on": "yes"}))
    elsewhere = cache.informer(WIDGETS, namespace="other")
    slim = cache.informer(WIDGETS, projection=METADATA)
    by_field = cache.informer(WIDGETS, selector=Selector(fields="metadata.name=a"))
    other_version = cache.informer(replace(WIDGETS, version="v2"), projection=METADATA)
    for informer in (selected, elsewhere, slim, by_field):
        await informer.wait_synced()
    server.lagging = True
    body = {"kind": "Widget", "metadata": {"name": "b", "namespace": "ns", "labels": {"on": "yes"}}}
    await client.create(WIDGETS, body)
    in_selected, in_slim = selected.get(B), slim.get(B)
    assert in_selected
    assert in_slim
    assert in_slim.raw == b"{}"
    assert other_version.get(B), "metadata has the same shape in every version"
    assert elsewhere.get(B) is None
    assert by_field.get(B) is None, "whether the server would select it cannot be told here"
    await client.patch(WIDGETS, B, merge_patch({"metadata": {"labels": {"on": "no"}}}))
    assert selected.get(B) is None
    assert slim.get(B)
    await client.patch(WIDGETS, A, merge_patch({"spec": {"size": 9}}))
    assert by_field.get(A)


async def test_dry_runs_change_nothing(server: Server, client: Client, cache: Cache) -> None:
    informer = cache.informer(WIDGETS)
    await informer.wait_synced()
    server.lagging = True
    await client.patch(WIDGETS, A, merge_patch({"spec": {"size": 5}}), dry_run=True)
    obj = informer.get(A)
    assert obj
    assert obj.decode()["spec"] == {"size": 1}


async def test_a_late_subscriber_is_told_what_is_there_first(server: Server, cache: Cache) -> None:
    informer = cache.informer(WIDGETS)
    await informer.wait_synced()
    seen, synced = Recorder(), []
    informer.subscribe(seen, on_synced=lambda: synced.append(len(seen.told)))
    assert seen.lines == ["ADDED a"]
    assert synced == [1]


async def test_a_large_backlog_is_told_in_slices_with_changes_in_order(server: Server, client: Client) -> None:
    for number in range(25):
        server.put(WIDGETS, f"w{number}")
    async with make_cache(client, replace(PAGED, burst_events=5, page_size=7)) as cache:
        informer = cache.informer(WIDGETS)
        await informer.wait_synced()
        seen, synced = Recorder(), []
        informer.subscribe(seen, on_synced=lambda: synced.append(len(seen.told)))
        assert len(seen.told) == 5
        last = informer.get(Key("ns", "w24"))
        assert last
        await client.delete(WIDGETS, Key("ns", "w24"), uid=last.head.uid)
        assert seen.lines[-2:] == ["ADDED w24", "DELETED w24 own"], "told in the order of what happened"
        await settle()
        assert len(seen.told) == 27
        assert synced == [27]
        assert seen.mirror == {key: informer.get(key) for key in informer.keys()}  # noqa: SIM118 - an Informer


async def test_a_subscriber_before_the_sync_hears_of_it_once(server: Server, cache: Cache) -> None:
    informer, seen, synced = cache.informer(WIDGETS), Recorder(), []
    informer.subscribe(seen, on_synced=lambda: synced.append(informer.synced))
    assert synced == []
    await informer.wait_synced()
    server.compact()
    server.cut()
    await asyncio.sleep(5)
    assert synced == [True]


async def test_own_writes_while_a_list_is_told_keep_their_order(server: Server, client: Client) -> None:
    for number in range(20):
        server.put(WIDGETS, f"w{number}")
    async with make_cache(client, replace(PAGED, burst_events=3)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        while not seen.told:
            await asyncio.sleep(0)
        assert not informer.synced
        assert len(informer) == 21, "readers see the whole list at once"
        early, late = Recorder(), Key("ns", "w19")
        informer.subscribe(early)
        assert early.told == []
        await client.patch(WIDGETS, late, merge_patch({"spec": {"size": 2}}))
        assert seen.lines[-2:] == ["ADDED w19", "MODIFIED w19 own"]
        await settle()
        for recorder in (seen, early):
            assert recorder.mirror == {key: informer.get(key) for key in informer.keys()}  # noqa: SIM118


async def test_a_handler_that_raises_harms_nobody_else(server: Server, cache: Cache) -> None:
    def broken(change: Change) -> None:
        raise ValueError("mine")

    informer, seen = cache.informer(WIDGETS), Recorder()
    informer.subscribe(broken)
    informer.subscribe(seen)
    with structlog.testing.capture_logs() as logs:
        await informer.wait_synced()
        for size in range(5):
            server.put(WIDGETS, "a", spec={"size": size})
        await settle()
    assert len(seen.told) == 6
    assert informer.status.faults == 6
    assert len([line for line in logs if line["log_level"] == "error"]) == 1


async def test_a_closed_subscription_is_told_nothing_more_even_by_the_current_change(
    server: Server, cache: Cache
) -> None:
    informer, seen = cache.informer(WIDGETS), Recorder()
    await informer.wait_synced()
    second = informer.subscribe(lambda change: None)

    def closer(change: Change) -> None:
        first.close()
        second.close()

    first = informer.subscribe(lambda change: closer(change) if change.type.value == "MODIFIED" else None)
    third = informer.subscribe(seen)
    server.put(WIDGETS, "a")
    await settle()
    third.close()
    third.close()
    server.put(WIDGETS, "a")
    await settle()
    assert seen.lines == ["ADDED a", "MODIFIED a"]


async def test_an_index_added_late_is_filled_in_slices_and_complete_for_whoever_asks(
    server: Server, client: Client
) -> None:
    def by_parity(change: Change) -> list[str]:
        return [str(change.head.version % 2)]

    for number in range(30):
        server.put(WIDGETS, f"w{number}")
    async with make_cache(client, replace(PAGED, burst_events=4)) as cache:
        informer = cache.informer(WIDGETS)
        await informer.wait_synced()
        informer.add_index("parity", by_parity)
        informer.add_index("parity", by_parity)
        todo = informer._parts[0].store._indexes["parity"]._todo
        assert len(todo) > 20
        await settle()
        assert not todo
        assert len(informer.by_index("parity", "0")) + len(informer.keys_by_index("parity", "1")) == 31
        informer.add_index("again", lambda change: ["all"])
        assert len(informer.by_index("again", "all")) == 31


async def test_a_cache_bound_to_namespaces_watches_only_them(server: Server, client: Client) -> None:
    """controller-runtime#3195: and lists of several namespaces do not run into one another."""
    server.put(WIDGETS, "b", "other")
    server.put(WIDGETS, "c", "third")
    async with make_cache(client, namespaces=["ns", "other", "ns"]) as cache:
        informer, seen, synced = cache.informer(WIDGETS), Recorder(), []
        informer.subscribe(seen, on_synced=lambda: synced.append(1))
        statuses: list[InformerStatus] = []
        informer.on_status(statuses.append)
        await informer.wait_synced()
        await settle()
        assert synced == [1]
        assert informer.status.synced
        assert {key.namespace for key in informer.keys()} == {"ns", "other"}  # noqa: SIM118 - an Informer
        assert [obj.key.name for obj in informer.list("other")] == ["b"]
        assert len(informer.list()) == 2
        informer.add_index("all", lambda change: ["x"])
        assert len(informer.by_index("all", "x")) == 2
        status = informer.status
        assert (status.namespace, status.objects, status.relists, status.synced) == (None, 2, 2, True)
        assert statuses[-1].synced
        assert {request.path for _, _, request in server.log} == {
            f"/apis/example.com/v1/namespaces/{name}/widgets" for name in ("ns", "other")
        }
        assert len(cache.informers()) == 2
        informer.release()
        assert cache.informers() == []


async def test_leaving_the_cache_closes_every_watch(server: Server, client: Client) -> None:
    """kubernetes_asyncio#103: nothing is left open behind a cache."""
    async with make_cache(client, ReflectorSettings()) as cache:
        for number in range(20):
            cache.informer(WIDGETS, selector=Selector.labels({"n": str(number)}))
        await settle()
        assert len(server.followers) == 20
    assert not server.followers


async def test_a_failing_owner_takes_the_reflectors_with_it(server: Server, client: Client) -> None:
    async def own() -> None:
        async with make_cache(client) as cache:
            await cache.informer(WIDGETS).wait_synced()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await own()
    assert not server.followers


NODES = Resource("example.com", "v1", "machines", "Machine", namespaced=False)


@pytest.mark.parametrize("namespace", [None, "", "ns"])
async def test_own_writes_are_seen_whatever_names_the_namespace(
    server: Server, client: Client, cache: Cache, namespace: str | None
) -> None:
    server.lagging = True
    informer = cache.informer(WIDGETS, namespace=namespace)
    await informer.wait_synced()
    await client.patch(WIDGETS, A, merge_patch({"spec": {"size": 2}}))
    await client.create(WIDGETS, {"kind": "Widget", "metadata": {"name": "b", "namespace": "ns"}})
    assert [obj.key for obj in informer.list()] == [A, B]
    assert informer.list("") == informer.list("ns") == informer.list()
    found = informer.get(A)
    assert found
    assert found.decode()["spec"] == {"size": 2}
    await client.delete(WIDGETS, A, uid=found.head.uid)
    assert informer.get(A) is None


@pytest.mark.parametrize("namespace", [None, "", "ns"])
async def test_own_writes_of_a_cluster_scoped_kind_are_seen_whatever_names_the_namespace(
    server: Server, client: Client, cache: Cache, namespace: str | None
) -> None:
    server.put(NODES, "n")
    server.lagging = True
    informer = cache.informer(NODES, namespace=namespace)
    await informer.wait_synced()
    key = Key(namespace or "", "n")
    await client.patch(NODES, key, merge_patch({"spec": {"size": 2}}))
    found = informer.get(Key("", "n"))
    assert found
    assert found.decode()["spec"] == {"size": 2}
    await client.delete(NODES, key, uid=found.head.uid)
    assert informer.get(Key("", "n")) is None


async def test_one_informer_serves_all_ways_to_say_all_namespaces(client: Client) -> None:
    async with make_cache(client, namespaces=["ns", ""]) as cache:
        for namespace in (None, ""):
            cache.informer(WIDGETS, namespace=namespace)
        for namespace in (None, "", "ns"):
            cache.informer(NODES, namespace=namespace)
        assert [(status.resource, status.namespace) for status in cache.informers()] == [(WIDGETS, None), (NODES, None)]


async def test_an_index_made_anew_by_the_same_code_is_the_same(server: Server, cache: Cache) -> None:
    def add(name: str, field: str) -> None:
        cache.informer(WIDGETS).add_index(name, lambda change: [str(change.body["spec"][field])])

    informer = cache.informer(WIDGETS)
    await informer.wait_synced()
    add("size", "size")
    add("size", "size")
    assert informer.keys_by_index("size", "1") == [A]
    with pytest.raises(ValueError, match="another function"):
        add("size", "colour")


async def test_projections_of_one_name_that_keep_other_fields_have_informers_of_their_own(
    server: Server, cache: Cache
) -> None:
    class Spec(msgspec.Struct):
        spec: dict[str, int] = {}

    class Kind(msgspec.Struct):
        kind: str = ""

    informers = [cache.informer(WIDGETS, projection=Projection.fields("slim", shape)) for shape in (Spec, Kind, Spec)]
    for informer in informers:
        await informer.wait_synced()
    kept = [[obj.raw for obj in informer.list()] for informer in informers]
    assert kept == [[b'{"spec":{"size":1}}'], [b'{"kind":"Widget"}'], [b'{"spec":{"size":1}}']]
    assert len(cache.informers()) == 2


async def test_a_released_informer_leaves_nothing_behind(server: Server, client: Client) -> None:
    server.streaming = False
    async with make_cache(client, ReflectorSettings()) as cache:
        for number in range(200):
            resource = Resource("example.com", "v1", f"kind{number}s", f"Kind{number}")
            server.put(resource, "a")
            informer = cache.informer(resource)
            informer.subscribe(lambda _: None)
            await informer.wait_synced()
            informer.release()
        await settle()
        assert cache.informers() == []
        assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("reflector")] == []
        assert not cache._no_streaming
