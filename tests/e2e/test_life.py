"""A machine's life with the real Cluster API: made, adopted, running, ready, and gone in the right order."""

from __future__ import annotations

import pytest

from support.clusterapi import World
from support.live import LiveScene

pytestmark = pytest.mark.together


def test_b1_1_b4_2_a_wanted_machine_is_adopted_runs_and_is_mirrored(world: World) -> None:
    scene = LiveScene(world, world.namespace("life"))
    machine = scene.run()
    status = scene.status
    infrastructure = scene.child(scene.infrastructure)
    assert infrastructure is not None
    assert status["providerID"] == machine["spec"]["providerID"] == infrastructure["spec"]["providerID"]
    assert status["nodeRef"]["name"] == machine["status"]["nodeRef"]["name"]
    assert status["machineRef"]["uid"] == machine["metadata"]["uid"]
    assert scene.condition("MachineReady")["status"] == "True"
    assert scene.condition("Ready")["reason"] == "MachineReady"
    for kind in (scene.bootstraps, scene.infrastructure):
        child = scene.child(kind)
        assert child is not None
        [owner] = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Machine", machine["metadata"]["uid"], True)
    node = scene.node_name
    scene.active(False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.wait_gone()
    assert scene.node(node) is None
