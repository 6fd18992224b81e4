"""B6.4, B3.4 and B1.7 with the real Cluster API: its webhooks down, and all of it uninstalled."""

from __future__ import annotations

from collections.abc import Callable

from support.clusterapi import World
from support.live import LiveScene

OUTAGE_TRIES = 2
"""Retries that are let pass while the webhooks are down. Nothing in what is asserted depends on how long it lasts: the
contract has no waiting time that begins with it."""


def test_b6_4_b3_4_cluster_api_may_be_down_come_back_and_be_uninstalled(own_world: Callable[..., World]) -> None:
    world = own_world()
    core = world.plane.cluster_api
    running = LiveScene(world, world.namespace("running"), "running")
    ending = LiveScene(world, running.namespace, "ending")
    coming = LiveScene(world, running.namespace, "coming")
    machines = [running.run(), ending.run()]
    coming.create(active=False)
    coming.wait_phase("Inactive")

    core.stop()
    # A restart must not need the conversion webhook: Machines are read at the version that is stored.
    world.manager.restart()
    ending.active(False)
    coming.active(True)
    ending.until(lambda: "deletionTimestamp" in ending.machine()["metadata"], what="the deletion is asked for")
    ending.wait_phase("ShuttingDown", "NodeDraining")
    status = coming.wait_phase("Error", "MachineCreationFailed", 60)
    assert "webhook" in status["message"], status["message"]
    assert coming.condition("Reconciling")["status"] == "True", "it passes without anybody's help"
    assert coming.condition("Stalled") == {}
    assert coming.find_machine() is None
    assert running.status["phase"] == "Active"
    assert running.status["ready"] is True
    assert running.machine()["metadata"]["uid"] == machines[0]["metadata"]["uid"]

    core.start()
    coming.wait_ready(90)
    ending.wait_phase("Inactive", "ScheduleInactive")
    ending.wait_gone()

    core.uninstall()
    status = running.wait_phase("Error", "MachineCreationFailed", 60)
    assert "Cluster API is not installed" in status["message"]
    assert running.condition("Stalled")["status"] == "True"
    # Without it there can be no children, so nothing holds a deletion.
    for scene in (running, ending, coming):
        scene.delete()
    for scene in (running, ending, coming):
        scene.until(lambda scene=scene: scene.find() is None, what=f"{scene.name} is gone")  # type: ignore[misc]
    assert world.manager.running
