"""B2.1: each version of Machines that Cluster API serves can be chosen, and one serves for everything."""

from __future__ import annotations

import pytest

from controlplane import select
from support.clusterapi import World
from support.live import LiveScene
from support.manager import MANAGER_USER


@pytest.mark.contract("B2.1")
def test_the_older_version_serves_for_everything_with_its_own_form_of_references(world: World) -> None:
    """Cluster API converts what was sent: a reference in the form of the other version would be refused or lost.

    The newer version, which the manager takes by itself, serves in all other tests.
    """
    version = "v1beta1"
    namespace = world.namespace("version")
    scene = LiveScene(world, namespace)
    with world.other_manager(environment={"CAPI_MACHINE_API_VERSION": version}):
        mark = world.plane.audit_log.mark()
        machine = scene.run(nodeDrainTimeout="90s")
        assert scene.status["machineRef"]["apiVersion"] == f"cluster.x-k8s.io/{version}"
        assert scene.condition("MachineReady")["status"] == "True"
        scene.rescript(node={"ready": False})
        # Ready in today's sense lives elsewhere at v1beta1.
        scene.wait_condition("MachineReady", "False")
        scene.active(False)
        scene.wait_phase("Inactive")
        scene.wait_gone()
        events = world.plane.audit(since=mark)
    sent = select(events, user=MANAGER_USER, resource="machines", namespace=namespace)
    assert {event["objectRef"]["apiVersion"] for event in sent} == {version}
    # A read of the Machine is sent only where a cache is behind.
    assert {event["verb"] for event in sent} - {"get"} == {"create", "delete"}
    if world.core_version == "v1beta2":
        group = scene.family.machine.group
        reference = {"apiGroup": group, "kind": scene.family.machine.kind, "name": scene.name}
        assert machine["spec"]["infrastructureRef"] == reference
        assert machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
