"""B6.2 with the real Cluster API: a pause stops fivespot and Cluster API."""

from __future__ import annotations

import pytest

from controlplane import ApiError
from support.environment import Environment
from support.live_scenario import LiveScenario, machine_condition
from support.machines import MACHINE

pytestmark = pytest.mark.together

PAUSED = "cluster.x-k8s.io/paused"


def pause_cluster(environment: Environment, scenario: LiveScenario, *, paused: bool) -> None:
    """Returns when Cluster API has seen it: its Machine controller reads the same cache of Clusters."""
    environment.api.patch(*environment.clusters, "prod", scenario.namespace, {"spec": {"paused": paused}})

    def seen() -> bool:
        cluster = environment.api.get(*environment.clusters, "prod", scenario.namespace)
        return machine_condition(cluster, "Paused").get("status") == str(paused)

    scenario.until(seen, what="Cluster API knows of the pause" if paused else "Cluster API knows of its end")
    if not paused:
        touch(scenario)


def touch(scenario: LiveScenario) -> None:
    """Have Cluster API look at the Machine, unless it is gone.

    Its Machine controller does not notice the end of a Cluster's pause (1.14): it looks again at its next full pass,
    hours later, or when something touches the Machine.
    """
    try:
        scenario.annotate_machine(**{"example.com/resumed": ""})
    except ApiError as error:
        if error.status != 404:
            raise


def pause_object(environment: Environment, scenario: LiveScenario, *, paused: bool) -> None:
    note = {PAUSED: "" if paused else None}
    environment.api.patch(*MACHINE, scenario.name, scenario.namespace, {"metadata": {"annotations": note}})


def pause_machine(environment: Environment, scenario: LiveScenario, *, paused: bool) -> None:
    scenario.annotate_machine(**{PAUSED: "" if paused else None})


@pytest.mark.contract("B6.2")
@pytest.mark.parametrize(
    "pause", [pause_cluster, pause_object, pause_machine], ids=["cluster", "scheduledmachine", "machine"]
)
def test_a_paused_machine_is_kept_and_deleted_once_unpaused(environment: Environment, pause: object) -> None:
    assert callable(pause)
    scenario = LiveScenario(environment, environment.namespace("paused"))
    machine = scenario.run()
    pause(environment, scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "Paused")
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    assert scenario.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    pause(environment, scenario, paused=False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.wait_gone()


@pytest.mark.contract("B6.2")
def test_a_kill_during_a_pause_is_requested_and_completes_once_cluster_api_is_unpaused(
    environment: Environment,
) -> None:
    scenario = LiveScenario(environment, environment.namespace("killed"))
    scenario.run()
    pause_cluster(environment, scenario, paused=True)
    scenario.wait_condition("Paused", "True")
    scenario.edit(killSwitch=True)
    scenario.until(lambda: "deletionTimestamp" in scenario.machine()["metadata"], what="the Machine is being deleted")
    assert len(scenario.present()) == 3, "Cluster API holds still"
    pause_cluster(environment, scenario, paused=False)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.wait_gone()
