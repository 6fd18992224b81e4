"""B2.6: the kill switch takes no time: no drain, no wait for volumes, also amid a drain; hooks are respected."""

from __future__ import annotations

import pytest

from controlplane.credentials import ADMIN
from support.clusterapi import World
from support.live import LiveScene
from support.manager import MANAGER_USER

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds within which Cluster API looks at a drain again, and something over."""
AT_ONCE = 15.0
"""Seconds, by the server's log, in which it does not look a second time."""
HOOKS = "machine.cluster.x-k8s.io/backup"


def busy(world: World, name: str, **spec: object) -> LiveScene:
    """A machine with a Pod that nobody may evict."""
    scene = LiveScene(world, world.namespace(name))
    scene.run(nodeDrainTimeout="1h", **spec)
    scene.pod()
    scene.budget()
    return scene


@pytest.mark.contract("B1.14", "B2.6")
def test_killed_it_goes_without_drain_and_without_grace(world: World) -> None:
    scene = busy(world, "killed", gracefulShutdownTimeout="1h")
    volume = "kubernetes.io/csi/example.com^data"
    scene.api.patch_status(
        "v1", "Node", scene.node_name, None, {"volumesAttached": [{"name": volume, "devicePath": ""}]}
    )
    mark = world.plane.audit_log.mark()
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    assert scene.seconds_to_unmake(mark, user=MANAGER_USER, verb="delete") < AT_ONCE
    scene.wait_gone()
    assert scene.pod_phase() in {"Running", "gone"}, "it was not asked to go"
    scene.edit(killSwitch=False)
    # B1.15
    scene.wait_ready()


@pytest.mark.contract("B2.6")
def test_killed_in_the_middle_of_a_drain_it_waits_no_longer(world: World) -> None:
    scene = busy(world, "midway")
    scene.active(False)
    scene.wait_deleting("DrainingNode")
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    scene.wait_gone()
    assert scene.pod_phase() in {"Running", "gone"}


@pytest.mark.contract("B2.6")
@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (f"pre-drain.delete.hook.{HOOKS}", "WaitingForPreDrainHook"),
        (f"pre-terminate.delete.hook.{HOOKS}", "WaitingForPreTerminateHook"),
    ],
    ids=["pre-drain", "pre-terminate"],
)
def test_lifecycle_hooks_are_respected_and_named(world: World, hook: str, reason: str) -> None:
    scene = busy(world, "hook")
    scene.annotate_machine(**{hook: "backup-operator"})
    scene.edit(killSwitch=True)
    scene.wait_deleting(reason)
    scene.wait_message("backup")
    infrastructure = scene.child(scene.infrastructure)
    assert infrastructure is not None
    assert "deletionTimestamp" not in infrastructure["metadata"]
    assert scene.status["phase"] == "ShuttingDown"
    mark = world.plane.audit_log.mark()
    scene.annotate_machine(**{hook: None})
    scene.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    assert scene.seconds_to_unmake(mark, user=ADMIN, verb="patch") < AT_ONCE
    scene.wait_gone()
