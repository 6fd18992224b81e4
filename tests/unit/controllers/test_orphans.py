"""B5.5: objects of ours whose ScheduledMachine is gone are found and deleted, and nothing else is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fivespot.api import names
from fivespot.runtime import Key, NotFoundError, Resource
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Fail, Rule
from simulation.fleet import add_machine
from unit.controllers.one_machine import One, one_machine

pytestmark = pytest.mark.contract("B5.5")

GONE = "00000000-aaaa-bbbb-cccc-000000000000"
LONG = 900.0


async def leave(
    one: One, resource: Resource, name: str = "late", spec: dict[str, Any] | None = None, **metadata: Any
) -> Key:
    """An object as a process creates it that does not know that everything was removed."""
    given: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "labels": {names.LABEL_MACHINE: name, names.LABEL_CLUSTER: "prod"},
        "annotations": {names.ANNOTATION_UID: GONE},
    }
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {**given, **metadata}}
    await one.cluster.client.create(resource, {**body, "spec": spec or {}})
    return Key("default", name)


def children(one: One) -> tuple[Resource, Resource]:
    return one.system.family.bootstrap, one.system.family.machine


async def test_what_was_created_too_late_is_deleted_and_frees_its_name(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster) as (one, _):
        keys = [(kind, await leave(one, kind)) for kind in children(one)]
        await add_machine(one.system, "late", "web", kind="ManualSchedule")
        await asyncio.sleep(LONG)
        for kind, key in keys:
            found = await one.find(kind, key)
            assert found is not None, "the new machine has its own"
            assert found.head.annotations[names.ANNOTATION_UID] != GONE
        assert await one.find(MACHINES, Key("default", "late")) is not None


async def test_kinds_that_no_machine_names_any_more_are_searched_too(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        await one.delete()
        await asyncio.sleep(30)
        keys = [(kind, await leave(one, kind)) for kind in children(one)]
        await asyncio.sleep(100)
        assert all([await one.find(kind, key) for kind, key in keys]), "they are young"
        await asyncio.sleep(LONG)
        assert not any([await one.find(kind, key) for kind, key in keys])


async def test_what_may_still_be_wanted_is_left_alone(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        bootstrap, infrastructure = children(one)
        group, kind = infrastructure.group, infrastructure.kind
        spec = {
            "clusterName": "prod",
            "bootstrap": {"dataSecretName": "given"},
            "infrastructureRef": {"apiGroup": group, "kind": kind, "name": "owned"},
        }
        machine = await leave(one, MACHINES, "owned", spec, annotations={}, labels={names.LABEL_CLUSTER: "prod"})
        owner = await one.cluster.client.get(MACHINES, machine)
        reference = {"apiVersion": MACHINES.api_version, "kind": "Machine", "name": "owned", "uid": owner.head.uid}
        kept = [
            (bootstrap, await leave(one, bootstrap, "owned", ownerReferences=[reference])),
            (infrastructure, await leave(one, infrastructure, "owned")),
            (infrastructure, await leave(one, infrastructure, "foreign", annotations={})),
            (infrastructure, await leave(one, infrastructure, "copied", labels={names.LABEL_MACHINE: "other"})),
            (
                infrastructure,
                await leave(
                    one, infrastructure, "p", annotations={names.ANNOTATION_UID: GONE, names.ANNOTATION_PAUSED: ""}
                ),
            ),
        ]
        await asyncio.sleep(2 * LONG)
        assert all([await one.find(kind, key) for kind, key in kept])


async def test_nothing_is_deleted_while_its_cluster_is_paused(fivespot_cluster: EmbeddedCluster) -> None:
    """It may be on the way to another management cluster."""
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        _, infrastructure = children(one)
        key = await leave(one, infrastructure)
        await one.pause_cluster(on=True)
        await asyncio.sleep(2 * LONG)
        assert await one.find(infrastructure, key) is not None
        await one.pause_cluster(on=False)
        await asyncio.sleep(LONG)
        assert await one.find(infrastructure, key) is None


@pytest.mark.parametrize("fault", [Fail(403), Fail(500), Fail(404, "text")], ids=["403", "500", "404"])
async def test_nothing_is_deleted_while_the_server_does_not_confirm_it(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        _, infrastructure = children(one)
        key = await leave(one, infrastructure)
        fivespot_cluster.faults.add(Rule(fault, verb="get", resource="scheduledmachines", name="late"))
        await asyncio.sleep(2 * LONG)
        assert await one.find(infrastructure, key) is not None


async def test_a_dry_run_deletes_nothing(fivespot_cluster: EmbeddedCluster) -> None:
    from fivespot.runtime.manager import ControllerSettings  # noqa: PLC0415

    async with one_machine(fivespot_cluster, on=False) as (one, running):
        await running.kill()
        _, infrastructure = children(one)
        key = await leave(one, infrastructure)
        async with one.system.manager(controllers=ControllerSettings(dry_run=True, instance="dry")):
            await asyncio.sleep(LONG)
        with pytest.raises(NotFoundError):
            await one.cluster.client.get(infrastructure, Key("default", "other"))
        assert await one.find(infrastructure, key) is not None
