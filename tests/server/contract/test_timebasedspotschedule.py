"""C1, C8 to C10: what a TimeBasedSpotSchedule says of specs good and bad, and both calendars where the clock jumps."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from fivespot.controllers.scheduledmachine import Timings
from fivespot.runtime.clock import LoopClock
from harness import MANAGER_USER, ManagerProcess, install
from support import eventually, make_namespace
from support.machines import MARKET, SCHEDULE, market, reference, schedule
from support.manager import manager_in_process
from support.measurements import log_bodies, settle_bill
from support.scenario import MACHINES, Scenario

ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
EVER = {"days": ["mon-sun"], "start": "00:00", "end": "24:00"}
GROUP = "spotschedules.5spot.finos.org"
REPORT = f"patch {GROUP}/timebasedspotschedules/status"

Json = dict[str, Any]


def judged(api: Api, namespace: str, name: str, kind: tuple[str, str] = SCHEDULE) -> Json:
    """The status, once the provider has written it for the newest spec."""

    def found() -> Json:
        obj = api.get(*kind, name, namespace)
        status: Json = obj.get("status", {})
        assert status.get("observedGeneration") == obj["metadata"]["generation"], status
        return status

    return eventually(found, what=f"the verdict of {name}")


def ready(status: Json) -> Json:
    [found] = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
    assert isinstance(found, dict)
    return found


VERDICTS: dict[str, tuple[Json, bool, str | None]] = {
    "hours-all": (ALWAYS, True, None),
    "hours-none": ({"daysOfWeek": ["mon-sun"], "hoursOfDay": []}, False, None),
    "days-none": ({"hoursOfDay": ["0-23"]}, False, None),
    "nothing": ({}, False, None),
    "disabled": ({**ALWAYS, "enabled": False}, False, None),
    "windows-all": ({"windows": [EVER]}, True, None),
    # No flap at a seam: windows that touch, overlap or come from both grammars are one.
    "seams": (
        {
            "daysOfWeek": ["mon-sun"],
            "hoursOfDay": ["0-11"],
            "windows": [{"days": ["mon-sun"], "start": "12:00", "end": "24:00"}],
        },
        True,
        None,
    ),
    "week": (
        {"windows": [{"from": "mon 06:00", "until": "fri 21:00"}, {"from": "fri 20:00", "until": "mon 06:00"}]},
        True,
        None,
    ),
    "not-yet": ({**ALWAYS, "validFrom": "2090-06-01T00:00:00+02:00"}, False, "2090-05-31T22:00:00Z"),
    "until": ({**ALWAYS, "validUntil": "2095-01-01T00:00:00Z"}, True, "2095-01-01T00:00:00Z"),
    "over": ({**ALWAYS, "validUntil": "2020-01-01T00:00:00Z"}, False, None),
    # It looks as far ahead as it has to: the 29th of February 2096 in Berlin, which is no Sunday in most years.
    "far": (
        {
            "timezone": "Europe/Berlin",
            "windows": [{"days": ["mon-sun"], "start": "12:30", "end": "13:00"}],
            "validFrom": "2096-02-29T00:00:00Z",
        },
        False,
        "2096-02-29T11:30:00Z",
    ),
    # leadTime moves the opening, and validFrom clips what it has moved.
    "lead": (
        {
            "windows": [{"days": ["mon-sun"], "start": "00:10", "end": "01:00"}],
            "leadTime": "15m",
            "validFrom": "2090-06-01T12:00:00Z",
        },
        False,
        "2090-06-01T23:55:00Z",
    ),
    "lead-clipped": (
        {
            "windows": [{"days": ["mon-sun"], "start": "00:10", "end": "01:00"}],
            "leadTime": "15m",
            "validFrom": "2090-06-02T00:00:00Z",
        },
        False,
        "2090-06-02T00:00:00Z",
    ),
    # An exception takes the first day away, another one replaces the second.
    "exceptions": (
        {
            "windows": [{"days": ["mon-sun"], "start": "08:00", "end": "18:00"}],
            "exceptions": [
                {"date": "2090-06-01"},
                {"date": "2090-06-02", "windows": [{"start": "10:15", "end": "11:00"}]},
            ],
            "validFrom": "2090-06-01T00:00:00Z",
        },
        False,
        "2090-06-02T10:15:00Z",
    ),
}


@pytest.mark.contract("C1", "C8")
def test_every_kind_of_rule_gives_its_verdict_and_the_exact_next_change(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create_many(schedule(name, namespace, spec) for name, (spec, _, _) in VERDICTS.items())
    found = {name: judged(api, namespace, name) for name in VERDICTS}
    given = {name: (status["active"], status.get("nextTransitionTime")) for name, status in found.items()}
    assert given == {name: (active, until) for name, (_, active, until) in VERDICTS.items()}
    for name, status in found.items():
        condition = ready(status)
        assert condition["status"] == "True", "also of a schedule that is disabled"
        assert condition["reason"] == ("WindowOpen" if VERDICTS[name][1] else "WindowClosed")


@pytest.mark.contract("C8")
def test_the_release_of_the_zone_data_is_told(manager: ManagerProcess) -> None:
    release = importlib.import_module("tzdata").IANA_VERSION
    assert manager.metrics()[f'fivespot_tzdata_info{{release="{release}"}}'] == 1
    assert any(record.get("tzdata") == release for record in manager.logs())


SPRING = datetime(2026, 3, 29, 0, 59, 57, tzinfo=UTC)
"""Three seconds before Berlin's clocks jump from 02:00 to 03:00."""
SLOWLY = 0.2
"""The pace of that clock: the manager has 15 seconds to start, and what it decides within 5 is of the same second."""
OPEN_SECONDS = 60.0
"""More than it takes until the jump."""

