"""B4.3 and B4.4: the other conditions, and how conditions are kept."""

from __future__ import annotations

from typing import Any

import pytest

from support import eventually
from support.machines import MACHINE, bootstrap, infrastructure
from support.scenario import MACHINES, Scenario

HASH = "5spot.finos.org/template-hash"
LONG_AGO = "2020-02-02T02:02:02Z"


@pytest.mark.contract("B4.3")
def test_scheduled_names_the_verdict_and_who_decided(scenario: Scenario) -> None:
    scenario.create()
    found = scenario.wait_condition("Scheduled", "False", "ScheduleInactive")
    assert f"{scenario.provider.kind}/hours" in found["message"]
    scenario.active(True)
    found = scenario.wait_condition("Scheduled", "True", "ScheduleActive")
    assert f"{scenario.provider.kind}/hours" in found["message"]
    scenario.edit(enabled=False)
    found = scenario.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert "spec.enabled" in found["message"]
    scenario.edit(killSwitch=True)
    found = scenario.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert "spec.killSwitch" in found["message"]
    assert scenario.status["inSchedule"] is True, "the verdict before precedence is shown beside it"


@pytest.mark.contract("B4.3")
def test_up_to_date_compares_the_machine_with_the_spec(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    assert scenario.condition("UpToDate") == {}, "there is no machine to compare"
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_condition("UpToDate", "True")
    for edit in (
        {"infrastructureSpec": infrastructure(spec={"size": "small"})},
        {"bootstrapSpec": bootstrap(spec={"version": "2"})},
        {"machineTemplate": {"labels": {"team": "a"}}},
        {"nodeDrainTimeout": "7m"},
    ):
        before = {field: scenario.get()["spec"].get(field) for field in edit}
        scenario.edit(**edit)
        found = scenario.wait_condition("UpToDate", "False", "TemplateChanged")
        assert "next activation" in found["message"]
        scenario.api.patch(
            *MACHINE,
            scenario.name,
            scenario.namespace,
            [_put_back(field, value) for field, value in before.items()],
            how="json",
        )
        scenario.wait_condition("UpToDate", "True")
    scenario.edit(priority=77, gracefulShutdownTimeout="1s")
    eventually(
        lambda: scenario.status["observedGeneration"] == scenario.get()["metadata"]["generation"], what="it is seen"
    )
    assert scenario.condition("UpToDate")["status"] == "True", "the machine is not made from these"
    scenario.api.patch(*MACHINES, scenario.name, scenario.namespace, {"metadata": {"annotations": {HASH: None}}})
    scenario.wait_condition("UpToDate", "Unknown", "NoTemplateHash")
    scenario.active(False)
    scenario.wait_phase("Inactive")
    assert scenario.condition("UpToDate") == {}


def _put_back(field: str, value: Any) -> dict[str, Any]:
    change = {"op": "remove"} if value is None else {"op": "replace", "value": value}
    return {**change, "path": f"/spec/{field}"}


@pytest.mark.contract("B4.3")
def test_paused_is_there_while_it_applies(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    assert scenario.condition("Paused") == {}
    scenario.api.patch(
        *MACHINE, scenario.name, scenario.namespace, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    )
    scenario.wait_condition("Paused", "True", "Paused")
    scenario.api.patch(
        *MACHINE, scenario.name, scenario.namespace, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}
    )
    eventually(lambda: scenario.condition("Paused") == {}, what="it goes")


@pytest.mark.contract("B4.3")
def test_fields_that_are_kept_but_not_acted_on_are_listed_and_told_once(scenario: Scenario) -> None:
    scenario.create(killIfCommands=["java"], kata={"kind": "ConfigMap", "name": "kata"})
    found = scenario.wait_condition("UnsupportedFields", "True")
    assert "killIfCommands" in found["message"]
    assert "kata" in found["message"]
    assert "kubeconfigSecretRef" not in found["message"]
    assert scenario.get()["spec"]["killIfCommands"] == ["java"]
    scenario.edit(kubeconfigSecretRef={"name": "kubeconfig"})
    eventually(
        lambda: "kubeconfigSecretRef" in scenario.condition("UnsupportedFields")["message"], what="it is listed too"
    )
    assert scenario.wait_phase("Inactive")["phase"] == "Inactive", "and all else goes on"
    eventually(lambda: [e["type"] for e in scenario.events("UnsupportedFields")] == ["Warning"], what="one Warning")
    scenario.edit(killIfCommands=None, kata=None, kubeconfigSecretRef=None)
    eventually(lambda: scenario.condition("UnsupportedFields") == {}, what="it goes")
    assert len(scenario.events("UnsupportedFields")) == 1


@pytest.mark.contract("B4.4")
def test_a_conditions_time_moves_only_with_its_status(scenario: Scenario) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    begun = scenario.get()["metadata"]["creationTimestamp"]
    assert all(c["lastTransitionTime"] >= begun for c in scenario.status["conditions"])
    # Had they been written long ago, only a change of status may touch them.
    _date_all(scenario, LONG_AGO)
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    times = _times(scenario)
    assert times.pop("Scheduled") >= begun, "True became False"
    assert set(times.values()) == {LONG_AGO}, "Ready and Reconciling changed their reason and message alone"
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.node_ready()
    scenario.wait_condition("Ready", "True")
    times = _times(scenario)
    assert min(times.pop("Scheduled"), times.pop("Ready"), times.pop("MachineReady")) >= begun
    assert set(times.values()) == {LONG_AGO}
    assert "Reconciling" not in times


@pytest.mark.contract("B4.4")
def test_observed_generation_is_that_of_the_spec_that_was_looked_at(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    for priority in (1, 2):
        generation = scenario.edit(priority=priority)["metadata"]["generation"]
        eventually(lambda generation=generation: scenario.status["observedGeneration"] == generation, what="it is seen")  # type: ignore[misc]
        assert {c["observedGeneration"] for c in scenario.status["conditions"]} == {generation}
    scenario.active(True)
    scenario.wait_phase("Active")
    assert scenario.status["observedGeneration"] == generation, "no edit of the spec, no new generation"


@pytest.mark.contract("B4.4")
def test_conditions_of_other_writers_survive(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    theirs = {
        "type": "example.com/Audited",
        "status": "False",
        "reason": "NotYet",
        "message": "somebody else's",
        "lastTransitionTime": LONG_AGO,
        "observedGeneration": 1,
    }
    conditions = [theirs, *scenario.status["conditions"]]
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, {"conditions": conditions})
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("example.com/Audited") == theirs
    scenario.active(False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.condition("example.com/Audited") == theirs


def _times(scenario: Scenario) -> dict[str, str]:
    return {c["type"]: c["lastTransitionTime"] for c in scenario.status["conditions"]}


def _date_all(scenario: Scenario, time: str) -> None:
    dated = [{**c, "lastTransitionTime": time} for c in scenario.status["conditions"]]
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, {"conditions": dated})
