"""B2.7, B6.4, B3.4 in a world of their own: taints with the feature gate on; Cluster API down, and then uninstalled.

One test for three rows, because each needs a world that no other test can share, and the last one ends it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane import FAST_GATES
from support.clusterapi import World
from support.live import LiveScene
from support.machines import taint

TAINT = "example.com/spot"


@pytest.mark.contract("B2.7", "B3.4", "B6.4")
@pytest.mark.timeout(300)
def test_taints_reach_the_node_and_cluster_api_may_go_down_come_back_and_be_uninstalled(
    own_world: Callable[..., World],
) -> None:
    world = own_world(feature_gates={**FAST_GATES, "MachineTaintPropagation": True})
    namespace = world.namespace("outage")
    running, ending, coming = (LiveScene(world, namespace, name) for name in ("running", "ending", "coming"))
    can_taint = world.core_version == "v1beta2"
    running.create(nodeTaints=[taint(TAINT, value="true"), taint(TAINT, "NoExecute")] if can_taint else [])
    ending.run()
    coming.create(active=False)
    coming.wait_phase("Inactive")
    running.wait_ready()
    if can_taint:
        taints_reach_the_node(running)
    while_its_webhooks_are_down_states_are_held(world, running, ending, coming)
    world.plane.cluster_api.start()
    coming.wait_ready(90)
    ending.wait_phase("Inactive", "ScheduleInactive")
    ending.wait_gone()
    without_it_machines_are_errors_and_deletions_end(world, running, ending, coming)


def taints_reach_the_node(scene: LiveScene) -> None:
    def tainted() -> bool:
        node = scene.node()
        assert node is not None
        found = {(t["key"], t.get("value", ""), t["effect"]) for t in node["spec"].get("taints", [])}
        return {(TAINT, "true", "NoSchedule"), (TAINT, "", "NoExecute")} <= found

    scene.until(tainted, what="the Node carries the taints")
    # They are to be there always: what somebody takes off comes back.
    scene.api.patch("v1", "Node", scene.node_name, None, {"spec": {"taints": []}})
    scene.until(tainted, what="the Node carries them again")


def while_its_webhooks_are_down_states_are_held(
    world: World, running: LiveScene, ending: LiveScene, coming: LiveScene
) -> None:
    """Nothing here depends on how long it lasts: no waiting time of the contract begins with an outage."""
    before = running.machine()["metadata"]["uid"]
    world.plane.cluster_api.stop()
    # Nor does a start need the conversion webhook: Machines are read at the version that is stored.
    world.manager.restart()
    ending.active(False)
    coming.active(True)
    ending.until(lambda: "deletionTimestamp" in ending.machine()["metadata"], what="the deletion is asked for")
    ending.wait_phase("ShuttingDown", "NodeDraining")
    coming.wait_message("webhook", 60)
    assert coming.condition("Reconciling")["status"] == "True", "it passes without anybody's help"
    assert coming.condition("Stalled") == {}
    assert coming.find_machine() is None
    assert running.status["phase"] == "Active"
    assert running.status["ready"] is True
    assert running.machine()["metadata"]["uid"] == before


def without_it_machines_are_errors_and_deletions_end(world: World, *scenes: LiveScene) -> None:
    wanted = scenes[0]
    world.plane.cluster_api.uninstall()
    # While the definitions go, the message may be about a kind that takes no new objects.
    wanted.wait_message("Cluster API is not installed", 90)
    wanted.wait_phase("Error", "MachineCreationFailed")
    assert wanted.condition("Stalled")["status"] == "True"
    # There can be no children, so nothing holds a deletion.
    for scene in scenes:
        scene.delete()
    for scene in scenes:
        scene.until(lambda scene=scene: scene.find() is None, what=f"{scene.name} is gone")  # type: ignore[misc]
    assert world.manager.running
