"""Taints with the feature gate on, Cluster API down, and Cluster API uninstalled.

One test for three rules, because each needs an environment that no other test can share, and the last one ends it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane import FAST_GATES
from support.environment import Environment
from support.live_scenario import LiveScenario
from support.machines import taint

TAINT = "example.com/spot"


@pytest.mark.contract("B2.7", "B3.4", "B6.4")
@pytest.mark.timeout(300)
def test_taints_reach_the_node_and_outages_of_cluster_api_are_survived(
    own_environment: Callable[..., Environment],
) -> None:
    environment = own_environment(feature_gates={**FAST_GATES, "MachineTaintPropagation": True})
    namespace = environment.namespace("outage")
    running, ending, coming = (LiveScenario(environment, namespace, name) for name in ("running", "ending", "coming"))
    can_taint = environment.core_version == "v1beta2"
    running.create(nodeTaints=[taint(TAINT, value="true"), taint(TAINT, "NoExecute")] if can_taint else [])
    ending.run()
    coming.create(active=False)
    coming.wait_phase("Inactive")
    running.wait_ready()
    if can_taint:
        taints_reach_the_node(running)
    while_its_webhooks_are_down_states_are_held(environment, running, ending, coming)
    environment.plane.cluster_api.start()
    coming.wait_ready(90)
    ending.wait_phase("Inactive", "ScheduleInactive")
    ending.wait_gone()
    without_it_machines_are_errors_and_deletions_end(environment, running, ending, coming)


def taints_reach_the_node(scenario: LiveScenario) -> None:
    def tainted() -> bool:
        node = scenario.node()
        assert node is not None
        found = {(t["key"], t.get("value", ""), t["effect"]) for t in node["spec"].get("taints", [])}
        return {(TAINT, "true", "NoSchedule"), (TAINT, "", "NoExecute")} <= found

    scenario.until(tainted, what="the Node carries the taints")
    # They are to be there always: what somebody takes off comes back.
    scenario.api.patch("v1", "Node", scenario.node_name, None, {"spec": {"taints": []}})
    scenario.until(tainted, what="the Node carries them again")


def while_its_webhooks_are_down_states_are_held(
    environment: Environment, running: LiveScenario, ending: LiveScenario, coming: LiveScenario
) -> None:
    """Nothing here depends on how long it lasts: no waiting time of the contract begins with an outage."""
    before = running.machine()["metadata"]["uid"]
    environment.plane.cluster_api.stop()
    # Nor does a start need the conversion webhook: Machines are read at the version that is stored.
    environment.manager.restart()
    ending.active(False)
    coming.active(True)
    ending.until(lambda: "deletionTimestamp" in ending.machine()["metadata"], what="the deletion is asked for")
    ending.wait_phase("ShuttingDown", "NodeDraining")
    coming.wait_message("webhook", 60)
    assert coming.condition("Reconciling")["status"] == "True", "it passes without anybody's help"
    assert coming.condition("Stalled") == {}
    assert coming.find_machine() is None
    assert running.status["phase"] == "Active"
    assert running.status["ready"] is True
    assert running.machine()["metadata"]["uid"] == before


def without_it_machines_are_errors_and_deletions_end(environment: Environment, *scenarios: LiveScenario) -> None:
    wanted = scenarios[0]
    environment.plane.cluster_api.uninstall()
    # While the definitions go, the message may be about a kind that takes no new objects.
    wanted.wait_message("Cluster API is not installed", 90)
    wanted.wait_phase("Error", "MachineCreationFailed")
    assert wanted.condition("Stalled")["status"] == "True"
    # There can be no children, so nothing holds a deletion.
    for scenario in scenarios:
        scenario.delete()
    for scenario in scenarios:
        scenario.until(lambda scenario=scenario: scenario.find() is None, what=f"{scenario.name} is gone")  # type: ignore[misc]
    assert environment.manager.running
