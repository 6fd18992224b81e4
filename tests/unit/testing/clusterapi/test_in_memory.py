"""The simulated providers and the simulated core on the embedded API server, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fivespot.runtime import Key, NotFoundError, Object, Resource, find_condition, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.clusterapi import (
    SIMULATED,
    SIMULATED_EARLIER,
    KindFamily,
    add_providers,
    cluster_bodies,
    create_cluster,
    is_usable,
)
from fivespot.testing.clusterapi.core import CLUSTERS, MACHINES, add_core, core_definitions
from fivespot.testing.clusterapi.workload import NODES, PODS
from fivespot.testing.virtual_time import run_virtual

Json = dict[str, Any]

KEY = Key("prod", "web")


class Bench:
    """A cluster with a usable Cluster ``east``, simulated providers and a simulated core."""

    def __init__(self, cluster: EmbeddedCluster, family: KindFamily) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.family = family

    async def make(self, *, script: Json | None = None, bootstrap: Json | None = None, **spec: Any) -> float:
        """Create a Machine with its bootstrap and infrastructure objects; returns the instant."""
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        references = {}
        for resource, given in ((self.family.bootstrap, bootstrap), (self.family.machine, script)):
            await self.client.create(
                resource,
                {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": given or {}},
            )
            references[resource] = {"apiGroup": resource.group, "kind": resource.kind, "name": KEY.name}
        wanted = {
            "clusterName": "east",
            "bootstrap": {"configRef": references[self.family.bootstrap]},
            "infrastructureRef": references[self.family.machine],
            **spec,
        }
        body = {"apiVersion": MACHINES.api_version, "kind": "Machine", "metadata": metadata, "spec": wanted}
        await self.client.create(MACHINES, body)
        return self.cluster.clock.monotonic()

    async def find(self, resource: Resource, key: Key = KEY) -> Object | None:
        try:
            return await self.client.get(resource, key)
        except NotFoundError:
            return None

    async def machine(self) -> Json:
        found = await self.find(MACHINES)
        assert found is not None, "no Machine"
        return found.decode()

    async def until(self, check: Callable[[], Awaitable[Any]], within: float = 600) -> float:
        """Wait until the check passes, polling once a second; returns the instant."""
        deadline = self.cluster.clock.monotonic() + within
        last: object = None
        while self.cluster.clock.monotonic() < deadline:
            try:
                if await check():
                    return self.cluster.clock.monotonic()
            except AssertionError as error:
                last = error
            await asyncio.sleep(1)
        raise AssertionError(f"not within {within} s; last: {last}")

    async def until_phase(self, phase: str) -> float:
        async def check() -> bool:
            found = (await self.machine()).get("status", {})
            assert found.get("phase") == phase, found
            return True

        return await self.until(check)

    async def until_ready(self) -> float:
        async def check() -> bool:
            return (await self.condition("Ready")).get("status") == "True"

        return await self.until(check)

    async def until_gone(self) -> float:
        async def check() -> bool:
            return await self.find(MACHINES) is None

        return await self.until(check)

    async def condition(self, type_: str) -> Json:
        found = find_condition((await self.machine()).get("status", {}).get("conditions"), type_)
        return dict(found or {})

    async def delete(self) -> float:
        found = await self.find(MACHINES)
        assert found is not None
        await self.client.delete(MACHINES, KEY, uid=found.head.uid)
        return self.cluster.clock.monotonic()

    async def patch(self, resource: Resource, change: Json, key: Key = KEY) -> None:
        await self.client.patch(resource, key, merge_patch(change))

    async def node(self) -> str:
        name: str = (await self.machine())["status"]["nodeRef"]["name"]
        return name

    async def pod(self) -> None:
        """A Pod on the Node that, once deleted, stays until :meth:`release_pod`: the server knows no grace periods."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "prod", "finalizers": ["example.com/work"]},
            "spec": {"nodeName": await self.node(), "containers": [{"name": "a", "image": "b"}]},
        }
        await self.client.create(PODS, body)

        async def runs() -> bool:
            found = await self.find(PODS)
            return found is not None and found.decode().get("status", {}).get("phase") == "Running"

        await self.until(runs)

    async def release_pod(self) -> None:
        await self.patch(PODS, {"metadata": {"finalizers": None}})


@asynccontextmanager
async def bench(family: KindFamily = SIMULATED) -> AsyncIterator[Bench]:
    async with EmbeddedCluster() as cluster:
        await cluster.install(*core_definitions(), *family.definitions())
        await cluster.namespace("prod")

        def setup(manager: Any) -> None:
            add_providers(manager, [family])
            add_core(manager)

        async with cluster.manager(name="simulation", setup=setup):
            await create_cluster(
                cluster.client, cluster_bodies("prod", "east", kubeconfig="none", family=family), family
            )

            async def usable() -> bool:
                return is_usable((await cluster.client.get(CLUSTERS, Key("prod", "east"))).decode())

            made = Bench(cluster, family)
            await made.until(usable)
            yield made


