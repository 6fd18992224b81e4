"""B5.2 in virtual time: the requests that creating and removing a machine costs, counted at the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, Final

import pytest

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.runtime import Key, Resource
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.system import EmbeddedSystem

MACHINES: Final = Resource("5spot.finos.org", "v1beta1", "scheduledmachines", "ScheduledMachine")
MANUAL: Final = Resource("spotschedules.5spot.finos.org", "v1alpha1", "manualschedules", "ManualSchedule")
CORE: Final = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
KEY: Final = Key("default", "web")
HOURS: Final = Key("default", "hours")
CREATIONS: Final = {
    "POST simulatedbootstraps": 1,
    "POST simulatedmachines": 1,
    "POST machines": 1,
}


class Stage:
    """One ScheduledMachine with a ManualSchedule, and the writes of the manager for it."""

    def __init__(self, system: EmbeddedSystem) -> None:
        self.system = system
        self.bill: Counter[str] = Counter()
        self.statuses: list[tuple[float, dict[str, Any]]] = []

    async def count(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        response = await handler(request)
        if request.header("user-agent") == "5spot-controller" and request.method != "GET":
            resource = request.path.split("/namespaces/default/")[-1].split("/")
            if resource[0] not in {"events", "manualschedules", "leases"}:
                self.bill[" ".join([request.method, resource[0], *resource[2:]])] += 1
                if resource[2:] == ["status"]:
                    found = await self.system.cluster.client.get(MACHINES, KEY)
                    self.statuses.append((self.system.cluster.elapsed, found.decode()["status"]))
        return response

    def settle(self) -> dict[str, int]:
        bill, self.bill, self.statuses = dict(self.bill), Counter(), []
        return bill

    async def switch(self, on: bool) -> None:
        body = {"apiVersion": MANUAL.api_version, "kind": MANUAL.kind, "metadata": {"name": HOURS.name}}
        await self.system.cluster.client.apply(MANUAL, HOURS, {**body, "spec": {"enabled": on}}, force=True)

    async def until(self, phase: str, ready: str) -> None:
        async def there() -> bool:
            status = (await self.system.cluster.client.get(MACHINES, KEY)).decode().get("status") or {}
            found = {condition["type"]: condition for condition in status.get("conditions") or ()}
            return status.get("phase") == phase and found["Ready"]["reason"] == ready

        await self.system.cluster.until(there, within=600, what=f"{phase} ({ready})")
        # Delayed status writes have happened by now.
        await self.system.sleep_until(self.system.cluster.elapsed + 5)


@asynccontextmanager
async def stage(cluster: EmbeddedCluster, infrastructure: dict[str, Any], **spec: Any) -> AsyncIterator[Stage]:
    async with EmbeddedSystem(cluster) as system:
        await system.add_cluster("default")
        made, family = Stage(system), system.family
        cluster.server.middleware = made.count
        await made.switch(False)
        body = {
            "apiVersion": MACHINES.api_version,
            "kind": MACHINES.kind,
            "metadata": {"name": KEY.name, "namespace": KEY.namespace},
            "spec": {
                "schedule": {"apiVersion": MANUAL.api_version, "kind": MANUAL.kind, "name": HOURS.name},
                "clusterName": "prod",
                "bootstrapSpec": {
                    "apiVersion": family.bootstrap.api_version,
                    "kind": family.bootstrap.kind,
                    "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": family.machine.api_version,
                    "kind": family.machine.kind,
                    "spec": infrastructure,
                },
                **spec,
            },
        }
        async with system.manager():
            await cluster.client.create(MACHINES, body)
            await made.until("Inactive", "ScheduleInactive")
            made.settle()
            yield made


@pytest.mark.contract("B5.2")
async def test_provisioning_and_deletion_without_delay_cost_no_intermediate_status_writes(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    async with stage(fivespot_cluster, {}, gracefulShutdownTimeout="2m") as machine:
        await machine.switch(True)
        await machine.until("Active", "MachineReady")
        first, last = machine.statuses[0][1], machine.statuses[-1][1]
        assert (first["phase"], first["ready"], last["phase"], last["ready"]) == ("Active", False, "Active", True)
        assert machine.settle() == {**CREATIONS, "PATCH scheduledmachines status": 2}
        await machine.switch(False)
        await machine.until("Inactive", "ScheduleInactive")
        assert machine.settle() == {"DELETE machines": 1, "PATCH scheduledmachines status": 3}


@pytest.mark.contract("B5.2")
async def test_the_state_of_a_machine_being_provisioned_is_mirrored_at_most_once_a_second_and_completely(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    slow = {"createAfterSeconds": 20, "node": {"createAfterSeconds": 30, "readyAfterSeconds": 10}}
    async with stage(fivespot_cluster, slow) as machine:
        await machine.switch(True)
        await machine.until("Active", "MachineReady")
        written = machine.statuses
        assert [status["phase"] for _, status in written] == ["Active"] * len(written)
        assert [status["ready"] for _, status in written] == [False] * (len(written) - 1) + [True]
        # Created; the condition that Cluster API waits for; provisioned; a node that is not ready; ready.
        steps = [sorted(status.keys() & {"providerID", "nodeRef"}) for _, status in written]
        assert [*dict.fromkeys(map(tuple, steps))] == [(), ("providerID",), ("nodeRef", "providerID")]
        assert len(written) == 6, "the first news of a step is shown at once, and the last a second later"
        assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(written))
        core = await fivespot_cluster.client.get(CORE, KEY)
        ready = next(c for c in core.decode()["status"]["conditions"] if c["type"] == "Ready")
        assert written[-1][1]["conditions"][1]["lastTransitionTime"] == ready["lastTransitionTime"], (
            "that waits for none"
        )
