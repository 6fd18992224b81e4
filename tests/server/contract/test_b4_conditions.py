"""B4.3 and B4.4: the other conditions, and how conditions are kept."""

from __future__ import annotations

from typing import Any

import pytest

from support import eventually
from support.machines import MACHINE, bootstrap, infrastructure
from support.scene import MACHINES, Scene

HASH = "5spot.finos.org/template-hash"
LONG_AGO = "2020-02-02T02:02:02Z"


@pytest.mark.contract("B4.3")
def test_scheduled_names_the_verdict_and_who_decided(scene: Scene) -> None:
    scene.create()
    found = scene.wait_condition("Scheduled", "False", "ScheduleInactive")
    assert f"{scene.provider.kind}/hours" in found["message"]
    scene.active(True)
    found = scene.wait_condition("Scheduled", "True", "ScheduleActive")
    assert f"{scene.provider.kind}/hours" in found["message"]
    scene.edit(enabled=False)
    found = scene.wait_condition("Scheduled", "False", "ScheduleDisabled")
    assert "spec.enabled" in found["message"]
    scene.edit(killSwitch=True)
    found = scene.wait_condition("Scheduled", "False", "KillSwitchActivated")
    assert "spec.killSwitch" in found["message"]
    assert scene.status["inSchedule"] is True, "the verdict before precedence is shown beside it"


@pytest.mark.contract("B4.3")
def test_up_to_date_compares_the_machine_with_the_spec(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    assert scene.condition("UpToDate") == {}, "there is no machine to compare"
    scene.active(True)
    scene.wait_made()
    scene.wait_condition("UpToDate", "True")
    for edit in (
        {"infrastructureSpec": infrastructure(spec={"size": "small"})},
        {"bootstrapSpec": bootstrap(spec={"version": "2"})},
        {"machineTemplate": {"labels": {"team": "a"}}},
        {"nodeDrainTimeout": "7m"},
    ):
        before = {field: scene.get()["spec"].get(field) for field in edit}
        scene.edit(**edit)
        found = scene.wait_condition("UpToDate", "False", "TemplateChanged")
        assert "next activation" in found["message"]
        scene.api.patch(
            *MACHINE,
            scene.name,
            scene.namespace,
            [_put_back(field, value) for field, value in before.items()],
            how="json",
        )
        scene.wait_condition("UpToDate", "True")
    scene.edit(priority=77, gracefulShutdownTimeout="1s")
    eventually(lambda: scene.status["observedGeneration"] == scene.get()["metadata"]["generation"], what="it is seen")
    assert scene.condition("UpToDate")["status"] == "True", "the machine is not made from these"
    scene.api.patch(*MACHINES, scene.name, scene.namespace, {"metadata": {"annotations": {HASH: None}}})
    scene.wait_condition("UpToDate", "Unknown", "NoTemplateHash")
    scene.active(False)
    scene.wait_phase("Inactive")
    assert scene.condition("UpToDate") == {}


def _put_back(field: str, value: Any) -> dict[str, Any]:
    change = {"op": "remove"} if value is None else {"op": "replace", "value": value}
    return {**change, "path": f"/spec/{field}"}


@pytest.mark.contract("B4.3")
def test_paused_is_there_while_it_applies(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    assert scene.condition("Paused") == {}
    scene.api.patch(
        *MACHINE, scene.name, scene.namespace, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    )
    scene.wait_condition("Paused", "True", "Paused")
    scene.api.patch(
        *MACHINE, scene.name, scene.namespace, {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}}
    )
    eventually(lambda: scene.condition("Paused") == {}, what="it goes")


@pytest.mark.contract("B4.3")
def test_fields_that_are_kept_but_not_acted_on_are_listed_and_told_once(scene: Scene) -> None:
    scene.create(killIfCommands=["java"], kata={"kind": "ConfigMap", "name": "kata"})
    found = scene.wait_condition("UnsupportedFields", "True")
    assert "killIfCommands" in found["message"]
    assert "kata" in found["message"]
    assert "kubeconfigSecretRef" not in found["message"]
    assert scene.get()["spec"]["killIfCommands"] == ["java"]
    scene.edit(kubeconfigSecretRef={"name": "kubeconfig"})
    eventually(
        lambda: "kubeconfigSecretRef" in scene.condition("UnsupportedFields")["message"], what="it is listed too"
    )
    assert scene.wait_phase("Inactive")["phase"] == "Inactive", "and all else goes on"
    eventually(lambda: [e["type"] for e in scene.events("UnsupportedFields")] == ["Warning"], what="one Warning")
    scene.edit(killIfCommands=None, kata=None, kubeconfigSecretRef=None)
    eventually(lambda: scene.condition("UnsupportedFields") == {}, what="it goes")
    assert len(scene.events("UnsupportedFields")) == 1


@pytest.mark.contract("B4.4")
def test_a_conditions_time_moves_only_with_its_status(scene: Scene) -> None:
    scene.create(gracefulShutdownTimeout="1h")
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")
    begun = scene.get()["metadata"]["creationTimestamp"]
    assert all(c["lastTransitionTime"] >= begun for c in scene.status["conditions"])
    # Had they been written long ago, only a change of status may touch them.
    _date_all(scene, LONG_AGO)
    scene.active(False)
    scene.wait_phase("ShuttingDown", "GracePeriodActive")
    times = _times(scene)
    assert times.pop("Scheduled") >= begun, "True became False"
    assert set(times.values()) == {LONG_AGO}, "Ready and Reconciling changed their reason and message alone"
    scene.active(True)
    scene.wait_phase("Active", "MachineCreated")
    scene.node_ready()
    scene.wait_condition("Ready", "True")
    times = _times(scene)
    assert min(times.pop("Scheduled"), times.pop("Ready"), times.pop("MachineReady")) >= begun
    assert set(times.values()) == {LONG_AGO}
    assert "Reconciling" not in times


@pytest.mark.contract("B4.4")
def test_observed_generation_is_that_of_the_spec_that_was_looked_at(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    for priority in (1, 2):
        generation = scene.edit(priority=priority)["metadata"]["generation"]
        eventually(lambda generation=generation: scene.status["observedGeneration"] == generation, what="it is seen")  # type: ignore[misc]
        assert {c["observedGeneration"] for c in scene.status["conditions"]} == {generation}
    scene.active(True)
    scene.wait_phase("Active")
    assert scene.status["observedGeneration"] == generation, "no edit of the spec, no new generation"


@pytest.mark.contract("B4.4")
def test_conditions_of_other_writers_survive(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive")
    theirs = {
        "type": "example.com/Audited",
        "status": "False",
        "reason": "NotYet",
        "message": "somebody else's",
        "lastTransitionTime": LONG_AGO,
        "observedGeneration": 1,
    }
    conditions = [theirs, *scene.status["conditions"]]
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, {"conditions": conditions})
    scene.active(True)
    scene.wait_phase("Active", "MachineCreated")
    assert scene.condition("example.com/Audited") == theirs
    scene.active(False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert scene.condition("example.com/Audited") == theirs


def _times(scene: Scene) -> dict[str, str]:
    return {c["type"]: c["lastTransitionTime"] for c in scene.status["conditions"]}


def _date_all(scene: Scene, time: str) -> None:
    dated = [{**c, "lastTransitionTime": time} for c in scene.status["conditions"]]
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, {"conditions": dated})