@pytest.mark.parametrize("family", [SIMULATED, SIMULATED_EARLIER], ids=lambda family: family.contract)
def test_a_machine_is_provisioned_and_removed_when_its_script_says_so(family: KindFamily) -> None:
    async def main() -> None:
        async with bench(family) as b:
            script = {
                "createAfterSeconds": 90,
                "deleteAfterSeconds": 60,
                "node": {"createAfterSeconds": 30, "readyAfterSeconds": 45},
            }
            begun = await b.make(script=script, bootstrap={"createAfterSeconds": 10})
            assert await b.until_phase("Provisioning") - begun == pytest.approx(10, abs=2)
            assert await b.until_phase("Provisioned") - begun == pytest.approx(100, abs=2)
            assert await b.until_phase("Running") - begun == pytest.approx(130, abs=2)
            assert (await b.condition("Ready"))["status"] == "False"
            assert await b.until_ready() - begun == pytest.approx(175, abs=2)
            node = await b.node()
            begun = await b.delete()
            assert await b.until_gone() - begun == pytest.approx(60, abs=2)
            for resource in (family.bootstrap, family.machine):
                assert await b.find(resource) is None
            assert await b.find(NODES, Key("", node)) is None

    run_virtual(main())


def test_a_scripted_failure_is_reported_and_ends_with_another_script() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make(script={"create": "Fail", "failure": "no more of them"})

            async def told() -> bool:
                return "no more of them" in (await b.condition("InfrastructureReady")).get("message", "")

            await b.until(told)
            await b.patch(SIMULATED.machine, {"spec": {"create": "Succeed"}})
            await b.until_ready()

    run_virtual(main())


def test_nothing_is_provisioned_without_bootstrap_data_or_while_paused() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make(bootstrap={"create": "Never"})
            await b.until_phase("Pending")
            await b.patch(CLUSTERS, {"spec": {"paused": True}}, Key("prod", "east"))
            await b.patch(SIMULATED.bootstrap, {"spec": {"create": "Succeed"}})

            async def paused() -> bool:
                return (await b.condition("Paused")).get("status") == "True"

            await b.until(paused)
            assert (await b.machine())["status"]["phase"] == "Pending"
            await b.patch(CLUSTERS, {"spec": {"paused": False}}, Key("prod", "east"))
            await b.until_ready()

    run_virtual(main())


def test_a_drain_waits_for_pods_and_checks_every_twenty_seconds() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make()
            await b.until_ready()
            await b.pod()
            begun = await b.delete()

            async def drains() -> bool:
                return (await b.condition("Deleting")).get("reason") == "DrainingNode"

            await b.until(drains)
            assert "Pod prod/web" in (await b.condition("Deleting"))["message"]
            node = await b.find(NODES, Key("", await b.node()))
            assert node is not None
            assert node.decode()["spec"]["unschedulable"] is True
            await asyncio.sleep(50)
            await b.release_pod()
            assert await b.until_gone() - begun == pytest.approx(60, abs=3)
            assert await b.find(PODS) is None

    run_virtual(main())


def test_a_drain_ends_at_its_timeout_and_is_skipped_by_annotation() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make(deletion={"nodeDrainTimeoutSeconds": 30})
            await b.until_ready()
            await b.pod()
            begun = await b.delete()
            # Noticed at a look only.
            assert await b.until_gone() - begun == pytest.approx(40, abs=2)
            await b.release_pod()
            await b.make()
            await b.until_ready()
            await b.pod()
            await b.patch(
                MACHINES, {"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}}
            )
            begun = await b.delete()
            assert await b.until_gone() - begun < 3

    run_virtual(main())


def test_a_cluster_is_deleted_after_all_its_machines() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make()
            await b.until_ready()
            key = Key("prod", "east")
            cluster = await b.find(CLUSTERS, key)
            assert cluster is not None
            await b.client.delete(CLUSTERS, key, uid=cluster.head.uid)

            async def gone() -> bool:
                return await b.find(CLUSTERS, key) is None

            # The Machine has no owner but the Cluster, which deletes it.
            await b.until(gone)
            assert await b.find(MACHINES) is None
            for resource in (SIMULATED.cluster, SIMULATED.control_plane):
                assert await b.find(resource, key) is None

    run_virtual(main())


def test_a_node_that_is_not_ready_shows_on_the_machine() -> None:
    async def main() -> None:
        async with bench() as b:
            await b.make()
            await b.until_ready()
            await b.patch(SIMULATED.machine, {"spec": {"node": {"ready": False}}})

            async def unready() -> bool:
                return (await b.condition("Ready")).get("status") == "False"

            await b.until(unready)
            assert (await b.condition("NodeHealthy"))["status"] == "False"
            assert (await b.machine())["status"]["phase"] == "Running"

    run_virtual(main())
