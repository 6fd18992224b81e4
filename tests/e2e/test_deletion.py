"""B3 and B6.1 with all the real controllers: whatever is deleted, it ends by itself, under the admission policy."""

from __future__ import annotations

import pytest

from support.clusterapi import World
from support.live import LiveScene
from support.machines import MACHINE

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds for three looks at a drain, and something over."""
FINALIZER = "5spot.finos.org/scheduledmachine"


def wait_all_gone(scene: LiveScene, timeout: float = 30.0) -> None:
    """The ScheduledMachine is gone, and at that moment nothing of it is left."""
    scene.until(lambda: scene.find() is None, timeout, what="the ScheduledMachine is gone")
    assert scene.present() == [], "the finalizer came off last"


def pause(scene: LiveScene, value: str | None) -> None:
    note = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}
    scene.api.patch(*MACHINE, scene.name, scene.namespace, note)


@pytest.mark.contract("B3.2")
def test_deleted_in_the_background_it_is_drained_and_goes_last(world: World) -> None:
    scene = LiveScene(world, world.namespace("background"))
    scene.run(gracefulShutdownTimeout="1h", nodeDrainTimeout="10m")
    scene.pod()
    node = scene.node_name
    scene.delete()
    scene.until(lambda: scene.pod_phase() == "gone", TICKS, what="the Pod is evicted: no grace, but a drain")
    wait_all_gone(scene, TICKS)
    assert scene.node(node) is None


@pytest.mark.contract("B3.7")
def test_deleted_in_the_foreground_it_ends_too(world: World) -> None:
    """The manager and the collector both delete the Machine; who is first decides whether the children go at once."""
    scene = LiveScene(world, world.namespace("foreground"))
    scene.run(nodeDrainTimeout="1h")
    scene.pod()
    scene.delete(propagation="Foreground")
    wait_all_gone(scene, TICKS)


@pytest.mark.contract("B3.7")
def test_deleted_by_the_collector_in_the_foreground_the_drain_is_cut_short(world: World) -> None:
    scene = LiveScene(world, world.namespace("collected"))
    scene.run(nodeDrainTimeout="1h")
    scene.pod()
    scene.budget()
    # The collector is first when the manager is held back.
    pause(scene, "")
    scene.wait_condition("Paused", "True")
    scene.delete(propagation="Foreground")

    def collected() -> bool:
        machine = scene.find_machine()
        return machine is None or "foregroundDeletion" in machine["metadata"]["finalizers"]

    scene.until(collected, what="the collector deletes the Machine")
    pause(scene, None)
    # It deletes the Machine's own children at once, and Cluster API drains no node without infrastructure; a drain that
    # had begun before is looked at again after 20 seconds.
    wait_all_gone(scene, TICKS)
    assert scene.pod_phase() in {"Running", "gone"}, "it was not asked to go"


@pytest.mark.contract("B3.2")
def test_deleted_with_orphans_wanted_it_leaves_its_machine_alone(world: World) -> None:
    scene = LiveScene(world, world.namespace("orphan"))
    machine = scene.run()
    scene.delete(propagation="Orphan")
    scene.until(lambda: scene.find() is None, TICKS, what="the ScheduledMachine is gone")

    def adopted() -> bool:
        owners = scene.machine()["metadata"].get("ownerReferences", [])
        return [owner["kind"] for owner in owners] == ["Cluster"]

    scene.until(adopted, what="its Cluster takes the Machine over")
    left = scene.machine()
    assert left["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in left["metadata"]
    assert len(scene.present()) == 3


@pytest.mark.contract("B3.6")
def test_a_namespace_with_a_live_machine_ends(world: World) -> None:
    scene = LiveScene(world, world.namespace("ends"))
    scene.run()
    node = scene.node_name
    world.delete_namespace(scene.namespace)
    scene.until(lambda: world.api.find("v1", "Namespace", scene.namespace) is None, TICKS, what="the namespace is gone")
    # Its Cluster is in deletion, for which Cluster API leaves Nodes to the infrastructure provider.
    scene.until(lambda: scene.node(node) is None, what="the Node is gone")


@pytest.mark.contract("B6.1")
def test_a_cluster_that_is_deleted_takes_its_machines_along_and_ends(world: World) -> None:
    scene = LiveScene(world, world.namespace("cluster"))
    scene.run(gracefulShutdownTimeout="1h", nodeDrainTimeout="1h")
    world.api.delete(*world.clusters, "prod", scene.namespace)
    scene.wait_gone(TICKS)
    scene.until(
        lambda: world.api.find(*world.clusters, "prod", scene.namespace) is None, TICKS, what="the Cluster is gone"
    )
    # The schedule still says so, and there is nothing to make it in.
    status = scene.wait_phase("Pending", "ClusterNotFound")
    assert status["inSchedule"] is True
    assert scene.get()["metadata"]["finalizers"] == [FINALIZER]
    # The Secret with the kubeconfig was not the Cluster's own.
    world.api.delete("v1", "Secret", "prod-kubeconfig", scene.namespace)
    world.create_cluster(scene.namespace)
    scene.wait_ready()


@pytest.mark.contract("B6.1")
def test_a_machine_of_a_cluster_that_comes_later_is_made_when_it_comes(world: World) -> None:
    scene = LiveScene(world, world.namespace("later", cluster=None))
    scene.create()
    scene.wait_phase("Pending", "ClusterNotFound")
    assert scene.present() == []
    world.create_cluster(scene.namespace)
    scene.wait_ready()
