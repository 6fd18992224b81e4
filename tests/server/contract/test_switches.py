"""B8.4: events say who set a switch or an override, as far as the API server recorded it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from controlplane import Api
from support import eventually
from support.machines import SCHEDULE, schedule
from support.scenario import Scenario

pytestmark = pytest.mark.contract("B8.4")

Kubectl = Callable[..., str]

EVER = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}


def notes(api: Api, namespace: str, name: str, reason: str) -> list[str]:
    """The messages of the events about an object with a reason."""
    events = api.list("events.k8s.io/v1", "Event", namespace)
    return [event["note"] for event in events if (event["regarding"]["name"], event["reason"]) == (name, reason)]


def test_a_kill_switch_and_its_end_name_who_set_them(scenario: Scenario, kubectl: Kubectl) -> None:
    api, namespace, name = scenario.api, scenario.namespace, scenario.name
    scenario.create()
    scenario.active(False)
    scenario.wait_phase("Inactive")

    def patch(spec: str, manager: str) -> None:
        kubectl("patch", "sm", name, "-n", namespace, "--type=merge", f"--field-manager={manager}", "-p", spec)

    patch('{"spec":{"killSwitch":true}}', "on-call")
    scenario.wait_phase("Terminated")
    patch('{"spec":{"killSwitch":false}}', "console")
    scenario.wait_phase("Inactive")
    patch('{"spec":{"enabled":false}}', "gitops")
    scenario.wait_phase("Disabled")

    def told() -> bool:
        found = " | ".join(notes(api, namespace, name, "Switched"))
        assert "spec.killSwitch is on, set by on-call at 20" in found, found
        assert "spec.killSwitch is off, set by console at 20" in found, found
        assert "spec.enabled is false, set by gitops at 20" in found, found
        return True

    eventually(told, what="all three are told")


def test_an_override_and_the_switch_of_a_schedule_name_who_set_them(scenario: Scenario, kubectl: Kubectl) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create(schedule("base", namespace, EVER))
    eventually(lambda: api.get(*SCHEDULE, "base", namespace).get("status", {}).get("active") is True, what="it is on")
    entry = {"name": "disk-swap", "active": False, "until": "forever"}
    how = ("patch", "tbss", "base", "-n", namespace, "--type=merge")
    kubectl(*how, "--field-manager=on-call", "-p", json.dumps({"spec": {"overrides": [entry]}}))

    def started() -> bool:
        [found] = notes(api, namespace, "base", "OverrideStarted") or [""]
        assert "override disk-swap holds from" in found, found
        assert "; set by on-call at 20" in found, found
        return True

    eventually(started, what="the override's event")
    kubectl(*how, "--field-manager=cleaner", "-p", '{"spec":{"overrides":null}}')
    eventually(lambda: api.get(*SCHEDULE, "base", namespace)["status"]["active"] is True, what="it is on again")
    kubectl(*how, "--field-manager=console", "-p", '{"spec":{"enabled":false}}')

    def switched() -> bool:
        events = api.list("events.k8s.io/v1", "Event", namespace)
        found = [event["note"] for event in events if event["regarding"]["name"] == "base"]
        assert any("; spec.enabled was set by console at 20" in note for note in found), found
        assert not any("cleaner" in note for note in found), "nobody is recorded for what is removed"
        return True

    eventually(switched, what="the event of the changed verdict")
