"""B2.5 and B2.6 as far as a server without Cluster API shows them: what the Machine is told about draining."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.observing import writes
from support.scene import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scene

NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}
HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"


def told(scene: Scene) -> tuple[set[str], dict[str, Any]]:
    """The annotations against draining that the Machine carries, and its limits."""
    machine = scene.machine()
    return NO_DRAIN & set(machine["metadata"].get("annotations", {})), machine["spec"].get("deletion", {})


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize(("timeout", "seconds"), [("45s", 45), ("5m", 300), ("2h", 7200), ("24h", 86400)])
def test_the_drain_timeout_is_on_the_machine_from_its_creation(scene: Scene, timeout: str, seconds: int) -> None:
    scene.create(nodeDrainTimeout=timeout)
    scene.active(True)
    scene.wait_made()
    annotations, limits = told(scene)
    assert annotations == set()
    assert (limits["nodeDrainTimeoutSeconds"], limits["nodeVolumeDetachTimeoutSeconds"]) == (seconds, seconds)


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize("timeout", ["0s", "0m", "00h"])
def test_a_timeout_of_nothing_means_that_nothing_is_drained(
    scene: Scene, control_plane: ControlPlane, timeout: str
) -> None:
    scene.create(nodeDrainTimeout=timeout)
    scene.active(True)
    scene.wait_made()
    annotations, limits = told(scene)
    assert annotations == NO_DRAIN
    assert not {"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds"} & set(limits), "0 would mean no limit"
    scene.hold_machine()
    mark = control_plane.audit_log.mark()
    scene.active(False)
    status = scene.wait_phase("ShuttingDown", "NodeDraining")
    assert "without drain" in status["message"]
    sent = select(writes(control_plane, mark, scene.namespace), resource="machines")
    assert [event["verb"] for event in sent] == ["delete"], "said when it was made, not again"


@pytest.mark.contract("B2.5")
def test_a_machine_of_ours_is_not_told_again_before_its_deletion(scene: Scene, control_plane: ControlPlane) -> None:
    scene.create(nodeDrainTimeout="2m")
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    scene.edit(nodeDrainTimeout="0s")
    scene.wait_condition("UpToDate", "False", "TemplateChanged")
    mark = control_plane.audit_log.mark()
    scene.active(False)
    scene.wait_phase("ShuttingDown", "NodeDraining")
    sent = select(writes(control_plane, mark, scene.namespace), resource="machines")
    assert [event["verb"] for event in sent] == ["delete"]
    assert told(scene) == (set(), {"nodeDrainTimeoutSeconds": 120, "nodeVolumeDetachTimeoutSeconds": 120})


def undrained(scene: Scene) -> bool:
    metadata = scene.machine()["metadata"]
    return "deletionTimestamp" in metadata and set(metadata.get("annotations", {})) >= NO_DRAIN


@pytest.mark.contract("B2.6")
@pytest.mark.parametrize("when", ["while up", "while draining"])
def test_killed_one_patch_takes_the_drain_away_and_hooks_are_respected(
    scene: Scene, control_plane: ControlPlane, when: str
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    scene.api.patch(*MACHINES, "web", scene.namespace, {"metadata": {"annotations": {HOOK: "backup-operator"}}})
    # Otherwise the patch may name an older version first, and be one of two.
    scene.wait_seen()
    if when == "while draining":
        scene.active(False)
        scene.wait_phase("ShuttingDown", "NodeDraining")
    mark = control_plane.audit_log.mark()
    scene.edit(killSwitch=True)
    scene.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: undrained(scene), what="deleting, and not to be drained")
    sent = select(writes(control_plane, mark, scene.namespace), resource="machines")
    assert [event["verb"] for event in sent] == (["patch", "delete"] if when == "while up" else ["patch"])
    # Cluster API waits for the hook and says so; whose it is, is nothing to us.
    waiting = {
        "type": "Deleting",
        "status": "True",
        "reason": "WaitingForPreDrainHook",
        "message": f"waiting for hook {HOOK}",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    scene.api.patch_status(*MACHINES, "web", scene.namespace, {"conditions": [waiting]})
    eventually(lambda: HOOK in scene.status["message"], what="the message names what it waits for")
    assert scene.machine()["metadata"]["annotations"][HOOK] == "backup-operator"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        child = scene.child(kind)
        assert child is not None
        assert "deletionTimestamp" not in child["metadata"], "Cluster API still needs it"
    sent = select(writes(control_plane, mark, scene.namespace), resource="machines")
    assert len(select(sent, verbs="patch")) == 1
    scene.let_machine_go()
    scene.wait_gone()
    scene.wait_phase("Terminated", "KillSwitchActivated")