AUTUMN = datetime(2026, 10, 25, 1, 19, 0, tzinfo=UTC)
"""02:19 in Berlin for the second time that night: at 03:00 summer time the clocks were set back to 02:00."""


def _sunday(start: str, end: str) -> Json:
    return {"timezone": "Europe/Berlin", "windows": [{"days": ["sun"], "start": start, "end": end}]}


@pytest.mark.long
@pytest.mark.contract("C2", "C8", "C9")
@pytest.mark.timeout(240)
def test_boundaries_where_the_clock_jumps(
    own_control_plane: Callable[..., ControlPlane], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_bodies(monkeypatch, (GROUP, "timebasedspotschedules/status"))
    plane = own_control_plane()
    install(plane)
    api = plane.api
    spring, autumn = make_namespace(api, "spring"), make_namespace(api, "autumn")
    hour = {"timezone": "Europe/Berlin", "daysOfWeek": ["sun"], "hoursOfDay": ["2"]}

    in_spring = {
        "in-the-gap": _sunday("02:30", "04:00"),
        "inside": _sunday("02:10", "02:50"),
        "hour": hour,
        "utc": {"windows": [{"days": ["sun"], "start": "01:00", "end": "01:30"}]},
    }
    for name, spec in in_spring.items():
        api.create(schedule(name, spring, spec))
    # Of a market the same boundary, as the late open of a date and as the end of a break.
    night = {"daysOfWeek": ["sun"], "open": "00:30", "close": "04:00", "breaks": [{"start": "01:00", "end": "02:45"}]}
    late = [{"date": "2026-03-29", "open": "02:20"}]
    in_markets: dict[str, Json] = {"late": {"lateOpens": late}, "break": {"breaks": "GiveBack"}}
    for name, more in in_markets.items():
        api.create(market(name, spring, {"timezone": "Europe/Berlin", "sessions": [night], **more}))
    monkeypatch.setattr("support.manager.SystemClock", lambda: LoopClock(SPRING, speed=SLOWLY))
    with manager_in_process(plane, Timings()):
        for name in in_spring:
            assert judged(api, spring, name)["active"] is False
        assert judged(api, spring, "in-the-gap")["nextTransitionTime"] == "2026-03-29T01:00:00Z", "it opens at the jump"
        for name in ("in-the-gap", "utc"):
            eventually(lambda name=name: judged(api, spring, name)["active"], OPEN_SECONDS, what=f"{name} opens")  # type: ignore[misc]
        assert judged(api, spring, "in-the-gap")["nextTransitionTime"] == "2026-03-29T02:00:00Z"
        assert judged(api, spring, "utc")["nextTransitionTime"] == "2026-03-29T01:30:00Z"
        for name in in_markets:
            eventually(lambda name=name: judged(api, spring, name, MARKET)["active"], what=f"{name} opens")  # type: ignore[misc]
            opened = judged(api, spring, name, MARKET)
            assert opened["lastTransitionTime"] == "2026-03-29T01:00:00Z"
            assert opened["nextTransitionTime"] == "2026-03-29T02:00:00Z"
        # A window that the clock jumps over does not take place, and that is told.
        assert judged(api, spring, "inside")["active"] is False
        assert judged(api, spring, "inside")["nextTransitionTime"] == "2026-04-05T00:10:00Z"
        # It is looked at when the clock jumps, although its verdict does not change then.
        [event] = eventually(lambda: _events(api, spring, "WindowSkipped"), what="the event")
        assert event["regarding"]["name"] == "inside"
        assert "02:10" in event["note"]
        # The whole-hour grammar is membership: there is no hour 2 that night.
        assert judged(api, spring, "hour")["active"] is False
        assert judged(api, spring, "hour")["nextTransitionTime"] == "2026-04-05T00:00:00Z"
    flipped = judged(api, spring, "in-the-gap")
    assert flipped["lastTransitionTime"] == "2026-03-29T01:00:00Z"

    in_autumn = {"again": _sunday("02:15", "02:30"), "once": _sunday("02:30", "04:00"), "hour": hour}
    for name, spec in in_autumn.items():
        api.create(schedule(name, autumn, spec))
    monkeypatch.setattr("support.manager.SystemClock", lambda: LoopClock(AUTUMN))
    with manager_in_process(plane, Timings()):
        verdicts = {name: judged(api, autumn, name) for name in in_autumn}
    given = {name: (status["active"], status["nextTransitionTime"]) for name, status in verdicts.items()}
    assert given == {
        # The clock reads 02:19 for the second time; the window took place the first time.
        "again": (False, "2026-11-01T01:15:00Z"),
        # Opened when the clock first read 02:30, and not closed or opened again since.
        "once": (True, "2026-10-25T03:00:00Z"),
        # An hour that comes twice counts twice.
        "hour": (True, "2026-10-25T02:00:00Z"),
    }

    # C9: every report says `active`, because leaving it out reads as "take the machines away".
    reports = [
        event for event in plane.audit() if event["user"]["username"] == MANAGER_USER and "requestObject" in event
    ]
    assert len(reports) >= len(in_spring) + len(in_autumn) + 2
    assert all(isinstance(event["requestObject"]["status"]["active"], bool) for event in reports)
    assert all(set(event["requestObject"]["metadata"]) == {"uid", "resourceVersion"} for event in reports)


def _events(api: Api, namespace: str, reason: str) -> list[Json]:
    return [event for event in api.list("events.k8s.io/v1", "Event", namespace) if event["reason"] == reason]


REFUSED: dict[str, tuple[Json, str]] = {
    "hour": ({"hoursOfDay": ["9-24"]}, "spec.hoursOfDay[0]"),
    "no hour": ({"hoursOfDay": ["nine"]}, "spec.hoursOfDay[0]"),
    "day": ({"daysOfWeek": ["Mon"]}, "spec.daysOfWeek[0]"),
    "zone": ({"timezone": "W. Europe Standard Time"}, "spec.timezone"),
    "empty window": ({"windows": [{"days": ["mon"], "start": "08:00", "end": "08:00"}]}, "spec.windows[0]"),
    "time": ({"windows": [{"days": ["mon"], "start": "8:00", "end": "09:00"}]}, "spec.windows[0].start"),
    "24:00 as a start": ({"windows": [{"days": ["mon"], "start": "24:00", "end": "09:00"}]}, "spec.windows[0].start"),
    "two forms": ({"windows": [{"days": ["mon"], "start": "08:00", "until": "fri 21:00"}]}, "spec.windows[0]"),
    "moment": ({"windows": [{"from": "monday 06:00", "until": "fri 21:00"}]}, "spec.windows[0].from"),
    "date": ({"exceptions": [{"date": "2026-13-01"}]}, "spec.exceptions[0].date"),
    "no such day": ({"exceptions": [{"date": "2026-02-30"}]}, "spec.exceptions[0].date"),
    "no leap year": ({"exceptions": [{"date": "2027-02-29"}]}, "spec.exceptions[0].date"),
    "date twice": ({"exceptions": [{"date": "2026-12-24"}, {"date": "2026-12-24"}]}, "spec.exceptions[1]"),
    "order": ({"validFrom": "2027-01-01T00:00:00Z", "validUntil": "2026-01-01T00:00:00Z"}, "validFrom must be before"),
    "lead": ({"leadTime": "1h30m"}, "spec.leadTime"),
}


@pytest.mark.contract("C10")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_a_bad_spec_is_refused_when_applied_where_the_schema_can_tell(api: Api, case: str) -> None:
    spec, names = REFUSED[case]
    with pytest.raises(ApiError) as refused:
        api.create(schedule("bad", "default", spec), dry_run=True)
    assert refused.value.status == 422
    assert names in refused.value.body["message"]


REPORTED: dict[str, tuple[Json, list[str]]] = {
    "zone": ({**ALWAYS, "timezone": "Europe/Berlinn"}, ["spec.timezone", "Europe/Berlinn", "Europe/Berlin"]),
    "city-without-zone": ({**ALWAYS, "timezone": "Asia/Mumbai"}, ["spec.timezone", "Asia/Mumbai", "Asia/Kolkata"]),
}


@pytest.mark.contract("C10")
def test_another_bad_spec_is_reported_and_active_stays_as_it_was(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    for name, (spec, words) in REPORTED.items():
        api.create(schedule(name, namespace, spec))
        status = judged(api, namespace, name)
        condition = ready(status)
        assert (condition["status"], condition["reason"]) == ("False", "InvalidSpec")
        assert all(word in condition["message"] for word in words), condition["message"]
        assert status["active"] is False, "it never was"
        assert status.get("nextTransitionTime") is None

    # One that was good, with a machine that follows it, and one beside it that stays good.
    for name in ("spoiled", "sound"):
        api.create(schedule(name, namespace, ALWAYS))
    scenario.create(schedule=reference(name="spoiled"))
    other = Scenario(api, namespace, scenario.provider, "other")
    other.create(schedule=reference(name="sound"))
    scenario.wait_made()
    other.wait_made()
    good = judged(api, namespace, "spoiled")
    beside = judged(api, namespace, "sound")
    uid = scenario.machine()["metadata"]["uid"]
    api.patch(*SCHEDULE, "spoiled", namespace, {"spec": {"timezone": "Mars/Olympus"}})
    spoiled = judged(api, namespace, "spoiled")
    assert spoiled["active"] is True
    assert spoiled["lastTransitionTime"] == good["lastTransitionTime"]
    assert ready(spoiled)["status"] == "False"
    scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
    assert scenario.status["phase"] == "Active"
    assert scenario.machine()["metadata"]["uid"] == uid
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    eventually(lambda: _events(api, namespace, "InvalidSpec"), what="a Warning")

    # The other one is as it was, and goes on.
    assert judged(api, namespace, "sound") == beside
    api.patch(*SCHEDULE, "sound", namespace, {"spec": {"enabled": False}})
    other.wait_gone()
    assert scenario.child(MACHINES) is not None

    # Corrected, it decides again: the bad spec has cost nothing.
    api.patch(*SCHEDULE, "spoiled", namespace, {"spec": {"timezone": "UTC"}})
    scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")
    mended = judged(api, namespace, "spoiled")
    assert (mended["active"], mended["lastTransitionTime"]) == (True, good["lastTransitionTime"])
    assert scenario.machine()["metadata"]["uid"] == uid


@pytest.mark.contract("C9")
def test_a_steady_schedule_is_written_once_and_put_right_when_somebody_else_writes(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    api, namespace = scenario.api, scenario.namespace
    mark = control_plane.audit_log.mark()
    api.create(schedule("steady", namespace, ALWAYS))
    before = judged(api, namespace, "steady")
    assert before["lastTransitionTime"]
    for number in range(3):
        change = {"metadata": {"annotations": {"example.com/seen": str(number)}}}
        api.patch(*SCHEDULE, "steady", namespace, change)
    # The trap of the older schema: a status without `active` reads as false.
    api.patch_status(*SCHEDULE, "steady", namespace, {"active": None, "message": "not ours"})
    eventually(lambda: judged(api, namespace, "steady")["active"], what="it says again what is true")
    after = judged(api, namespace, "steady")
    assert after.get("nextTransitionTime") is None
    edited = {"hoursOfDay": ["0-11", "12-23"]}
    api.patch(*SCHEDULE, "steady", namespace, {"spec": edited})
    final = judged(api, namespace, "steady")
    assert final["lastTransitionTime"] == after["lastTransitionTime"], "another spec, the same verdict"
    # The first verdict, the correction, and the generation that was observed.
    settle_bill(control_plane, mark, namespace, {REPORT: 3})
