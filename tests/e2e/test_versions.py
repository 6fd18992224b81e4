"""B2.1: each version of Machines that Cluster API serves can be chosen, and one serves for everything."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from controlplane import select
from support.clusterapi import World
from support.live import LiveScene
from support.manager import MANAGER_USER


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_b2_1_either_version_serves_for_everything_with_its_own_form_of_references(world: World, version: str) -> None:
    """Cluster API converts what was sent: a reference in the form of the other version would be refused or lost."""
    if version > world.core_version:
        pytest.skip("this release of Cluster API does not serve it")
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
    assert {event["verb"] for event in sent} == {"create", "delete"}
    if world.core_version == "v1beta2":
        group = scene.family.machine.group
        reference = {"apiGroup": group, "kind": scene.family.machine.kind, "name": scene.name}
        assert machine["spec"]["infrastructureRef"] == reference
        assert machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90


def test_with_the_feature_gates_that_users_run_it_is_slower_and_no_different(
    own_world: Callable[..., World], record_property: Callable[[str, object], None]
) -> None:
    """By default Cluster API reconciles an object once a second, which the other tests do without."""
    world = own_world(feature_gates={})
    scene = LiveScene(world, world.namespace("default-gates"))
    began = time.monotonic()
    machine = scene.run()
    record_property("seconds_to_ready", round(time.monotonic() - began, 1))
    began = time.monotonic()
    scene.active(False)
    scene.wait_phase("Inactive")
    scene.wait_gone()
    record_property("seconds_to_gone", round(time.monotonic() - began, 1))
    for active in (True, False, True):
        scene.active(active)
    scene.wait_ready(after=machine)
    assert world.forbidden() == []
