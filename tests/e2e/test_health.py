"""B1.8 and B7.1 with Cluster API's own MachineHealthCheck: what it marks for its owner is replaced, under the brake."""

from __future__ import annotations

from typing import Any

import pytest

from support.clusterapi import World
from support.live import LiveScene, seconds_between

pytestmark = pytest.mark.together

BRAKE_SECONDS = 10.0
"""B7.1: before the first replacement."""


def check_health(world: World, scene: LiveScene) -> None:
    """A MachineHealthCheck that takes a Node which is not ready for a second for a broken one."""
    condition: dict[str, Any] = {"type": "Ready", "status": "False"}
    selector = {"matchLabels": {"5spot.finos.org/scheduled-machine": scene.name}}
    if world.core_version == "v1beta2":
        spec: dict[str, Any] = {"checks": {"unhealthyNodeConditions": [{**condition, "timeoutSeconds": 1}]}}
    else:
        spec = {"unhealthyConditions": [{**condition, "timeout": "1s"}], "maxUnhealthy": "100%"}
    world.api.create(
        {
            "apiVersion": world.machines[0],
            "kind": "MachineHealthCheck",
            "metadata": {"name": scene.name, "namespace": scene.namespace},
            "spec": {"clusterName": "prod", "selector": selector, **spec},
        }
    )


def wait_replacing(scene: LiveScene) -> None:
    """Wait until a replacement is counted: the deletion itself may be over between two looks."""
    scene.until(lambda: scene.status.get("replacements", {}).get("count") == 1, what="it is being replaced")


@pytest.mark.contract("B1.8")
def test_an_unhealthy_machine_is_replaced_under_the_brake(world: World) -> None:
    scene = LiveScene(world, world.namespace("unhealthy"))
    first = scene.run()
    check_health(world, scene)
    scene.rescript(node={"ready": False})
    wait_replacing(scene)
    scene.wait_phase("Pending", "ReplacementDelayed")
    assert scene.find_machine() is None
    # Events are written beside the status, and may come later.
    scene.until(lambda: scene.events("Remediating"), what="people are told")
    second = scene.wait_ready(60, after=first)
    counted = scene.status["replacements"]
    assert counted["count"] == 1, "until it has been ready for long"
    waited = seconds_between(counted["lastTime"], second["metadata"]["creationTimestamp"])
    assert waited >= BRAKE_SECONDS - 1
    scene.until(
        lambda: scene.machine_condition("HealthCheckSucceeded").get("status") == "True", what="the new one is healthy"
    )


@pytest.mark.contract("B1.8")
def test_a_machine_that_is_not_to_be_remediated_is_left(world: World) -> None:
    scene = LiveScene(world, world.namespace("skipped"))
    machine = scene.run()
    scene.annotate_machine(**{"cluster.x-k8s.io/skip-remediation": ""})
    check_health(world, scene)
    scene.rescript(node={"ready": False})
    scene.wait_condition("MachineReady", "False")
    # A second machine under the same kind of check shows that the check had time to act.
    other = LiveScene(world, world.namespace("beside"))
    other.run()
    check_health(world, other)
    other.rescript(node={"ready": False})
    wait_replacing(other)
    assert scene.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in scene.machine()["metadata"]
    assert scene.status["phase"] == "Active"
    assert "replacements" not in scene.status


@pytest.mark.contract("B1.6")
def test_a_machine_that_other_hands_deleted_is_replaced(world: World) -> None:
    scene = LiveScene(world, world.namespace("lost"))
    first = scene.run()
    scene.api.delete(*scene.machines, scene.name, scene.namespace)
    second = scene.wait_ready(60, after=first)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert scene.status["replacements"]["count"] == 1
