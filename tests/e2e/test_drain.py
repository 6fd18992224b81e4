"""B2.5: Cluster API drains the node, for as long as the ScheduledMachine says, and not at all when it says so.

Cluster API looks at a drain again every 20 seconds, which is why all of these run at once.
"""

from __future__ import annotations

import pytest

from support.clusterapi import World
from support.live import LiveScene
from support.manager import MANAGER_USER

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds for three looks at a drain, and something over."""
AT_ONCE = 15.0
"""Seconds, by the server's log, that show that nothing was waited for: less than Cluster API needs to look a second
time."""
POD = "work"
"""The name of the Pod and of its budget."""
VOLUME = "kubernetes.io/csi/example.com^data"


def attach_volume(scene: LiveScene) -> None:
    """What the node and the attach controller report while a volume is attached."""
    attached = {"volumesAttached": [{"name": VOLUME, "devicePath": ""}], "volumesInUse": [VOLUME]}
    scene.api.patch_status("v1", "Node", scene.node_name, None, attached)


def cordoned(scene: LiveScene, node: str) -> bool:
    found = scene.node(node)
    return found is not None and found["spec"].get("unschedulable") is True


@pytest.mark.contract("B2.5")
def test_a_budget_holds_the_drain_until_the_timeout_and_then_the_machine_goes(world: World) -> None:
    scene = LiveScene(world, world.namespace("budget"))
    scene.run(nodeDrainTimeout="15s")
    scene.pod()
    scene.budget()
    node = scene.node_name
    scene.active(False)
    scene.wait_deleting("DrainingNode")
    # The message says who blocks.
    scene.wait_message(f"Pod {scene.namespace}/{POD}.*disruption budget {POD}")
    assert scene.status["phase"] == "ShuttingDown"
    assert cordoned(scene, node)
    infrastructure = scene.child(scene.infrastructure)
    assert infrastructure is not None
    assert "deletionTimestamp" not in infrastructure["metadata"], "still needed by what runs on it"
    scene.wait_phase("Inactive", timeout=TICKS)
    scene.wait_gone()
    assert scene.pod_phase() in {"Running", "gone"}, "never evicted: it went down with its node"


@pytest.mark.contract("B2.5")
def test_a_drain_goes_on_once_the_budget_allows_it(world: World) -> None:
    scene = LiveScene(world, world.namespace("allowed"))
    scene.run(nodeDrainTimeout="10m")
    scene.pod()
    scene.budget()
    scene.active(False)
    scene.wait_deleting("DrainingNode")
    assert scene.pod_phase() == "Running"
    scene.api.delete("policy/v1", "PodDisruptionBudget", "work", scene.namespace)
    scene.until(lambda: scene.pod_phase() == "gone", TICKS, what="the Pod is evicted at the next look")


@pytest.mark.contract("B2.5")
def test_pods_without_a_budget_are_evicted(world: World) -> None:
    scene = LiveScene(world, world.namespace("evicted"))
    scene.run(nodeDrainTimeout="10m")
    scene.pod()
    scene.active(False)
    scene.until(lambda: scene.pod_phase() == "gone", TICKS, what="the Pod is evicted")
    scene.wait_phase("Inactive", timeout=TICKS)
    scene.wait_gone()


@pytest.mark.contract("B2.5")
def test_a_pod_that_does_not_end_is_named(world: World) -> None:
    scene = LiveScene(world, world.namespace("endless"))
    scene.run(nodeDrainTimeout="15s")
    scene.pod(ends="never")
    scene.active(False)
    scene.wait_message(f"Pod {scene.namespace}/{POD}.*deletionTimestamp", TICKS)
    scene.wait_phase("Inactive", timeout=TICKS)
    scene.wait_gone()


@pytest.mark.contract("B2.5")
def test_a_timeout_of_nothing_does_not_drain_also_with_an_attached_volume(world: World) -> None:
    scene = LiveScene(world, world.namespace("undrained"))
    scene.run(nodeDrainTimeout="0s")
    scene.pod()
    scene.budget()
    attach_volume(scene)
    node = scene.node_name
    mark = world.plane.audit_log.mark()
    scene.active(False)
    scene.wait_phase("Inactive", timeout=TICKS)
    assert scene.seconds_to_unmake(mark, user=MANAGER_USER, verb="delete") < AT_ONCE
    scene.wait_gone()
    assert scene.node(node) is None
    assert scene.pod_phase() in {"Running", "gone"}, "it was not asked to go"


@pytest.mark.contract("B2.5")
def test_an_attached_volume_is_waited_for_until_the_timeout(world: World) -> None:
    """The contrast to the case above: without it, that one would prove nothing."""
    scene = LiveScene(world, world.namespace("volume"))
    scene.run(nodeDrainTimeout="15s")
    attach_volume(scene)
    scene.active(False)
    scene.wait_deleting("WaitingForVolumeDetach")
    scene.wait_message("[Vv]olume")
    scene.wait_phase("Inactive", timeout=TICKS)
    scene.wait_gone()
