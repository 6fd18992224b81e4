"""B2.5 and B2.6 as far as a server without Cluster API shows them: what the Machine is told about draining."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.measurements import writes
from support.scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
}
HOOK = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup"


def told(scenario: Scenario) -> tuple[set[str], dict[str, Any]]:
    """The annotations against draining that the Machine carries, and its limits."""
    machine = scenario.machine()
    return NO_DRAIN & set(machine["metadata"].get("annotations", {})), machine["spec"].get("deletion", {})


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize(("timeout", "seconds"), [("45s", 45), ("5m", 300), ("2h", 7200), ("24h", 86400)])
def test_the_drain_timeout_is_on_the_machine_from_its_creation(scenario: Scenario, timeout: str, seconds: int) -> None:
    scenario.create(nodeDrainTimeout=timeout)
    scenario.active(True)
    scenario.wait_made()
    annotations, limits = told(scenario)
    assert annotations == set()
    assert (limits["nodeDrainTimeoutSeconds"], limits["nodeVolumeDetachTimeoutSeconds"]) == (seconds, seconds)


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize("timeout", ["0s", "0m", "00h"])
def test_a_timeout_of_nothing_means_that_nothing_is_drained(
    scenario: Scenario, control_plane: ControlPlane, timeout: str
) -> None:
    scenario.create(nodeDrainTimeout=timeout)
    scenario.active(True)
    scenario.wait_made()
    annotations, limits = told(scenario)
    assert annotations == NO_DRAIN
    assert not {"nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds"} & set(limits), "0 would mean no limit"
    scenario.hold_machine()
    mark = control_plane.audit_log.mark()
    scenario.active(False)
    status = scenario.wait_phase("ShuttingDown", "NodeDraining")
    assert "without drain" in status["message"]
    sent = eventually(lambda: select(writes(control_plane, mark, scenario.namespace), resource="machines"))
    assert [event["verb"] for event in sent] == ["delete"], "said when it was made, not again"


@pytest.mark.contract("B2.5")
def test_a_machine_of_ours_is_not_told_again_before_its_deletion(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create(nodeDrainTimeout="2m")
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    scenario.edit(nodeDrainTimeout="0s")
    scenario.wait_condition("UpToDate", "False", "TemplateChanged")
    mark = control_plane.audit_log.mark()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    sent = eventually(lambda: select(writes(control_plane, mark, scenario.namespace), resource="machines"))
    assert [event["verb"] for event in sent] == ["delete"]
    assert told(scenario) == (set(), {"nodeDrainTimeoutSeconds": 120, "nodeVolumeDetachTimeoutSeconds": 120})


def undrained(scenario: Scenario) -> bool:
    metadata = scenario.machine()["metadata"]
    return "deletionTimestamp" in metadata and set(metadata.get("annotations", {})) >= NO_DRAIN


@pytest.mark.contract("B2.6")
@pytest.mark.parametrize("when", ["while up", "while draining"])
def test_killed_one_patch_takes_the_drain_away_and_hooks_are_respected(
    scenario: Scenario, control_plane: ControlPlane, when: str
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    scenario.api.patch(*MACHINES, "web", scenario.namespace, {"metadata": {"annotations": {HOOK: "backup-operator"}}})
    # Otherwise the patch may name an older version first, and be one of two.
    scenario.wait_seen()
    if when == "while draining":
        scenario.active(False)
        scenario.wait_phase("ShuttingDown", "NodeDraining")
    mark = control_plane.audit_log.mark()
    scenario.edit(killSwitch=True)
    scenario.wait_phase("ShuttingDown", "KillSwitchActivated")
    eventually(lambda: undrained(scenario), what="deleting, and not to be drained")
    sent = select(writes(control_plane, mark, scenario.namespace), resource="machines")
    assert [event["verb"] for event in sent] == (["patch", "delete"] if when == "while up" else ["patch"])
    # Cluster API waits for the hook and says so; whose it is, is nothing to us.
    waiting = {
        "type": "Deleting",
        "status": "True",
        "reason": "WaitingForPreDrainHook",
        "message": f"waiting for hook {HOOK}",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    scenario.api.patch_status(*MACHINES, "web", scenario.namespace, {"conditions": [waiting]})
    eventually(lambda: HOOK in scenario.status["message"], what="the message names what it waits for")
    assert scenario.machine()["metadata"]["annotations"][HOOK] == "backup-operator"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        child = scenario.child(kind)
        assert child is not None
        assert "deletionTimestamp" not in child["metadata"], "Cluster API still needs it"
    sent = select(writes(control_plane, mark, scenario.namespace), resource="machines")
    assert len(select(sent, verbs="patch")) == 1
    scenario.let_machine_go()
    scenario.wait_gone()
    scenario.wait_phase("Terminated", "KillSwitchActivated")
