"""Informers against the real API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from fivespot.runtime import (
    METADATA,
    AlreadyExistsError,
    Cache,
    Change,
    Client,
    ConflictError,
    Connection,
    GroupKind,
    Informer,
    Key,
    KindAbsent,
    KindUnknown,
    NotFoundError,
    Resource,
    Selector,
    SystemClock,
    connect,
    merge_patch,
)
from fivespot.runtime.cache import InformerStatus, ReflectorSettings
from fivespot.runtime.clock import ThreadOffload
from fivespot.runtime.objects import KindState, finalizer_patch
from support import eventually_async, unique_name

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LABELLED = Selector.labels({"test": "yes"})

SETTINGS = [
    pytest.param(ReflectorSettings(page_size=3, streaming=False), id="paged"),
    pytest.param(ReflectorSettings(), id="streaming"),
]


async def connection_to(plane: ControlPlane, folder: Path) -> Connection:
    return await connect(
        kubeconfig=str(plane.kubeconfig(folder / "kubeconfig")),
        user_agent="fivespot-cache-test",
        clock=SystemClock(),
        rng=random.Random(1),
        offload=ThreadOffload(),
    )


@pytest.fixture
async def client(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Client]:
    async with await connection_to(control_plane, tmp_path) as connection:
        yield connection.client


def make_cache(client: Client, settings: ReflectorSettings | None = None) -> Cache:
    return Cache(client, clock=SystemClock(), rng=random.Random(2), settings=settings or ReflectorSettings())


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"test": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def names(informer: Informer) -> set[str]:
    return {obj.key.name for obj in informer.list()}


@pytest.mark.parametrize("settings", SETTINGS)
async def test_a_list_and_what_happens_after_it(
    client: Client, api: Api, namespace: str, settings: ReflectorSettings
) -> None:
    for number in range(10):
        api.create(config_map(f"c{number}", namespace, value="1"))
    told: list[Change] = []
    async with make_cache(client, settings) as cache:
        informer = cache.informer(CONFIG_MAPS, namespace=namespace, selector=LABELLED)
        informer.subscribe(told.append)
        async with asyncio.timeout(10):
            await informer.wait_synced()
        assert names(informer) == {f"c{number}" for number in range(10)}
        api.create(config_map("late", namespace, value="1"))
        api.patch("v1", "ConfigMap", "c0", namespace, {"data": {"value": "2"}})
        api.patch("v1", "ConfigMap", "c1", namespace, {"metadata": {"labels": {"test": None}}})
        api.delete("v1", "ConfigMap", "c2", namespace)
        await eventually_async(lambda: "c2" not in names(informer))
        assert "c1" not in names(informer), "it left the selector"
        changed = informer.get(Key(namespace, "c0"))
        assert changed
        assert changed.decode()["data"] == {"value": "2"}
        assert b"managedFields" not in changed.raw
        assert [f"{change.type.value} {change.key.name}" for change in told[10:]] == [
            "ADDED late", "MODIFIED c0", "DELETED c1", "DELETED c2",
        ]  # fmt: skip
        status = informer.status
        assert (status.state, status.relists, status.error_since, status.faults) == ("watching", 1, None, 0)


@pytest.mark.parametrize("projection", [None, METADATA])
async def test_own_writes_are_read_at_once_and_told_once(client: Client, namespace: str, projection: Any) -> None:
    told: list[str] = []
    async with make_cache(client) as cache:
        options = {"projection": projection} if projection else {}
        informer = cache.informer(CONFIG_MAPS, namespace=namespace, selector=LABELLED, **options)
        informer.subscribe(lambda change: told.append(change.type.value))
        await informer.wait_synced()
        key = Key(namespace, "mine")
        for round_ in range(20):
            created = await client.create(CONFIG_MAPS, config_map("mine", namespace, value="1"))
            held = informer.get(key)
            assert held
            assert held.head == created.head
            patched = await client.patch(CONFIG_MAPS, key, merge_patch({"data": {"value": str(round_ + 2)}}))
            held = informer.get(key)
            assert held
            assert held.head.version == patched.head.version
            finalizer = finalizer_patch(patched.head, "example.com/test", present=True)
            assert finalizer
            patched = await client.patch(CONFIG_MAPS, key, finalizer)
            await client.delete(CONFIG_MAPS, key, uid=created.head.uid)
            held = informer.get(key)
            assert held
            assert held.head.deleting
            finalizer = finalizer_patch(held.head, "example.com/test", present=False)
            assert finalizer
            await client.patch(CONFIG_MAPS, key, finalizer)
            assert informer.get(key) is None
        last = await client.create(CONFIG_MAPS, config_map("last", namespace))
        store = informer._parts[0].store
        await eventually_async(lambda: store.version >= last.head.version)
        assert told == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"] * 20 + ["ADDED"]
        assert not store._own
        assert not store._hidden


async def test_many_writers_and_the_store_ends_as_the_server(client: Client, api: Api, namespace: str) -> None:
    async with make_cache(client) as cache:
        informer = cache.informer(CONFIG_MAPS, namespace=namespace, selector=LABELLED)
        await informer.wait_synced()

        async def writer(seed: int) -> None:
            rng = random.Random(seed)
            for _ in range(25):
                name = f"shared-{rng.randrange(4)}"
                key = Key(namespace, name)
                held = informer.get(key)
                if held is None:
                    try:
                        created = await client.create(CONFIG_MAPS, config_map(name, namespace))
                    except AlreadyExistsError:
                        continue
                    now = informer.get(key)
                    assert now is None or now.head.version >= created.head.version
                else:
                    try:
                        await client.delete(CONFIG_MAPS, key, uid=held.head.uid)
                    except NotFoundError:
                        pass
                    except ConflictError:
                        # Another object bears the name by now, which the watch will tell.
                        continue
                    now = informer.get(key)
                    assert now is None or now.head.uid != held.head.uid

        async with asyncio.TaskGroup() as group:
            for seed in range(6):
                group.create_task(writer(seed))
        last = await client.create(CONFIG_MAPS, config_map("last", namespace))
        await eventually_async(lambda: informer.status.version >= last.head.version)
        expected = {
            body["metadata"]["name"]: body["metadata"]["resourceVersion"]
            for body in api.list("v1", "ConfigMap", namespace, "test=yes")
        }
        assert {obj.key.name: str(obj.head.version) for obj in informer.list()} == expected


def definition(group: str, *versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
            "versions": [
                {"name": version, "served": True, "storage": version == versions[-1], "schema": schema}
                for version in versions
            ],
        },
    }


async def test_a_kind_comes_goes_and_comes_back_with_other_versions(client: Client, api: Api, namespace: str) -> None:
    """kubernetes#79610: without restart, and noticed at once."""
    group = f"{unique_name('cache')}.example.com"
    gadget = GroupKind(group, "Gadget")
    told: list[str] = []
    async with make_cache(client) as cache:
        kinds = cache.kinds
        kinds.watch_group(group)
        async with asyncio.timeout(10):
            await kinds.wait_synced()
        assert kinds.lookup(gadget) == KindAbsent()
        informer = cache.informer(Resource(group, "v1", "gadgets", "Gadget"))
        informer.subscribe(lambda change: told.append(f"{change.type.value} {change.key.name}"))
        await eventually_async(lambda: informer.status.state == "not served")

        api.create(definition(group, "v1"))
        try:
            await eventually_async(lambda: informer.synced, timeout=30)

            def usable() -> bool:
                known = kinds.lookup(gadget)
                return isinstance(known, KindState) and known.usable

            # The informer may have tried again by itself, before the definition was heard of.
            await eventually_async(usable, timeout=30)
            state = kinds.lookup(gadget)
            assert isinstance(state, KindState)
            assert state.served == ("v1",)
            body = {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": "one", "namespace": namespace}}
            await client.create(informer.resource, body)
            assert names(informer) == {"one"}
        finally:
            api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"gadgets.{group}")
        await eventually_async(lambda: told == ["ADDED one", "DELETED one"], timeout=45)
        await eventually_async(lambda: kinds.lookup(gadget) == KindAbsent(), timeout=45)

        api.create(definition(group, "v1", "v2"))
        try:

            def both_served() -> bool:
                known = kinds.lookup(gadget)
                return isinstance(known, KindState) and known.usable and known.served == ("v2", "v1")

            await eventually_async(both_served, timeout=30)
            state = kinds.lookup(gadget)
            assert isinstance(state, KindState)
            newest = cache.informer(state.resource())
            assert newest.resource.version == "v2"
            async with asyncio.timeout(30):
                await newest.wait_synced()
            assert not isinstance(kinds.in_group(group), KindUnknown)
        finally:
            api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"gadgets.{group}")


async def test_a_server_that_goes_and_comes_back_is_followed_again(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    plane = own_control_plane(controller_manager=False)
    async with await connection_to(plane, tmp_path) as connection:
        statuses: list[InformerStatus] = []
        settings = replace(ReflectorSettings(), backoff_cap=1.0)
        async with make_cache(connection.client, settings) as cache:
            informer = cache.informer(CONFIG_MAPS, namespace="default", selector=LABELLED)
            informer.on_status(statuses.append)
            await informer.wait_synced()
            plane.api.create(config_map("before", "default"))
            await eventually_async(lambda: names(informer) == {"before"})
            await asyncio.to_thread(plane.kill_apiserver)
            await eventually_async(lambda: informer.status.error_since is not None, timeout=20)
            assert informer.synced
            await asyncio.to_thread(plane.restart_apiserver)
            await asyncio.to_thread(plane.api.delete, "v1", "ConfigMap", "before", "default")
            await asyncio.to_thread(plane.api.create, config_map("after", "default"))
            await eventually_async(lambda: names(informer) == {"after"}, timeout=30)
            await eventually_async(lambda: informer.status.error_since is None, timeout=30)
            assert any(status.error_since is not None for status in statuses)
