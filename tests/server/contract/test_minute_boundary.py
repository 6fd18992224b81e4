"""C1 and C9 at a boundary that really comes: the next full minute, in a zone that is 5 h 45 min away from UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import WRITES, select
from harness import MANAGER_USER
from support import eventually
from support.machines import SCHEDULE, reference, schedule
from support.measurements import received
from support.scenario import CHILDREN, Scenario

ZONE, OFFSET = "Asia/Kathmandu", timedelta(hours=5, minutes=45)
LEAST_AHEAD = timedelta(seconds=15)
"""Time to set everything up before the boundary."""
PROMPT = timedelta(seconds=1)
TRIES = 3
"""Boundaries that are looked at: on a busy machine a process may not be given a CPU at the instant."""


@pytest.mark.long
@pytest.mark.contract("C1", "C9")
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_window_opens_and_another_closes_at_the_full_minute(scenario: Scenario, control_plane: ControlPlane) -> None:
    late: list[dict[str, timedelta]] = []
    while not late or (max(late[-1].values()) >= PROMPT and len(late) < TRIES):
        late.append(_play(scenario, control_plane, len(late)))
    assert max(late[-1].values()) < PROMPT, f"within a second of the boundary: {late}"


def _play(scenario: Scenario, control_plane: ControlPlane, turn: int) -> dict[str, timedelta]:
    """One boundary; how long after it the first creation and the first deletion came."""
    api, namespace = scenario.api, scenario.namespace
    boundary = _next_minute()
    opening, closing, steady = (f"{name}-{turn}" for name in ("opens", "closes", "always"))
    opens, closes = (Scenario(api, namespace, scenario.provider, name) for name in (opening, closing))
    schedules = {
        opening: _window(boundary, boundary + timedelta(hours=2)),
        closing: _window(boundary - timedelta(hours=2), boundary),
        steady: {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]},
    }
    for name, spec in schedules.items():
        api.create(schedule(name, namespace, spec))
    for which in (opens, closes):
        which.create(schedule=reference(name=which.name))
    opens.wait_phase("Inactive", "ScheduleInactive")
    closes.wait_phase("Active", "MachineCreated")
    before = {name: _status(scenario, name) for name in schedules}
    text = boundary.isoformat().replace("+00:00", "Z")
    assert (before[opening]["active"], before[opening]["nextTransitionTime"]) == (False, text)
    assert (before[closing]["active"], before[closing]["nextTransitionTime"]) == (True, text)
    assert before[steady]["active"] is True
    mark = control_plane.audit_log.mark()
    assert datetime.now(UTC) < boundary, "setting up took longer than expected"

    time.sleep(max((boundary - datetime.now(UTC)).total_seconds(), 0))
    opens.wait_phase("Active", "MachineCreated")
    closes.wait_phase("Inactive", "ScheduleInactive")

    def writes(verb: str, name: str) -> list[datetime]:
        events = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs=verb, namespace=namespace)
        kinds = {f"{kind[1].lower()}s" for kind in CHILDREN}
        # The name of what is created is in the body alone.
        return sorted(
            received(event)
            for event in events
            if event["objectRef"]["resource"] in kinds and event["objectRef"].get("name", name) == name
        )

    created, deleted = writes("create", opening), writes("delete", closing)
    assert len(created) == 3
    assert deleted
    late = {"create": created[0] - boundary, "delete": deleted[0] - boundary}
    assert min(late.values()) >= timedelta(0), f"not before the boundary: {late}"

    after = {name: _status(scenario, name) for name in schedules}
    assert after[opening]["active"] is True
    assert after[opening]["conditions"][0]["reason"] == "WindowOpen"
    end = boundary + timedelta(hours=2)
    assert after[opening]["nextTransitionTime"] == end.isoformat().replace("+00:00", "Z")
    assert after[closing]["active"] is False
    assert after[closing]["conditions"][0]["reason"] == "WindowClosed"
    for name in (opening, closing):
        # Decided before it was acted on, and by the whole second.
        flipped = datetime.fromisoformat(after[name]["lastTransitionTime"])
        assert timedelta(0) <= flipped - boundary <= max(late.values())
        assert before[name]["lastTransitionTime"] < after[name]["lastTransitionTime"]

    # C9: until the boundary nothing is written, at it one report for each flip, and for what is steady none.
    assert after[steady] == before[steady]
    events = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs=WRITES, namespace=namespace)
    written = [event for event in events if event["objectRef"]["resource"] != "events"]
    assert min(map(received, written)) >= boundary
    reports = [e["objectRef"]["name"] for e in written if e["objectRef"]["resource"] == "timebasedspotschedules"]
    assert sorted(reports) == [closing, opening]
    return late


def _next_minute() -> datetime:
    soon = datetime.now(UTC) + LEAST_AHEAD
    return soon.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _window(start: datetime, end: datetime) -> dict[str, Any]:
    first, last = ((instant + OFFSET).strftime("%H:%M") for instant in (start, end))
    # Every day: near midnight the window belongs to the day before or after.
    return {"timezone": ZONE, "windows": [{"days": ["mon-sun"], "start": first, "end": last}]}


def _status(scenario: Scenario, name: str) -> dict[str, Any]:
    def found() -> dict[str, Any]:
        status: dict[str, Any] = scenario.api.get(*SCHEDULE, name, scenario.namespace).get("status", {})
        assert "nextTransitionTime" in status or status.get("conditions"), status
        return status

    return eventually(found, what=f"the verdict of {name}")
