"""Controllers and finalizers against the real API server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from fivespot.runtime import (
    CRDS,
    DONE,
    METADATA,
    Cache,
    Client,
    Controller,
    GroupKind,
    InvalidError,
    Key,
    NotFoundError,
    Resource,
    Result,
    Selector,
    SystemClock,
    connect,
    ensure_finalizer,
    owner_of,
    remove_finalizer,
)
from fivespot.runtime.clock import ThreadOffload
from fivespot.runtime.errors import StaleReadError
from fivespot.runtime.reconcile.sources import SourceInformer
from support import eventually_async, unique_name

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
OURS, THEIRS = "example.com/ours", "example.org/theirs"


@pytest.fixture
async def client(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Client]:
    connection = await connect(
        kubeconfig=str(control_plane.kubeconfig(tmp_path / "kubeconfig")),
        user_agent="fivespot-reconcile-test",
        clock=SystemClock(),
        rng=random.Random(1),
        offload=ThreadOffload(),
    )
    async with connection:
        yield connection.client


def config_map(name: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace} | metadata}


class Runs:
    """Counts the runs of each key."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    async def reconcile(self, key: Key) -> Result:
        self.keys.append(key)
        return DONE


async def test_finalizers_come_and_go_without_losing_those_of_others(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a", namespace, finalizers=[THEIRS]))
    ours = await ensure_finalizer(client, CONFIG_MAPS, created, OURS)
    assert ours.head.finalizers == (THEIRS, OURS)
    with pytest.raises(StaleReadError):
        await ensure_finalizer(client, CONFIG_MAPS, created, OURS)
    with pytest.raises(InvalidError) as caught:
        await ensure_finalizer(client, CONFIG_MAPS, ours, "not a finalizer")
    assert caught.value.causes

    deleting = await client.delete(CONFIG_MAPS, ours.key, uid=ours.head.uid)
    assert deleting is not None
    assert await ensure_finalizer(client, CONFIG_MAPS, deleting, "example.com/late") is deleting
    without_theirs = await remove_finalizer(client, CONFIG_MAPS, deleting, THEIRS)
    assert without_theirs is not None
    assert without_theirs.head.finalizers == (OURS,)
    assert await remove_finalizer(client, CONFIG_MAPS, without_theirs, OURS) is None
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, ours.key)
    assert await remove_finalizer(client, CONFIG_MAPS, without_theirs, OURS) is None


async def test_a_finalizer_is_not_taken_from_another_object_of_the_name(client: Client, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("a", namespace, finalizers=[OURS]))
    await client.delete(CONFIG_MAPS, first.key, uid=first.head.uid)
    await remove_finalizer(client, CONFIG_MAPS, await client.get(CONFIG_MAPS, first.key), OURS)
    second = await client.create(CONFIG_MAPS, config_map("a", namespace, finalizers=[OURS]))
    with pytest.raises(StaleReadError):
        await remove_finalizer(client, CONFIG_MAPS, first, OURS)
    assert (await client.get(CONFIG_MAPS, first.key)).head.finalizers == (OURS,)
    await remove_finalizer(client, CONFIG_MAPS, second, OURS)


async def test_a_start_costs_one_run_per_object_and_a_change_of_what_it_owns_another(
    client: Client, api: Api, namespace: str
) -> None:
    selector = Selector.labels({"test": namespace})
    labels = {"test": namespace}
    parents = [api.create(config_map(f"p{number}", namespace, labels=labels)) for number in range(5)]

    def child(parent: dict[str, Any]) -> dict[str, Any]:
        name = parent["metadata"]["name"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": parent["metadata"]["uid"]}
        metadata = {"name": f"of-{name}", "namespace": namespace, "labels": labels, "ownerReferences": [owner]}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    for parent in parents[:3]:
        api.create(child(parent))
    runs = Runs()
    controller = Controller("maps", runs, clock=SystemClock(), rng=random.Random(1))
    async with Cache(client, clock=SystemClock(), rng=random.Random(2)) as cache, asyncio.TaskGroup() as group:
        controller.watches(cache.informer(CONFIG_MAPS, namespace=namespace, selector=selector))
        controller.watches(
            cache.informer(SECRETS, namespace=namespace, selector=selector, projection=METADATA),
            owner_of(CONFIG_MAPS.group_kind),
        )
        task = group.create_task(controller.run())
        await eventually_async(lambda: len(runs.keys) >= 5)
        assert controller.ready
        assert sorted(key.name for key in runs.keys) == [f"p{number}" for number in range(5)]
        api.create(child(parents[4]))
        await eventually_async(lambda: len(runs.keys) >= 6)
        assert runs.keys[5:] == [Key(namespace, "p4")]
        task.cancel()


async def test_a_kind_that_is_installed_later_and_removed_again(client: Client, api: Api, namespace: str) -> None:
    """kubernetes#79610, controller-runtime#2589: a controller could not recover from a definition installed late."""
    group_name = f"{unique_name('late')}.example.com"
    kind = GroupKind(group_name, "Gadget")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group_name}"},
        "spec": {
            "group": group_name,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    runs = Runs()
    controller = Controller("gadgets", runs, clock=SystemClock(), rng=random.Random(1))
    async with Cache(client, clock=SystemClock(), rng=random.Random(2)) as cache, asyncio.TaskGroup() as group:
        source = controller.watches_kind(cache.kinds, kind, cache.informer)

        def opened() -> list[SourceInformer]:
            return [source.informer] if source.informer is not None else []

        task = group.create_task(controller.run())
        await eventually_async(lambda: controller.ready)
        assert not opened()
        await client.create(
            CRDS,
            definition,
        )
        await eventually_async(lambda: source.informer is not None and source.informer.synced)
        gadget = {"apiVersion": f"{group_name}/v1", "kind": "Gadget"}
        created = await client.create(
            Resource(group_name, "v1", "gadgets", "Gadget"),
            gadget | {"metadata": {"name": "g", "namespace": namespace}},
        )
        await eventually_async(lambda: runs.keys == [created.key])
        api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"gadgets.{group_name}")
        await eventually_async(lambda: not opened(), timeout=30)
        assert controller.ready
        # The run that its objects' going asks for may still be due when the kind is gone.
        await eventually_async(lambda: len(runs.keys) >= 2)
        task.cancel()
