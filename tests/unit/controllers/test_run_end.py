"""B8.5: every way in which a run ends leads to a true status and to another look, whatever is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fivespot.runtime import merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi import SIMULATED_EARLIER
from fivespot.testing.clusterapi.core import MACHINES
from fivespot.testing.faults import Fail, Reset
from simulation.fleet import SCHEDULED_MACHINES
from unit.controllers.one_machine import KEY, one_machine

pytestmark = pytest.mark.contract("B8.5")

OVERDUE = "FinalizerCleanupTimeout"
REFUSALS = [Fail(403), Fail(409), Fail(429), Fail(500), Fail(504), Fail(404, "text")]
IDS = ["403", "409", "429", "500", "504", "404"]


@pytest.mark.parametrize("fault", REFUSALS, ids=IDS)
async def test_a_creation_that_fails_is_told_within_a_minute_and_tried_until_it_works(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        one.fail(fault, "create", "machines")
        await one.turn(on=True)
        await asyncio.sleep(60)
        status = await one.status()
        assert status["phase"] in ("Pending", "Error")
        assert "machines.cluster.x-k8s.io" in status["message"]
        assert (await one.condition("Ready"))["status"] == "False"
        await asyncio.sleep(1800)
        fivespot_cluster.faults.clear()
        await asyncio.sleep(400)
        assert (await one.status())["phase"] == "Active"


@pytest.mark.parametrize("fault", REFUSALS, ids=IDS)
async def test_a_deletion_that_fails_is_told_within_a_minute_and_tried_until_it_works(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, gracefulShutdownTimeout="0s") as (one, _):
        assert (await one.status())["phase"] == "Active"
        one.fail(fault, "delete", "machines")
        await one.turn(on=False)
        await asyncio.sleep(60)
        status = await one.status()
        assert status["phase"] in ("ShuttingDown", "Error")
        assert (await one.condition("Ready"))["reason"] == "MachineDeletionFailed"
        await asyncio.sleep(1800)
        fivespot_cluster.faults.clear()
        await asyncio.sleep(400)
        assert (await one.status())["phase"] == "Inactive"


@pytest.mark.parametrize("fault", REFUSALS, ids=IDS)
async def test_a_machine_that_vanished_is_not_shown_as_ready_while_nobody_can_confirm_it(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster) as (one, running):
        machine = await one.machine()
        assert machine is not None
        await running.kill()
        client = fivespot_cluster.client
        await client.delete(MACHINES, KEY, uid=machine.head.uid)
        await client.patch(MACHINES, KEY, merge_patch({"metadata": {"finalizers": None}}))
        one.fail(fault, "get", "machines")
        async with one.manager():
            await asyncio.sleep(60)
            assert await one.machine() is None
            assert (await one.condition("Ready"))["status"] != "True"
            assert (await one.status())["machineRef"]["uid"] == machine.head.uid, "or its loss is never told"
            fivespot_cluster.faults.clear()
            await asyncio.sleep(120)
            assert len(await one.events("MachineLost")) == 1
            assert await one.machine() is not None


@pytest.mark.parametrize("fault", REFUSALS, ids=IDS)
async def test_a_search_that_fails_is_told_and_holds_up_no_forced_deletion(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    typo = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Typo", "spec": {}}
    settings = {"force_finalizer_on_timeout": True}
    async with one_machine(fivespot_cluster, infrastructureSpec=typo, settings=settings) as (one, running):
        assert (await one.status())["phase"] == "Error"
        await running.kill()
        # Another kind of the same group, of which nothing is used.
        await fivespot_cluster.install(*SIMULATED_EARLIER.definitions())
        one.fail(fault, "list", SIMULATED_EARLIER.machine.plural)
        kind = one.system.family.machine
        await one.edit(infrastructureSpec={"apiVersion": kind.api_version, "kind": kind.kind, "spec": {}})
        async with one.manager(**settings):
            await asyncio.sleep(60)
            status = await one.status()
            assert status["observedGeneration"] == (await one.body())["metadata"]["generation"]
            assert f"list {SIMULATED_EARLIER.machine.plural}" in status["message"]
            await one.delete()
            await asyncio.sleep(600 + 2 * 300 + 90)
            assert await one.find(SCHEDULED_MACHINES) is None


@pytest.mark.parametrize("fault", [Fail(403), Fail(409), Fail(422), Fail(500), Fail(404, "text")])
async def test_a_finalizer_that_cannot_be_removed_is_told_and_its_time_limit_too(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, _):
        one.fail(fault, "patch", "scheduledmachines")
        await one.delete()
        await asyncio.sleep(60)
        assert "the finalizer cannot be removed" in (await one.status())["message"]
        await asyncio.sleep(600 + 2 * 300 + 60)
        assert len(await one.events(OVERDUE)) == 1
        fivespot_cluster.faults.clear()
        await asyncio.sleep(60)
        assert await one.find(SCHEDULED_MACHINES) is None


@pytest.mark.contract("B3.3")
@pytest.mark.parametrize("fault", REFUSALS, ids=IDS)
async def test_the_way_out_of_a_deletion_does_not_depend_on_what_it_is_the_way_out_of(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    settings = {"force_finalizer_on_timeout": True}
    async with one_machine(fivespot_cluster, settings=settings) as (one, _):
        one.fail(fault, "delete", "machines")
        await one.delete()
        await asyncio.sleep(600 + 2 * 300 - 30)
        assert await one.find(SCHEDULED_MACHINES) is not None
        await asyncio.sleep(60)
        assert await one.find(SCHEDULED_MACHINES) is None
        assert len(await one.events(OVERDUE)) == 1


@pytest.mark.parametrize("fault", [Fail(403), Fail(409), Fail(500), Fail(404, "text")])
async def test_a_status_that_cannot_be_written_is_told_by_an_event_and_written_when_it_can(
    fivespot_cluster: EmbeddedCluster, fault: Fail
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, running):
        one.fail(fault, "patch", "scheduledmachines/status")
        await one.turn(on=True)
        await asyncio.sleep(60)
        assert await one.machine() is not None
        [event] = await one.events("ReconcileFailed")
        assert "the status cannot be written" in event["note"]
        text = running.manager.context.metrics.render().decode()
        assert 'fivespot_errors_total{error_type="status_not_written"}' in text
        fivespot_cluster.faults.clear()
        await asyncio.sleep(60)
        assert (await one.status())["phase"] == "Active"


async def test_a_request_that_hangs_is_told_while_it_is_waited_for(fivespot_cluster: EmbeddedCluster) -> None:
    class Hanging:
        async def apply(self, request: Any, handler: Any) -> Any:
            await asyncio.sleep(3600)
            return await handler(request)

    async with one_machine(fivespot_cluster, on=False) as (one, _):
        one.fail(Hanging(), "create", "machines")
        await one.turn(on=True)
        await asyncio.sleep(60)
        assert (await one.condition("Ready"))["reason"] == "MachineCreationFailed"


async def test_caches_that_cannot_be_filled_are_told_after_half_a_minute(fivespot_cluster: EmbeddedCluster) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, running):
        await running.kill()
        await one.turn(on=True)
        kind = one.system.family.machine
        one.fail(Fail(500), "list", kind.plural)
        one.fail(Fail(500), "watch", kind.plural)
        async with one.manager():
            await asyncio.sleep(20)
            assert (await one.status())["phase"] == "Inactive", "a restart writes nothing"
            await asyncio.sleep(40)
            assert "objects cannot be read" in (await one.status())["message"]
            assert (await one.condition("Ready"))["status"] == "Unknown"
            fivespot_cluster.faults.clear()
            await asyncio.sleep(90)
            assert (await one.status())["phase"] == "Active"


@pytest.mark.contract("A15")
@pytest.mark.parametrize("fault", [Fail(403), Fail(410), Fail(500), Fail(404, "text"), Reset()], ids=str)
async def test_definitions_that_cannot_be_read_from_the_start_are_told_in_time(
    fivespot_cluster: EmbeddedCluster, fault: Fail | Reset
) -> None:
    async with one_machine(fivespot_cluster, on=False) as (one, running):
        await running.kill()
        await one.turn(on=True)
        one.fail(fault, "get", "customresourcedefinitions")
        async with one.manager():
            await asyncio.sleep(14)
            assert (await one.status())["phase"] == "Inactive", "a restart writes nothing"
            await asyncio.sleep(46)
            assert (await one.condition("Ready"))["status"] == "Unknown"
            fivespot_cluster.faults.clear()
            await asyncio.sleep(90)
            assert (await one.status())["phase"] == "Active"
