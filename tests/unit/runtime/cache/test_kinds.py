"""The known kinds while definitions are created, changed and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from fivespot.runtime.cache import Cache
from fivespot.runtime.client import Client, Request
from fivespot.runtime.objects import CRDS, GroupKind, KindAbsent, KindState, KindUnknown

from .fakes import Server, failing, make_cache, make_client, settle

pytestmark = pytest.mark.looptime

GADGET = GroupKind("example.com", "Gadget")
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}], "acceptedNames": {"kind": "Gadget"}}


def define(server: Server, *, plural: str = "gadgets", kind: str = "Gadget", established: bool = True) -> None:
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural}}
    status: dict[str, Any] = {"acceptedNames": {"kind": kind, "plural": plural}}
    if established:
        status["conditions"] = [{"type": "Established", "status": "True"}]
    server.put(CRDS, f"{plural}.example.com", spec={**spec, "versions": versions}, status=status)


def gets_one(request: Request) -> bool:
    return request.path.endswith(".example.com")


@pytest.fixture
def server() -> Server:
    server = Server()
    server.objects[CRDS.collection_path()] = {}
    server.put(CRDS, "others.other.com", spec={"huge": "x" * 1000})
    return server


@pytest.fixture
def client(server: Server) -> Client:
    return make_client(server)


@pytest.fixture
async def cache(client: Client) -> AsyncIterator[Cache]:
    async with make_cache(client) as cache:
        yield cache


async def test_a_cache_whose_kinds_nobody_asks_about_watches_no_definitions(server: Server, cache: Cache) -> None:
    await settle()
    assert server.log == []


async def test_a_kind_that_is_defined_is_found_and_only_its_group_is_read(server: Server, cache: Cache) -> None:
    define(server)
    cache.kinds.watch_group("example.com")
    assert isinstance(cache.kinds.lookup(GADGET), KindUnknown)
    await cache.kinds.wait_synced()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.usable
    assert state.resource().qualified == "gadgets.example.com"
    assert cache.kinds.in_group("example.com") == (state,)
    assert server.sorts().count("get") == 1
    assert "PartialObjectMetadata" in server.last("list").headers["Accept"]
    assert cache.kinds.lookup(GroupKind("example.com", "Other")) == KindAbsent()


async def test_a_group_that_is_not_watched_is_unknown(cache: Cache) -> None:
    assert isinstance(cache.kinds.lookup(GroupKind("other.com", "Other")), KindUnknown)
    assert isinstance(cache.kinds.in_group("other.com"), KindUnknown)


async def test_a_definition_that_comes_changes_and_goes_is_followed_at_once(server: Server, cache: Cache) -> None:
    told: list[str] = []
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    cache.kinds.subscribe(told.append)
    assert cache.kinds.lookup(GADGET) == KindAbsent()
    define(server, established=False)
    await settle()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.unusable_reason == "is not established"
    define(server)
    await settle()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.usable
    server.put(CRDS, "gadgets.example.com", finalizers=["x"], deletionTimestamp="2026-01-01T00:00:00Z")
    await settle()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.unusable_reason == "is being deleted"
    server.delete(CRDS, "gadgets.example.com")
    await settle()
    assert cache.kinds.lookup(GADGET) == KindAbsent()
    assert set(told) == {"example.com"}
    # Unknown while it is read, then known: two for the first, one for each change, one for the end.
    assert len(told) == 5


async def test_a_touch_that_changes_no_fact_tells_nobody(server: Server, cache: Cache) -> None:
    define(server)
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    told: list[str] = []
    subscription = cache.kinds.subscribe(told.append)
    server.put(CRDS, "gadgets.example.com", annotations={"touched": "yes"})
    server.put(CRDS, "others.other.com", annotations={"touched": "yes"})
    await settle()
    assert told == []
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.version == server.revision - 1
    subscription.close()
    define(server, established=False)
    await settle()
    assert told == []


async def test_a_definition_made_again_is_unknown_until_it_is_read(server: Server, cache: Cache) -> None:
    define(server)
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    first = cache.kinds.lookup(GADGET)
    fault = server.fault_while(gets_one, failing(500))
    server.delete(CRDS, "gadgets.example.com")
    define(server)
    await settle()
    assert isinstance(cache.kinds.lookup(GADGET), KindUnknown)
    assert isinstance(cache.kinds.in_group("example.com"), KindUnknown)
    server.faults.remove(fault)
    await asyncio.sleep(10)
    second = cache.kinds.lookup(GADGET)
    assert isinstance(first, KindState)
    assert isinstance(second, KindState)
    assert first.uid != second.uid


async def test_a_definition_that_may_not_be_read_is_unknown_not_absent(server: Server, cache: Cache) -> None:
    """A failure to read is no verdict; it is retried quietly, and other kinds of the group are known all the same."""
    define(server)
    define(server, plural="cogs", kind="Cog")
    fault = server.fault_while(lambda request: request.path.endswith("/gadgets.example.com"), failing(403))
    cache.kinds.watch_group("example.com")
    with structlog.testing.capture_logs() as logs:
        await cache.kinds.wait_synced()
        await asyncio.sleep(80)
    unknown = cache.kinds.lookup(GADGET)
    assert isinstance(unknown, KindUnknown)
    assert "403" in unknown.why
    assert isinstance(cache.kinds.lookup(GroupKind("example.com", "Cog")), KindState)
    assert server.sorts().count("get") < 16
    assert len(logs) == 1
    told: list[str] = []
    cache.kinds.subscribe(told.append)
    server.faults.remove(fault)
    await asyncio.sleep(31)
    assert isinstance(cache.kinds.lookup(GADGET), KindState)
    assert told == ["example.com"]


async def test_nothing_is_known_while_definitions_cannot_be_listed(server: Server, cache: Cache) -> None:
    server.fault_while(lambda request: asyncio.get_running_loop().time() < 20, failing(403))
    told: list[str] = []
    cache.kinds.subscribe(told.append)
    cache.kinds.watch_group("example.com")
    await asyncio.sleep(10)
    unknown = cache.kinds.lookup(GADGET)
    assert isinstance(unknown, KindUnknown)
    assert "403" in unknown.why
    assert not cache.kinds.synced
    await cache.kinds.wait_synced()
    assert cache.kinds.lookup(GADGET) == KindAbsent()
    assert told == ["example.com"]


async def test_a_definition_deleted_while_it_is_read_ends_as_absent(server: Server, cache: Cache) -> None:
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    define(server)
    server.delete(CRDS, "gadgets.example.com")
    await asyncio.sleep(5)
    assert cache.kinds.lookup(GADGET) == KindAbsent()
    assert not cache.kinds._reading


async def test_of_two_definitions_of_one_kind_the_established_one_counts(server: Server, cache: Cache) -> None:
    define(server)
    define(server, plural="rivals", established=False)
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    assert state.plural == "gadgets"


async def test_hundreds_of_definitions_are_read_a_few_at_a_time(server: Server, cache: Cache) -> None:
    for number in range(100):
        define(server, plural=f"g{number}", kind=f"G{number}")
    running, most = 0, 0
    answer = server.request

    async def request(request: Request) -> Any:
        nonlocal running, most
        if not gets_one(request):
            return await answer(request)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return await answer(request)

    server.request = request  # type: ignore[method-assign]
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    kinds = cache.kinds.in_group("example.com")
    assert isinstance(kinds, tuple)
    assert len(kinds) == 100
    assert most == 4


async def test_an_informer_of_a_kind_that_comes_starts_when_its_definition_does(server: Server, cache: Cache) -> None:
    define(server)
    cache.kinds.watch_group("example.com")
    await cache.kinds.wait_synced()
    state = cache.kinds.lookup(GADGET)
    assert isinstance(state, KindState)
    informer = cache.informer(state.resource())
    await asyncio.sleep(100)
    assert informer.status.state == "not served"
    server.objects[state.resource().collection_path()] = {}
    define(server)
    await settle()
    assert informer.synced


async def test_a_listener_that_raises_harms_no_other(server: Server, cache: Cache) -> None:
    told: list[str] = []

    def broken(group: str) -> None:
        raise ValueError(group)

    cache.kinds.subscribe(broken)
    cache.kinds.subscribe(told.append)
    with structlog.testing.capture_logs():
        cache.kinds.watch_group("example.com")
        await cache.kinds.wait_synced()
    assert told == ["example.com"]
