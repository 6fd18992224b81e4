"""B2.5: Cluster API drains the node, for as long as the ScheduledMachine says, and not at all when it says so.

Cluster API looks at a drain again every 20 seconds, which is why all of these run at once.
"""

from __future__ import annotations

import pytest

from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds for three looks at a drain, and something over."""
AT_ONCE = 15.0
"""Seconds, by the server's log, that show that nothing was waited for: less than Cluster API needs to look a second
time."""
POD = "work"
"""The name of the Pod and of its budget."""
VOLUME = "kubernetes.io/csi/example.com^data"


def attach_volume(scenario: LiveScenario) -> None:
    """Report an attached volume as kubelet and the attach/detach controller do."""
    attached = {"volumesAttached": [{"name": VOLUME, "devicePath": ""}], "volumesInUse": [VOLUME]}
    scenario.api.patch_status("v1", "Node", scenario.node_name, None, attached)


def cordoned(scenario: LiveScenario, node: str) -> bool:
    found = scenario.node(node)
    return found is not None and found["spec"].get("unschedulable") is True


@pytest.mark.contract("B2.5")
def test_a_disruption_budget_holds_the_drain_until_the_timeout(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("budget"))
    scenario.run(nodeDrainTimeout="15s")
    scenario.pod()
    scenario.budget()
    node = scenario.node_name
    scenario.active(False)
    scenario.wait_deleting("DrainingNode")
    # The message names the Pod and the budget.
    scenario.wait_message(f"Pod {scenario.namespace}/{POD}.*disruption budget {POD}")
    assert scenario.status["phase"] == "ShuttingDown"
    assert cordoned(scenario, node)
    infrastructure = scenario.child(scenario.infrastructure)
    assert infrastructure is not None
    assert "deletionTimestamp" not in infrastructure["metadata"], "still needed by what runs on it"
    scenario.wait_phase("Inactive", timeout=TICKS)
    scenario.wait_gone()
    assert scenario.pod_phase() in {"Running", "gone"}, "never evicted: it went down with its node"


@pytest.mark.contract("B2.5")
def test_a_drain_continues_once_the_budget_allows_it(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("allowed"))
    scenario.run(nodeDrainTimeout="10m")
    scenario.pod()
    scenario.budget()
    scenario.active(False)
    scenario.wait_deleting("DrainingNode")
    assert scenario.pod_phase() == "Running"
    scenario.api.delete("policy/v1", "PodDisruptionBudget", "work", scenario.namespace)
    scenario.until(lambda: scenario.pod_phase() == "gone", TICKS, what="the Pod is evicted at the next look")


@pytest.mark.contract("B2.5")
def test_pods_without_a_budget_are_evicted(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("evicted"))
    scenario.run(nodeDrainTimeout="10m")
    scenario.pod()
    scenario.active(False)
    scenario.until(lambda: scenario.pod_phase() == "gone", TICKS, what="the Pod is evicted")
    scenario.wait_phase("Inactive", timeout=TICKS)
    scenario.wait_gone()


@pytest.mark.contract("B2.5")
def test_a_pod_that_does_not_end_is_named(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("endless"))
    scenario.run(nodeDrainTimeout="15s")
    scenario.pod(ends="never")
    scenario.active(False)
    scenario.wait_message(f"Pod {scenario.namespace}/{POD}.*deletionTimestamp", TICKS)
    scenario.wait_phase("Inactive", timeout=TICKS)
    scenario.wait_gone()


@pytest.mark.contract("B2.5")
def test_a_drain_timeout_of_zero_skips_the_drain_and_the_wait_for_volumes(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("undrained"))
    scenario.run(nodeDrainTimeout="0s")
    scenario.pod()
    scenario.budget()
    attach_volume(scenario)
    node = scenario.node_name
    mark = environment.plane.audit_log.mark()
    scenario.active(False)
    scenario.wait_phase("Inactive", timeout=TICKS)
    assert scenario.seconds_to_unmake(mark, user=MANAGER_USER, verb="delete") < AT_ONCE
    scenario.wait_gone()
    assert scenario.node(node) is None
    assert scenario.pod_phase() in {"Running", "gone"}, "it was not asked to go"


@pytest.mark.contract("B2.5")
def test_an_attached_volume_is_waited_for_until_the_timeout(environment: Environment) -> None:
    """The counterpart of the test of `0s`, which would otherwise pass without any wait for volumes."""
    scenario = LiveScenario(environment, environment.namespace("volume"))
    scenario.run(nodeDrainTimeout="15s")
    attach_volume(scenario)
    scenario.active(False)
    scenario.wait_deleting("WaitingForVolumeDetach")
    scenario.wait_message("[Vv]olume")
    scenario.wait_phase("Inactive", timeout=TICKS)
    scenario.wait_gone()
