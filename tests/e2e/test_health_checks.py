"""B1.8 and B7.1 with Cluster API's own MachineHealthCheck: a marked Machine is replaced after the delay."""

from __future__ import annotations

from typing import Any

import pytest

from support.environment import Environment
from support.live_scenario import LiveScenario, seconds_between

pytestmark = pytest.mark.together

BRAKE_SECONDS = 10.0
"""B7.1: before the first replacement."""


def check_health(environment: Environment, scenario: LiveScenario) -> None:
    """Create a MachineHealthCheck that treats a Node as unhealthy when it is not ready for a second."""
    condition: dict[str, Any] = {"type": "Ready", "status": "False"}
    selector = {"matchLabels": {"5spot.finos.org/scheduled-machine": scenario.name}}
    if environment.core_version == "v1beta2":
        spec: dict[str, Any] = {"checks": {"unhealthyNodeConditions": [{**condition, "timeoutSeconds": 1}]}}
    else:
        spec = {"unhealthyConditions": [{**condition, "timeout": "1s"}], "maxUnhealthy": "100%"}
    environment.api.create(
        {
            "apiVersion": environment.machines[0],
            "kind": "MachineHealthCheck",
            "metadata": {"name": scenario.name, "namespace": scenario.namespace},
            "spec": {"clusterName": "prod", "selector": selector, **spec},
        }
    )


def wait_replacing(scenario: LiveScenario) -> None:
    """Wait until a replacement is counted: the deletion itself may be over between two looks."""
    scenario.until(lambda: scenario.status.get("replacements", {}).get("count") == 1, what="it is being replaced")


@pytest.mark.contract("B1.8")
def test_an_unhealthy_machine_is_replaced_after_the_delay(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("unhealthy"))
    first = scenario.run()
    check_health(environment, scenario)
    scenario.rescript(node={"ready": False})
    wait_replacing(scenario)
    scenario.wait_phase("Pending", "ReplacementDelayed")
    assert scenario.find_machine() is None
    # Events are written beside the status, and may come later.
    scenario.until(lambda: scenario.events("Remediating"), what="people are told")
    second = scenario.wait_ready(60, after=first)
    counted = scenario.status["replacements"]
    assert counted["count"] == 1, "until it has been ready for long"
    waited = seconds_between(counted["lastTime"], second["metadata"]["creationTimestamp"])
    assert waited >= BRAKE_SECONDS - 1
    scenario.until(
        lambda: scenario.machine_condition("HealthCheckSucceeded").get("status") == "True",
        what="the new one is healthy",
    )


@pytest.mark.contract("B1.8")
def test_a_machine_with_the_skip_remediation_annotation_is_kept(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("skipped"))
    machine = scenario.run()
    scenario.annotate_machine(**{"cluster.x-k8s.io/skip-remediation": ""})
    check_health(environment, scenario)
    scenario.rescript(node={"ready": False})
    scenario.wait_condition("MachineReady", "False")
    # A second machine under the same kind of check shows that the check had time to act.
    other = LiveScenario(environment, environment.namespace("beside"))
    other.run()
    check_health(environment, other)
    other.rescript(node={"ready": False})
    wait_replacing(other)
    assert scenario.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    assert scenario.status["phase"] == "Active"
    assert "replacements" not in scenario.status


@pytest.mark.contract("B1.6")
def test_a_machine_that_someone_else_deleted_is_replaced(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("lost"))
    first = scenario.run()
    scenario.api.delete(*scenario.machines, scenario.name, scenario.namespace)
    second = scenario.wait_ready(60, after=first)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert scenario.status["replacements"]["count"] == 1
