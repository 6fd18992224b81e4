"""B1 where Cluster API takes part: replacement, loss, grace, disabling, a change of kind."""

from __future__ import annotations

from functools import partial

import pytest

from controlplane import ApiError
from fivespot.testing.clusterapi import SIMULATED_EARLIER
from support.environment import Environment
from support.live_scenario import LiveScenario, seconds_between

pytestmark = pytest.mark.together

BRAKE = 60.0
"""Seconds within which a replacement comes: it waits for ten."""


@pytest.mark.contract("B1.3", "B7.1")
def test_a_machine_that_someone_deletes_is_drained_and_replaced_after_a_delay(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("deleted"))
    before = scenario.run(script={"delete": "Never"})
    node = scenario.node_name
    scenario.api.delete(*scenario.machines, scenario.name, scenario.namespace)
    scenario.wait_phase("ShuttingDown", "MachineDeleting")
    scenario.wait_message(scenario.family.machine.kind)
    deleted = scenario.machine()["metadata"]["deletionTimestamp"]
    scenario.rescript(delete="Succeed")
    machine = scenario.wait_ready(BRAKE, after=before)
    assert seconds_between(deleted, machine["metadata"]["creationTimestamp"]) >= 9, "whole seconds hide one"
    assert scenario.node(node) is None
    assert scenario.status["replacements"]["count"] == 1
    assert scenario.condition("SpotScheduleResolved")["status"] == "True"


@pytest.mark.contract("B1.6", "B7.1")
def test_a_lost_machine_is_reported_and_replaced_once_its_objects_are_deleted(environment: Environment) -> None:
    """The garbage collector deletes the bootstrap and infrastructure objects of a deleted Machine."""
    scenario = LiveScenario(environment, environment.namespace("vanished"))
    before = scenario.run()
    scenario.annotate_machine(**{"cluster.x-k8s.io/paused": ""})
    scenario.until(
        lambda: scenario.machine_condition("Paused").get("status") == "True", what="Cluster API lets go of it"
    )
    scenario.until(partial(_vanish, scenario), what="the Machine vanishes")
    scenario.until(lambda: scenario.events("MachineLost"), what="the loss is told")
    scenario.wait_ready(BRAKE, after=before)
    assert scenario.status["replacements"]["count"] == 1
    assert len(scenario.present()) == 3


@pytest.mark.contract("B1.6", "B7.1")
def test_a_machine_whose_objects_are_deleted_before_provisioning_is_replaced(environment: Environment) -> None:
    """Cluster API waits for them for ever, and nobody else recreates them."""
    scenario = LiveScenario(environment, environment.namespace("unbegun"))
    scenario.create(script={"create": "Never"})
    scenario.until(lambda: _phase(scenario) == "Provisioning", what="the Machine waits for its infrastructure")
    before = scenario.machine()
    scenario.api.delete(*scenario.infrastructure, scenario.name, scenario.namespace)
    scenario.until(lambda: _uid(scenario) not in {"", before["metadata"]["uid"]}, BRAKE, what="another Machine")
    assert scenario.status["replacements"]["count"] == 1
    scenario.rescript(create="Succeed")
    scenario.wait_ready()


def _vanish(scenario: LiveScenario) -> bool:
    """Delete the Machine while nothing holds it: Cluster API puts its finalizer back, also under a pause."""
    bare = {"metadata": {"finalizers": None}}
    version = scenario.api.patch(*scenario.machines, scenario.name, scenario.namespace, bare)["metadata"][
        "resourceVersion"
    ]
    try:
        scenario.api.delete(*scenario.machines, scenario.name, scenario.namespace, version=version)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _phase(scenario: LiveScenario) -> str:
    phase: str = (scenario.find_machine() or {}).get("status", {}).get("phase", "")
    return phase


def _uid(scenario: LiveScenario) -> str:
    uid: str = (scenario.find_machine() or {}).get("metadata", {}).get("uid", "")
    return uid


@pytest.mark.contract("B1.9", "B1.13", "B1.20")
def test_disabling_includes_a_grace_period_in_which_nothing_changes(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("grace"))
    machine = scenario.run(gracefulShutdownTimeout="1h")
    scenario.edit(enabled=False)
    status = scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    assert status["nextCleanup"] > status["shutdownRequestedTime"]
    scenario.edit(enabled=True)
    scenario.wait_phase("Active", "MachineReady")
    assert scenario.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    scenario.edit(enabled=False, gracefulShutdownTimeout="1s")
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    scenario.wait_gone()


@pytest.mark.contract("B1.5", "B2.3")
def test_after_a_change_of_kind_the_next_machine_uses_it_and_nothing_of_the_old_kind_is_left(
    environment: Environment,
) -> None:
    scenario = LiveScenario(environment, environment.namespace("kinds"), family=environment.families[0])
    if environment.family is SIMULATED_EARLIER:
        pytest.skip("this release of Cluster API knows one contract only")
    before = scenario.run()
    later = LiveScenario(environment, scenario.namespace, family=SIMULATED_EARLIER)
    body = later.body()["spec"]
    scenario.edit(bootstrapSpec=body["bootstrapSpec"], infrastructureSpec=body["infrastructureSpec"])
    scenario.wait_condition("UpToDate", "False", "TemplateChanged")
    assert scenario.machine()["metadata"]["uid"] == before["metadata"]["uid"], (
        "nothing changes before the next activation"
    )
    scenario.active(False)
    scenario.wait_phase("Inactive")
    scenario.wait_gone()
    scenario.active(True)
    later.wait_ready()
    assert later.condition("UpToDate")["status"] == "True"
    assert len(later.present()) == 3
    assert scenario.present() == ["Machine"], "none of the old kinds"


@pytest.mark.contract("B2.4")
def test_a_kind_whose_deletion_cluster_api_would_never_complete_is_refused_before_creation(
    environment: Environment,
) -> None:
    scenario = LiveScenario(environment, environment.namespace("unlabelled"))
    unlabelled = {"apiVersion": scenario.infrastructure[0], "kind": "UnlabelledMachine", "spec": {}}
    scenario.create(infrastructureSpec=unlabelled)
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert "contract label" in status["message"]
    assert scenario.present() == []
    scenario.edit(infrastructureSpec={"kind": scenario.infrastructure[1]})
    scenario.wait_ready()


@pytest.mark.contract("B1.14", "B1.15")
def test_the_kill_switch_removes_the_machine_and_clearing_it_creates_a_new_one(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("switch"))
    before = scenario.run()
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.wait_gone()
    scenario.edit(killSwitch=False)
    scenario.wait_ready(after=before)
    assert "replacements" not in scenario.status
