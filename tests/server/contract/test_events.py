"""B4.7: what people are told, and how much of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ControlPlane
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.measurements import told, total
from support.rbac import may_not_write_events
from support.refusals import machines_refused
from support.scenario import Scenario

FLAPS = 60
FLAPPED = {"ProviderNotReady", "Resolved"}


def heard(scenario: Scenario) -> list[tuple[str, str]]:
    """Type and reason of the events, oldest first."""
    found = sorted(scenario.events(), key=lambda event: str(event["eventTime"]))
    return [(event["type"], event["reason"]) for event in found]


@pytest.mark.contract("B4.7")
def test_each_change_of_phase_is_an_event_of_the_controller(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.hold_machine()
    scenario.active(False)
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    scenario.let_machine_go()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated")
    reasons = [
        "ScheduleInactive",
        "MachineCreated",
        "NodeDraining",
        "ScheduleInactive",
        "Switched",
        "KillSwitchActivated",
    ]
    # The second time that the machine goes to rest is counted on the first event.
    eventually(lambda: len(heard(scenario)) >= len(reasons) - 1, what="the events are written")
    expected = [("Normal", reason) for index, reason in enumerate(reasons) if index != 3]
    found = heard(scenario)
    assert found[:-2] == expected[:-2]
    # In virtual time the last two have the same instant.
    assert sorted(found[-2:]) == sorted(expected[-2:])
    [again] = scenario.events("ScheduleInactive")
    eventually(lambda: scenario.events("ScheduleInactive")[0]["series"]["count"] == 2, what="the repeat is counted")
    assert again["reportingController"] == "5spot-controller"
    assert again["reportingInstance"]
    assert again["regarding"]["uid"] == scenario.get()["metadata"]["uid"]
    assert all(event["note"] for event in scenario.events())


@pytest.mark.contract("B4.7")
def test_a_resolution_lost_and_regained_and_a_refusal_are_told(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive")
    scenario.provider.ready(scenario.namespace, ready="False", reason="Broken", message="no calendar")
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
    eventually(lambda: [e["type"] for e in scenario.events("ProviderNotReady")] == ["Warning"], what="a Warning")
    assert "no calendar" in scenario.events("ProviderNotReady")[0]["note"]
    scenario.provider.ready(scenario.namespace, ready="True")
    scenario.wait_condition("SpotScheduleResolved", "True")
    eventually(lambda: [e["type"] for e in scenario.events("Resolved")] == ["Normal"], what="the good news")
    with machines_refused(scenario.api, scenario.namespace, "CREATE", "no machines on Mondays"):
        scenario.active(True)
        scenario.wait_phase("Error", "MachineCreationFailed")
        eventually(
            lambda: [e["type"] for e in scenario.events("MachineCreationFailed")] == ["Warning"], what="a Warning"
        )
    assert "no machines on Mondays" in scenario.events("MachineCreationFailed")[0]["note"]


@pytest.mark.long
@pytest.mark.contract("B4.7")
@pytest.mark.timeout(180)
def test_a_flapping_provider_cannot_flood_and_lost_events_delay_nothing(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    provider = ProviderKind(api, "Flapping")
    provider.install()
    namespace = make_namespace(api, "flap")
    provider.create(namespace, active=False)
    scenario = Scenario(api, namespace, provider)
    with ManagerProcess(plane) as manager:
        scenario.create()
        scenario.wait_phase("Inactive")
        mark = plane.audit_log.mark()
        for number in range(FLAPS):
            ready = "False" if number % 2 == 0 else "True"
            provider.ready(namespace, ready=ready, reason="Flaps", message=f"flap {number % 6}")
            scenario.wait_condition("SpotScheduleResolved", ready)
        # Every flap was acted on. Three kinds of loss and one return are one event each; their repeats are counted on
        # them, and not with a write each.
        eventually(lambda: all(_count(e) > 1 for e in scenario.events() if e["reason"] in FLAPPED), what="counts")
        kinds = Counter((e["reason"], e["note"]) for e in scenario.events() if e["reason"] in FLAPPED)
        assert set(kinds.values()) == {1}
        assert Counter(reason for reason, _ in kinds) == {"ProviderNotReady": 3, "Resolved": 1}
        requests = told(plane, mark, namespace)
        assert requests["create"] <= 5
        assert requests["patch"] <= 8

        # Without the right to write events all else goes on at once.
        may_not_write_events(api)
        mark = plane.audit_log.mark()
        for active in (True, False) * 4:
            scenario.active(active)
            scenario.wait_phase("Active" if active else "Inactive")
        eventually(lambda: _refused(plane, mark, namespace) > 0, what="an event is refused")
        eventually(lambda: total(manager.metrics(), "fivespot_events_dropped_total") > 0, what="and counted as lost")
        scenario.active(True)
        scenario.wait_phase("Active")


def _count(event: dict[str, Any]) -> int:
    count: int = event.get("series", {}).get("count", 1)
    return count


def _refused(plane: ControlPlane, mark: int, namespace: str) -> int:
    return len(
        [
            event
            for event in plane.audit(since=mark)
            if event["user"]["username"] == MANAGER_USER
            and event["objectRef"].get("resource") == "events"
            and event["objectRef"].get("namespace") == namespace
            and event["responseStatus"]["code"] == 403
        ]
    )
