"""B6.2 with the real Cluster API: a pause holds both of us back."""

from __future__ import annotations

import pytest

from controlplane import ApiError
from support.clusterapi import World
from support.live import LiveScene, machine_condition
from support.machines import MACHINE

pytestmark = pytest.mark.together

PAUSED = "cluster.x-k8s.io/paused"


def pause_cluster(world: World, scene: LiveScene, *, paused: bool) -> None:
    """Returns when Cluster API has seen it: its Machine controller reads the same cache of Clusters."""
    world.api.patch(*world.clusters, "prod", scene.namespace, {"spec": {"paused": paused}})

    def seen() -> bool:
        cluster = world.api.get(*world.clusters, "prod", scene.namespace)
        return machine_condition(cluster, "Paused").get("status") == str(paused)

    scene.until(seen, what="Cluster API knows of the pause" if paused else "Cluster API knows of its end")
    if not paused:
        touch(scene)


def touch(scene: LiveScene) -> None:
    """Have Cluster API look at the Machine, unless it is gone.

    Its Machine controller does not notice the end of a Cluster's pause (1.14): it looks again at its next full pass,
    hours later, or when something touches the Machine.
    """
    try:
        scene.annotate_machine(**{"example.com/resumed": ""})
    except ApiError as error:
        if error.status != 404:
            raise


def pause_object(world: World, scene: LiveScene, *, paused: bool) -> None:
    note = {PAUSED: "" if paused else None}
    world.api.patch(*MACHINE, scene.name, scene.namespace, {"metadata": {"annotations": note}})


def pause_machine(world: World, scene: LiveScene, *, paused: bool) -> None:
    scene.annotate_machine(**{PAUSED: "" if paused else None})


@pytest.mark.contract("B6.2")
@pytest.mark.parametrize(
    "pause", [pause_cluster, pause_object, pause_machine], ids=["cluster", "scheduledmachine", "machine"]
)
def test_paused_the_machine_stays_and_resumed_it_goes(world: World, pause: object) -> None:
    assert callable(pause)
    scene = LiveScene(world, world.namespace("paused"))
    machine = scene.run()
    pause(world, scene, paused=True)
    scene.wait_condition("Paused", "True")
    scene.active(False)
    scene.wait_phase("ShuttingDown", "Paused")
    assert "deletionTimestamp" not in scene.machine()["metadata"]
    assert scene.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    pause(world, scene, paused=False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.wait_gone()


@pytest.mark.contract("B6.2")
def test_a_kill_under_pause_is_asked_for_and_cluster_api_carries_it_out_once_resumed(world: World) -> None:
    scene = LiveScene(world, world.namespace("killed"))
    scene.run()
    pause_cluster(world, scene, paused=True)
    scene.wait_condition("Paused", "True")
    scene.edit(killSwitch=True)
    scene.until(lambda: "deletionTimestamp" in scene.machine()["metadata"], what="the Machine is being deleted")
    assert len(scene.present()) == 3, "Cluster API holds still"
    pause_cluster(world, scene, paused=False)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.wait_gone()
