"""B1.7, B1.16, B1.22, B7.1: what happens by itself after a wait, with waits of seconds instead of minutes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from fivespot.controllers.scheduledmachine import Timings
from harness import MANAGER_USER, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.manager import manager_in_process
from support.refusals import machine_quota, right_missing
from support.scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

pytestmark = pytest.mark.first

TIMINGS = Timings(
    refusal_base=1.0,
    refusal_cap=4.0,
    refusal_jitter=0.1,
    # What is looked at while it lasts lasts for longer than a busy machine needs to look.
    reference_grace=6.0,
    replacement_base=1.0,
    replacement_cap=3.0,
    replacement_reset=7.0,
)

Json = dict[str, Any]


@pytest.fixture(scope="module")
def plane(module_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """A server without a manager."""
    plane = module_control_plane()
    install(plane)
    return plane


@pytest.fixture(scope="module")
def played(plane: ControlPlane) -> ProviderKind:
    kind = ProviderKind(plane.api, "Played")
    kind.install()
    return kind


@pytest.fixture
def scenario(request: pytest.FixtureRequest, plane: ControlPlane, played: ProviderKind) -> Scenario:
    """A namespace of this test's own, which stays: the next manager finds it, as any does."""
    namespace = make_namespace(plane.api, request.node.name)
    played.create(namespace, active=False)
    return Scenario(plane.api, namespace, played)


@pytest.fixture
def quick(plane: ControlPlane) -> Iterator[None]:
    """A manager in this process, for which a minute is a second."""
    with manager_in_process(plane, TIMINGS):
        yield


def tries(plane: ControlPlane, since: int, scenario: Scenario, verb: str, resource: str) -> list[datetime]:
    """Return the times of the manager's attempts."""
    events = select(plane.audit(since=since), user=MANAGER_USER, verbs=verb, namespace=scenario.namespace)
    return [datetime.fromisoformat(e["requestReceivedTimestamp"]) for e in select(events, resource=resource)]


@pytest.mark.long
@pytest.mark.contract("B1.7")
@pytest.mark.usefixtures("quick")
def test_a_refused_creation_is_tried_again_after_waits_that_double_up_to_a_limit(
    scenario: Scenario, plane: ControlPlane
) -> None:
    machine_quota(scenario.api, scenario.namespace, 0)
    scenario.create()
    scenario.wait_phase("Inactive")
    mark = plane.audit_log.mark()
    scenario.active(True)
    scenario.wait_phase("Error", "MachineCreationFailed")
    made = eventually(lambda: at_least(5, tries(plane, mark, scenario, "create", "machines")), 30, what="five tries")
    waits = [(after - before).total_seconds() for before, after in pairwise(made)]
    # Each is 1, 2, 4 and 4 seconds, less a tenth at most; how much later it comes depends on the machine.
    for wait, least in zip(waits, (0.9, 1.8, 3.6, 3.6), strict=False):
        assert wait >= least, waits
    machine_quota(scenario.api, scenario.namespace, 1)
    eventually(lambda: scenario.child(MACHINES), 30, what="the Machine, without anybody's doing")
    scenario.wait_phase("Active", "MachineCreated")
    for resource in ("standinbootstraps", "standinmachines"):
        assert len(tries(plane, mark, scenario, "create", resource)) == 1, "what was made is kept for the next try"


def at_least(number: int, found: list[datetime]) -> list[datetime]:
    assert len(found) >= number, found
    return found


@pytest.mark.contract("B1.7")
@pytest.mark.usefixtures("quick")
def test_a_right_that_is_missing_is_named_and_its_return_is_found_out(scenario: Scenario) -> None:
    with right_missing(scenario.api, "create", "infrastructure.cluster.x-k8s.io", "standinmachines") as restore:
        scenario.create()
        scenario.active(True)
        status = scenario.wait_phase("Error", "MachineCreationFailed")
        assert f"create standinmachines.infrastructure.cluster.x-k8s.io {scenario.namespace}/web" in status["message"]
        assert f'User "{MANAGER_USER}" cannot create resource "standinmachines"' in status["message"]
        assert "grant the right to the controller's ServiceAccount (see manifests/rbac)" in status["message"]
        assert scenario.condition("Stalled")["status"] == "True"
        assert scenario.child(MACHINES) is None, "a Machine whose objects are not there would never go"
        restore()
    scenario.wait_made(30)
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Stalled") == {}


