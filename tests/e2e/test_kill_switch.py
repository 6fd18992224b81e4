"""B2.6: the kill switch skips the drain and the wait for volumes, also a drain in progress; hooks are respected."""

from __future__ import annotations

import pytest

from controlplane.credentials import ADMIN
from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds within which Cluster API looks at a drain again, and something over."""
AT_ONCE = 15.0
"""Seconds, by the server's log, in which it does not look a second time."""
HOOKS = "machine.cluster.x-k8s.io/backup"


def busy(environment: Environment, name: str, **spec: object) -> LiveScenario:
    """A machine with a Pod whose disruption budget forbids eviction."""
    scenario = LiveScenario(environment, environment.namespace(name))
    scenario.run(nodeDrainTimeout="1h", **spec)
    scenario.pod()
    scenario.budget()
    return scenario


@pytest.mark.contract("B1.14", "B2.6")
def test_the_kill_switch_deletes_without_drain_or_grace(environment: Environment) -> None:
    scenario = busy(environment, "killed", gracefulShutdownTimeout="1h")
    volume = "kubernetes.io/csi/example.com^data"
    scenario.api.patch_status(
        "v1", "Node", scenario.node_name, None, {"volumesAttached": [{"name": volume, "devicePath": ""}]}
    )
    mark = environment.plane.audit_log.mark()
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    assert scenario.seconds_to_unmake(mark, user=MANAGER_USER, verb="delete") < AT_ONCE
    scenario.wait_gone()
    assert scenario.pod_phase() in {"Running", "gone"}, "it was not asked to go"
    scenario.edit(killSwitch=False)
    # B1.15
    scenario.wait_ready()


@pytest.mark.contract("B2.6")
def test_the_kill_switch_stops_a_drain_in_progress(environment: Environment) -> None:
    scenario = busy(environment, "midway")
    scenario.active(False)
    scenario.wait_deleting("DrainingNode")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    scenario.wait_gone()
    assert scenario.pod_phase() in {"Running", "gone"}


@pytest.mark.contract("B2.6")
@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (f"pre-drain.delete.hook.{HOOKS}", "WaitingForPreDrainHook"),
        (f"pre-terminate.delete.hook.{HOOKS}", "WaitingForPreTerminateHook"),
    ],
    ids=["pre-drain", "pre-terminate"],
)
def test_lifecycle_hooks_are_respected_and_named(environment: Environment, hook: str, reason: str) -> None:
    scenario = busy(environment, "hook")
    scenario.annotate_machine(**{hook: "backup-operator"})
    scenario.edit(killSwitch=True)
    scenario.wait_deleting(reason)
    scenario.wait_message("backup")
    infrastructure = scenario.child(scenario.infrastructure)
    assert infrastructure is not None
    assert "deletionTimestamp" not in infrastructure["metadata"]
    assert scenario.status["phase"] == "ShuttingDown"
    mark = environment.plane.audit_log.mark()
    scenario.annotate_machine(**{hook: None})
    scenario.wait_phase("Terminated", "KillSwitchActivated", timeout=TICKS)
    assert scenario.seconds_to_unmake(mark, user=ADMIN, verb="patch") < AT_ONCE
    scenario.wait_gone()
