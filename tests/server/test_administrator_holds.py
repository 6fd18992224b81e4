"""B8.4 on the real server: an administrator's stop by annotation, and a manager that waits for its admission policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, SYSTEM_NAMESPACE, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.scenario import MACHINES, Scenario

pytestmark = [pytest.mark.server, pytest.mark.contract("B8.4")]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
BINDING = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "scheduledmachine-validation")


@pytest.fixture
def plane(own_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A control plane with the rights and without the admission policies."""
    plane = own_control_plane()
    install(plane, definitions=False)
    return plane


@pytest.fixture
def scenario(plane: ControlPlane) -> Scenario:
    """A machine that its schedule wants, not created yet, on a Cluster."""
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    namespace = make_namespace(plane.api, "held")
    provider.create(namespace, active=True)
    return Scenario(plane.api, namespace, provider)


def test_nothing_is_created_until_the_policy_is_bound(plane: ControlPlane, scenario: Scenario) -> None:
    with ManagerProcess(plane, "--enable-leader-election", "--require-admission-policy") as manager:
        scenario.create()
        scenario.wait_phase("Pending", "AdmissionPolicyMissing")
        assert "ValidatingAdmissionPolicy scheduledmachine-validation does not exist" in scenario.status["message"]
        code, text = manager.health("/readyz")
        assert code == 200, "a manager that waits for an administrator is not restarted or replaced"
        assert "[!]admission policy: ValidatingAdmissionPolicy scheduledmachine-validation does not exist" in text
        bound = 'fivespot_admission_policy_bound{policy="scheduledmachine-validation"}'
        assert manager.metrics()[bound] == 0
        assert any(record.get("msg") == "an admission policy is not in force" for record in manager.logs())
        assert plane.api.list(*MACHINES, scenario.namespace) == []
        plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "admission"))
        scenario.wait_made()
        scenario.wait_phase("Active")
        eventually(lambda: manager.health("/readyz")[1] == "ok\n", what="the remark is gone")
        assert manager.metrics()[bound] == 1
        requests = select(plane.audit(), user=MANAGER_USER)
        assert not [event for event in requests if event["responseStatus"]["code"] == 403]


def test_a_binding_that_is_deleted_shows_and_holds_back_the_next_creation(
    plane: ControlPlane, scenario: Scenario
) -> None:
    plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "admission"))
    with ManagerProcess(plane, "--enable-leader-election", "--require-admission-policy") as manager:
        scenario.create(gracefulShutdownTimeout="0s")
        scenario.wait_made()
        plane.api.delete(*BINDING)
        missing = "ValidatingAdmissionPolicyBinding scheduledmachine-validation does not exist"
        eventually(lambda: missing in manager.health("/readyz")[1], 90, what="the missing binding shows")
        assert scenario.machine()["metadata"].get("deletionTimestamp") is None, "what exists stays"


def test_an_annotation_on_the_lease_stops_everything_but_the_kill_switch(
    plane: ControlPlane, scenario: Scenario
) -> None:
    plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "admission"))
    annotate = ("-n", SYSTEM_NAMESPACE, "annotate", "lease", "5spot-leader")
    killed = Scenario(plane.api, scenario.namespace, scenario.provider, "killed")
    with ManagerProcess(plane, "--enable-leader-election") as manager:
        for one in (scenario, killed):
            one.create(gracefulShutdownTimeout="0s")
            one.wait_made()
        plane.kubectl(*annotate, "5spot.finos.org/stop=fire in hall 2")
        words = "stopped by annotation 5spot.finos.org/stop on Lease 5spot-system/5spot-leader: fire in hall 2"
        scenario.wait_condition("Paused", "True")
        [paused] = [found for found in scenario.status["conditions"] if found["type"] == "Paused"]
        assert (paused["reason"], paused["message"]) == ("Stopped", words)
        assert f"[!]stop: {words} (set by kubectl-annotate at " in manager.health("/readyz")[1]
        assert manager.metrics()["fivespot_stopped"] == 1
        scenario.provider.status(scenario.namespace, active=False)
        scenario.wait_phase("ShuttingDown", "Stopped")
        killed.edit(killSwitch=True)
        killed.wait_phase("Terminated")
        assert scenario.machine()["metadata"].get("deletionTimestamp") is None
        event = eventually(lambda: _lease_event(plane, "Stopped"), what="the event about the Lease")
        assert "fire in hall 2 (set by kubectl-annotate at " in event
        manager.restart()
        scenario.wait_phase("ShuttingDown", "Stopped")
        assert scenario.machine()["metadata"].get("deletionTimestamp") is None, "the next leader reads it, too"
        plane.kubectl(*annotate, "5spot.finos.org/stop-")
        scenario.wait_phase("Inactive")
        assert manager.metrics()["fivespot_stopped"] == 0
        assert "the stop has ended" in eventually(lambda: _lease_event(plane, "Resumed"), what="the other event")


def _lease_event(plane: ControlPlane, reason: str) -> str:
    for found in plane.api.list("events.k8s.io/v1", "Event", SYSTEM_NAMESPACE):
        if found["reason"] == reason and found["regarding"]["kind"] == "Lease":
            note: str = found["note"]
            return note
    return ""