@pytest.mark.long
@pytest.mark.contract("B1.7")
@pytest.mark.usefixtures("quick")
def test_two_refusals_at_once_are_one_trouble_that_is_told_once(scenario: Scenario, plane: ControlPlane) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    mark = plane.audit_log.mark()
    with (
        right_missing(scenario.api, "create", "infrastructure.cluster.x-k8s.io", "standinmachines"),
        right_missing(scenario.api, "create", "bootstrap.cluster.x-k8s.io", "standinbootstraps"),
    ):
        scenario.active(True)
        assert "standinbootstraps" in scenario.wait_phase("Error", "MachineCreationFailed")["message"], (
            "the first of them"
        )
        made = eventually(lambda: at_least(4, tries(plane, mark, scenario, "create", "standinbootstraps")), 30)
        waits = [(after - before).total_seconds() for before, after in pairwise(made)]
        for wait, least in zip(waits, (0.9, 1.8, 3.6), strict=False):
            assert wait >= least, f"whichever is answered first, the wait grows: {waits}"
        assert len(tries(plane, mark, scenario, "patch", "scheduledmachines")) == 1, "told once"
    scenario.wait_made(30)


@pytest.mark.contract("B1.16")
@pytest.mark.usefixtures("quick")
def test_a_delete_without_the_right_is_tried_again_by_itself(scenario: Scenario, plane: ControlPlane) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    mark = plane.audit_log.mark()
    with right_missing(scenario.api, "delete", "cluster.x-k8s.io", "machines") as restore:
        scenario.active(False)
        status = scenario.wait_phase("Error", "MachineDeletionFailed")
        assert f'User "{MANAGER_USER}" cannot delete resource "machines"' in status["message"]
        assert "grant the right" in status["message"]
        assert scenario.condition("Stalled")["status"] == "True"
        eventually(lambda: at_least(2, tries(plane, mark, scenario, "delete", "machines")), 30, what="a second try")
        assert scenario.child(BOOTSTRAP) is not None
        assert scenario.child(INFRASTRUCTURE) is not None
        restore()
    scenario.wait_gone(30)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.condition("Stalled") == {}


@pytest.mark.contract("B1.16")
@pytest.mark.usefixtures("quick")
def test_leftovers_that_may_not_be_deleted_are_an_error_and_tried_again(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    with right_missing(scenario.api, "delete", "bootstrap.cluster.x-k8s.io", "standinbootstraps") as restore:
        scenario.edit(killSwitch=True)
        status = scenario.wait_phase("Error", "MachineDeletionFailed")
        assert "delete standinbootstraps.bootstrap.cluster.x-k8s.io" in status["message"]
        eventually(lambda: scenario.child(MACHINES) is None, what="the Machine is gone all the same")
        assert scenario.child(BOOTSTRAP) is not None
        restore()
    scenario.wait_gone(30)
    scenario.wait_phase("Terminated", "KillSwitchActivated")


@pytest.mark.long
@pytest.mark.contract("B1.22")
@pytest.mark.usefixtures("quick")
def test_a_reference_that_does_not_resolve_in_time_takes_the_machine(scenario: Scenario, plane: ControlPlane) -> None:
    scenario.create(gracefulShutdownTimeout="0s")
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    mark = plane.audit_log.mark()
    scenario.edit(schedule=scenario.provider.reference("misspelt"))

    def in_grace() -> dict[str, Any]:
        status = scenario.status
        assert status["phase"] == "ShuttingDown"
        assert "nextCleanup" in status
        return status

    status = eventually(in_grace, what="a grace period")
    begun, due = (datetime.fromisoformat(status[name]) for name in ("shutdownRequestedTime", "nextCleanup"))
    assert due - begun == timedelta(seconds=TIMINGS.reference_grace)
    scenario.wait_gone(30)
    status = scenario.wait_phase("Inactive", "ProviderNotFound")
    assert status["inSchedule"] is False
    assert len(eventually(lambda: scenario.events("ScheduleReferenceUnresolved"), what="a Warning")) == 1
    assert tries(plane, mark, scenario, "delete", "machines")[0] >= due


def lose(scenario: Scenario) -> Json:
    """Make the Machine vanish; status once that was counted."""
    uid = scenario.machine()["metadata"]["uid"]
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)

    def counted() -> Json:
        status = scenario.status
        assert status["replacements"]["uid"] == uid, status
        assert "machineRef" not in status or status["machineRef"]["uid"] != uid, status
        return status

    return eventually(counted, what="the loss is counted")


def due(message: str, number: int) -> datetime:
    """Return the time at which the replacement of that number is announced for."""
    found = re.fullmatch(rf"replacement {number} is created at (\S+); each loss doubles the delay", message)
    assert found is not None, message
    return datetime.fromisoformat(found[1])


def told_due(scenario: Scenario, number: int) -> datetime:
    """The same from its event, which stays: the wait may be over on a busy machine before anybody looks."""
    notes = [event["note"] for event in scenario.events("ReplacementDelayed")]
    [note] = [note for note in notes if note.startswith(f"replacement {number} ")] or [str(notes)]
    return due(note, number)


def noted(status: Json) -> datetime:
    return datetime.fromisoformat(status["replacements"]["lastTime"])


def wait_replaced(scenario: Scenario, not_before: datetime) -> None:
    eventually(lambda: scenario.child(MACHINES), 30, what="a new Machine")
    made = datetime.fromisoformat(scenario.machine()["metadata"]["creationTimestamp"])
    assert made >= not_before, "the server's clock and the manager's are the same here"
    scenario.wait_phase("Active")


