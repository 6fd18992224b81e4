"""B3 and B6.1 with all the real controllers and the admission policy: every deletion completes without help."""

from __future__ import annotations

import pytest

from support.environment import Environment
from support.live_scenario import LiveScenario
from support.machines import MACHINE

pytestmark = pytest.mark.together

TICKS = 75.0
"""Seconds for three looks at a drain, and something over."""
FINALIZER = "5spot.finos.org/scheduledmachine"


def wait_all_gone(scenario: LiveScenario, timeout: float = 30.0) -> None:
    """Wait until the ScheduledMachine is gone, and check that none of its objects is left at that moment."""
    scenario.until(lambda: scenario.find() is None, timeout, what="the ScheduledMachine is gone")
    assert scenario.present() == [], "the finalizer came off last"


def pause(scenario: LiveScenario, value: str | None) -> None:
    note = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}
    scenario.api.patch(*MACHINE, scenario.name, scenario.namespace, note)


@pytest.mark.contract("B3.2")
def test_background_deletion_drains_the_machine_and_removes_the_scheduled_machine_last(
    environment: Environment,
) -> None:
    scenario = LiveScenario(environment, environment.namespace("background"))
    scenario.run(gracefulShutdownTimeout="1h", nodeDrainTimeout="10m")
    scenario.pod()
    node = scenario.node_name
    scenario.delete()
    scenario.until(lambda: scenario.pod_phase() == "gone", TICKS, what="the Pod is evicted: no grace, but a drain")
    wait_all_gone(scenario, TICKS)
    assert scenario.node(node) is None


@pytest.mark.contract("B3.7")
def test_foreground_deletion_completes(environment: Environment) -> None:
    """Manager and garbage collector both delete the Machine; if the collector is first, the children go at once."""
    scenario = LiveScenario(environment, environment.namespace("foreground"))
    scenario.run(nodeDrainTimeout="1h")
    scenario.pod()
    scenario.delete(propagation="Foreground")
    wait_all_gone(scenario, TICKS)


@pytest.mark.contract("B3.7")
def test_foreground_deletion_by_the_garbage_collector_cuts_the_drain_short(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("collected"))
    scenario.run(nodeDrainTimeout="1h")
    scenario.pod()
    scenario.budget()
    # The collector is first while the manager is delayed.
    pause(scenario, "")
    scenario.wait_condition("Paused", "True")
    scenario.delete(propagation="Foreground")

    def collected() -> bool:
        machine = scenario.find_machine()
        return machine is None or "foregroundDeletion" in machine["metadata"]["finalizers"]

    scenario.until(collected, what="the collector deletes the Machine")
    pause(scenario, None)
    # It deletes the Machine's own children at once, and Cluster API drains no node without infrastructure; a drain that
    # had begun before is looked at again after 20 seconds.
    wait_all_gone(scenario, TICKS)
    assert scenario.pod_phase() in {"Running", "gone"}, "it was not asked to go"


@pytest.mark.contract("B3.2")
def test_orphan_deletion_keeps_the_machine(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("orphan"))
    machine = scenario.run()
    scenario.delete(propagation="Orphan")
    scenario.until(lambda: scenario.find() is None, TICKS, what="the ScheduledMachine is gone")

    def adopted() -> bool:
        owners = scenario.machine()["metadata"].get("ownerReferences", [])
        return [owner["kind"] for owner in owners] == ["Cluster"]

    scenario.until(adopted, what="its Cluster takes the Machine over")
    left = scenario.machine()
    assert left["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in left["metadata"]
    assert len(scenario.present()) == 3


@pytest.mark.contract("B3.6")
def test_deletion_of_a_namespace_with_a_machine_completes(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("ends"))
    scenario.run()
    node = scenario.node_name
    environment.delete_namespace(scenario.namespace)
    scenario.until(
        lambda: environment.api.find("v1", "Namespace", scenario.namespace) is None, TICKS, what="the namespace is gone"
    )
    # Its Cluster is in deletion, for which Cluster API leaves Nodes to the infrastructure provider.
    scenario.until(lambda: scenario.node(node) is None, what="the Node is gone")


@pytest.mark.contract("B6.1")
def test_deletion_of_a_cluster_removes_its_machines_and_completes(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("cluster"))
    scenario.run(gracefulShutdownTimeout="1h", nodeDrainTimeout="1h")
    environment.api.delete(*environment.clusters, "prod", scenario.namespace)
    scenario.wait_gone(TICKS)
    scenario.until(
        lambda: environment.api.find(*environment.clusters, "prod", scenario.namespace) is None,
        TICKS,
        what="the Cluster is gone",
    )
    # The schedule is still active, and there is no Cluster to create the machine in.
    status = scenario.wait_phase("Pending", "ClusterNotFound")
    assert status["inSchedule"] is True
    assert scenario.get()["metadata"]["finalizers"] == [FINALIZER]
    # The Secret with the kubeconfig was not the Cluster's own.
    environment.api.delete("v1", "Secret", "prod-kubeconfig", scenario.namespace)
    environment.create_cluster(scenario.namespace)
    scenario.wait_ready()


@pytest.mark.contract("B6.1")
def test_a_machine_is_created_when_its_missing_cluster_is_created(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("later", cluster=None))
    scenario.create()
    scenario.wait_phase("Pending", "ClusterNotFound")
    assert scenario.present() == []
    environment.create_cluster(scenario.namespace)
    scenario.wait_ready()