def report_ready(scenario: Scenario, *, ready: bool) -> None:
    """Report the Machine ready as Cluster API does, with the time of the change."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "Ready" if ready else "NodeNotReady",
        "message": "",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    scenario.api.patch_status(*MACHINES, scenario.name, scenario.namespace, {"conditions": [condition]})
    eventually(lambda: scenario.status["ready"] is ready, what="it is mirrored")


@pytest.mark.long
@pytest.mark.contract("B7.1")
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("quick")
def test_each_replacement_waits_twice_as_long_until_readiness_has_lasted(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    assert "replacements" not in scenario.status
    for number, seconds in enumerate((1, 2, 3, 3), start=1):
        status = lose(scenario)
        assert status["replacements"]["count"] == number
        end = noted(status) + timedelta(seconds=seconds)
        said = eventually(lambda number=number: told_due(scenario, number), what="when it comes")  # type: ignore[misc]
        assert said == end, "doubled, up to the limit"
        assert status["phase"] == ("Active" if "machineRef" in status else "Pending")
        wait_replaced(scenario, end)
    warnings = [event["note"] for event in scenario.events("MachineLost")]
    told = {note.split("(")[1].split(")")[0] for note in warnings}
    assert len(told) == len(warnings) == 4, "one Warning for each Machine"

    # The verdict going down and up is no readiness, and no reason to wait either.
    before = scenario.status["replacements"]
    scenario.active(False)
    scenario.wait_gone()
    assert scenario.wait_phase("Inactive")["replacements"] == before
    scenario.active(True)
    scenario.wait_made()
    assert scenario.wait_phase("Active")["replacements"] == before

    # Readiness that does not last is none either.
    report_ready(scenario, ready=True)
    report_ready(scenario, ready=False)
    until = time.monotonic() + TIMINGS.replacement_reset
    eventually(lambda: time.monotonic() > until, what="the time that readiness would have had to last")
    generation = scenario.edit(priority=51)["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="a run after that")
    assert scenario.status["replacements"] == before

    report_ready(scenario, ready=True)
    assert scenario.status["replacements"] == before, "not at once"
    eventually(lambda: "replacements" not in scenario.status, 30, what="lasting readiness takes the brake off")
    status = lose(scenario)
    assert status["replacements"]["count"] == 1
    wait_replaced(scenario, noted(status) + timedelta(seconds=1))


@pytest.mark.long
@pytest.mark.contract("B7.1")
def test_the_brake_outlives_the_manager_and_a_loss_during_its_absence_counts(
    scenario: Scenario, plane: ControlPlane
) -> None:
    slow = replace(TIMINGS, replacement_base=10.0, replacement_cap=60.0)
    with manager_in_process(plane, slow):
        scenario.create()
        scenario.active(True)
        scenario.wait_made()
        scenario.wait_phase("Active")
    lost = scenario.machine()["metadata"]["uid"]
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    eventually(lambda: scenario.child(MACHINES) is None, what="the Machine is gone, and nobody sees it")
    with manager_in_process(plane, slow):
        status = scenario.wait_phase("Pending", "ReplacementDelayed")
        assert (status["replacements"]["count"], status["replacements"]["uid"]) == (1, lost)
        end = due(status["message"], 1)
        eventually(lambda: scenario.events("MachineLost"), what="the Warning is written before this manager ends")
    with manager_in_process(plane, slow):
        wait_replaced(scenario, end)
        assert scenario.status["replacements"] == status["replacements"], "counted once"
    assert len(scenario.events("MachineLost")) == 1


@pytest.mark.long
@pytest.mark.contract("B7.1")
@pytest.mark.usefixtures("quick")
def test_the_brake_is_on_for_whoever_deletes_machines_and_off_for_our_own_shutdown(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    for number, seconds in enumerate((1, 2), start=1):
        scenario.hold_machine()
        scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
        status = scenario.wait_phase("ShuttingDown", "MachineDeleting")
        assert status["replacements"]["count"] == number
        end = noted(status) + timedelta(seconds=seconds)
        scenario.let_machine_go()
        wait_replaced(scenario, end)
    # The time that a deletion takes is time in which nothing is made, so it counts as waiting.
    scenario.hold_machine()
    scenario.api.delete(*MACHINES, scenario.name, scenario.namespace)
    status = scenario.wait_phase("ShuttingDown", "MachineDeleting")
    # Killed under way, and cleared: what the others began is counted, what we do is not.
    scenario.edit(killSwitch=True)
    scenario.wait_phase("ShuttingDown", "KillSwitchActivated")
    scenario.let_machine_go()
    scenario.wait_phase("Terminated")
    scenario.edit(killSwitch=False)
    wait_replaced(scenario, noted(status) + timedelta(seconds=3))
    assert scenario.status["replacements"]["count"] == 3
