"""C2: what a CapitalMarketsSchedule says on the real server, and that machines follow it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from fivespot.api import InvalidObject, validate
from fivespot.providers.capitalmarkets.spec import CapitalMarketsScheduleSpec
from harness import ManagerProcess
from support import eventually
from support.machines import MARKET, market, reference
from support.measurements import settle_bill
from support.scenario import Scenario

GROUP = "spotschedules.5spot.finos.org"
REPORT = f"patch {GROUP}/capitalmarketsschedules/status"
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
EVER = {"daysOfWeek": ["mon-sun"], "open": "00:00", "close": "24:00"}
DAY = {"daysOfWeek": ["mon-fri"], "open": "09:30", "close": "16:00"}

Json = dict[str, Any]


def judged(api: Api, namespace: str, name: str) -> Json:
    """The status, once the provider has written it for the newest spec."""

    def found() -> Json:
        obj = api.get(*MARKET, name, namespace)
        status: Json = obj.get("status", {})
        assert status.get("observedGeneration") == obj["metadata"]["generation"], status
        return status

    return eventually(found, what=f"the verdict of {name}")


def ready(status: Json) -> Json:
    [found] = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
    assert isinstance(found, dict)
    return found


SPECIAL = {"date": "2090-06-03", "open": "09:30", "close": "16:00"}

VERDICTS: dict[str, tuple[Json, bool, str | None]] = {
    # As the existing 5-Spot writes it.
    "hours-all": ({"sessions": [ALWAYS], "holidays": [], "earlyCloses": []}, True, None),
    "hours-none": ({"sessions": [{"daysOfWeek": ["mon-sun"], "hoursOfDay": []}]}, False, None),
    "nothing": ({}, False, None),
    "minutes-all": ({"sessions": [EVER]}, True, None),
    "both-forms": (
        {
            "sessions": [
                {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-11"]},
                {"daysOfWeek": ["mon-sun"], "open": "12:00", "close": "24:00"},
            ]
        },
        True,
        None,
    ),
    # A local date: it begins at midnight in Berlin.
    "holiday": (
        {"timezone": "Europe/Berlin", "sessions": [ALWAYS], "holidays": ["2090-06-01"]},
        True,
        "2090-05-31T22:00:00Z",
    ),
    # The close hour is the last that is open; of two entries for a date the first counts.
    "early-close-hour": (
        {
            "timezone": "America/New_York",
            "sessions": [ALWAYS],
            "earlyCloses": [{"date": "2090-06-01", "closeHour": 12}, {"date": "2090-06-01", "closeHour": 2}],
        },
        True,
        "2090-06-01T17:00:00Z",
    ),
    "early-close-minute": (
        {"sessions": [EVER], "earlyCloses": [{"date": "2090-06-01", "close": "14:10"}]},
        True,
        "2090-06-01T14:10:00Z",
    ),
    "late-open": (
        {"sessions": [EVER], "lateOpens": [{"date": "2090-06-01", "open": "10:15"}]},
        True,
        "2090-06-01T00:00:00Z",
    ),
    "special": ({"timezone": "Asia/Kolkata", "specialSessions": [SPECIAL]}, False, "2090-06-03T04:00:00Z"),
    # A special session is stronger than a holiday, an early close and a late open.
    "special-holiday": (
        {
            "holidays": ["2090-06-03"],
            "earlyCloses": [{"date": "2090-06-03", "close": "09:00"}],
            "lateOpens": [{"date": "2090-06-03", "open": "10:00"}],
            "specialSessions": [SPECIAL],
        },
        False,
        "2090-06-03T09:30:00Z",
    ),
    "break-kept": (
        {"sessions": [{**EVER, "breaks": [{"start": "12:00", "end": "13:00"}]}], "breaks": "Keep"},
        True,
        None,
    ),
    # Of a session that begins with its break, given back.
    "break-given-back": (
        {"specialSessions": [{**SPECIAL, "breaks": [{"start": "09:30", "end": "10:05"}]}], "breaks": "GiveBack"},
        False,
        "2090-06-03T10:05:00Z",
    ),
}


@pytest.mark.contract("C2")
def test_every_kind_of_entry_gives_its_verdict_and_the_exact_next_change(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create_many(market(name, namespace, spec) for name, (spec, _, _) in VERDICTS.items())
    found = {name: judged(api, namespace, name) for name in VERDICTS}
    given = {name: (status["active"], status.get("nextTransitionTime")) for name, status in found.items()}
    assert given == {name: (active, until) for name, (_, active, until) in VERDICTS.items()}
    for name, status in found.items():
        assert ready(status)["status"] == "True"
        assert ready(status)["reason"] == ("SessionOpen" if VERDICTS[name][1] else "SessionClosed")
    assert ready(found["early-close-minute"])["message"] == (
        "closes Thu 2090-06-01 14:10 UTC (early close) = 2090-06-01T14:10:00Z"
    )

    def shown() -> dict[str, float]:
        metrics, where = manager.metrics(), f'namespace="{namespace}"'
        return {name: metrics[f'fivespot_capital_markets_active{{name="{name}",{where}}}'] for name in VERDICTS}

    expected = {name: float(active) for name, (_, active, _) in VERDICTS.items()}
    eventually(lambda: shown() == expected, what="the gauges")


@pytest.mark.contract("C2")
def test_a_closure_that_nobody_planned_takes_the_machine_and_its_end_brings_it_back(
    scenario: Scenario, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    """A storm day: the date is added to the holidays while the market is open, and nothing is restarted."""
    api, namespace = scenario.api, scenario.namespace
    api.create(market("exchange", namespace, {"timezone": "Asia/Hong_Kong", "sessions": [ALWAYS]}))
    scenario.create(schedule=reference(kind=MARKET[1], name="exchange"))
    scenario.wait_made()
    before = judged(api, namespace, "exchange")
    mark = control_plane.audit_log.mark()
    # Yesterday and tomorrow too: the test may run over midnight.
    days = [(datetime.now(UTC) + timedelta(hours=8, days=step)).date().isoformat() for step in (-1, 0, 1)]
    api.patch(*MARKET, "exchange", namespace, {"spec": {"holidays": days}})
    scenario.wait_gone()
    closed = judged(api, namespace, "exchange")
    assert (closed["active"], ready(closed)["reason"]) == (False, "SessionClosed")
    assert closed["lastTransitionTime"] >= before["lastTransitionTime"]
    opens = datetime.fromisoformat(days[-1]).replace(tzinfo=UTC) + timedelta(days=1) - timedelta(hours=8)
    assert closed["nextTransitionTime"] == opens.isoformat().replace("+00:00", "Z")
    assert "after holidays" in ready(closed)["message"]

    api.patch(*MARKET, "exchange", namespace, {"spec": {"holidays": []}})
    scenario.wait_made()
    assert judged(api, namespace, "exchange")["active"] is True
    counter = f'fivespot_capital_markets_transitions_total{{name="exchange",namespace="{namespace}"}}'
    eventually(lambda: manager.metrics()[counter] == 2, what="the counter")
    reports = [
        event
        for event in control_plane.audit(since=mark)
        if event["verb"] == "patch"
        and event["objectRef"]["resource"] == "capitalmarketsschedules"
        and event["objectRef"].get("subresource") == "status"
        and event["objectRef"]["namespace"] == namespace
    ]
    assert len(reports) == 2, "one for each flip"


@pytest.mark.contract("C2")
def test_a_steady_market_is_written_once(scenario: Scenario, control_plane: ControlPlane) -> None:
    api, namespace = scenario.api, scenario.namespace
    mark = control_plane.audit_log.mark()
    api.create(market("steady", namespace, {"sessions": [ALWAYS]}))
    judged(api, namespace, "steady")
    api.patch(*MARKET, "steady", namespace, {"metadata": {"annotations": {"example.com/seen": "yes"}}})
    # Another spec with the same verdict: the generation that was observed, and nothing else.
    api.patch(*MARKET, "steady", namespace, {"spec": {"sessions": [EVER]}})
    judged(api, namespace, "steady")
    settle_bill(control_plane, mark, namespace, {REPORT: 2})


@pytest.mark.contract("C2")
def test_a_zone_that_does_not_exist_is_reported_and_active_stays_as_it_was(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create(market("exchange", namespace, {"sessions": [ALWAYS]}))
    good = judged(api, namespace, "exchange")
    assert good["active"] is True
    api.patch(*MARKET, "exchange", namespace, {"spec": {"timezone": "America/NewYork"}})
    bad = judged(api, namespace, "exchange")
    assert (bad["active"], bad["lastTransitionTime"]) == (True, good["lastTransitionTime"])
    assert (ready(bad)["status"], ready(bad)["reason"]) == ("False", "InvalidSpec")
    assert ready(bad)["message"].startswith('spec.timezone: "America/NewYork" is not a time zone')
    assert 'did you mean "America/New_York"?' in ready(bad)["message"]


@pytest.mark.contract("C2")
def test_people_see_the_columns_of_the_existing_5_spot(scenario: Scenario, control_plane: ControlPlane) -> None:
    spec = {"timezone": "Asia/Tokyo", "sessions": [ALWAYS]}
    scenario.api.create(market("exchange", scenario.namespace, spec))
    judged(scenario.api, scenario.namespace, "exchange")
    header, row = control_plane.kubectl("get", "cms", "-n", scenario.namespace).splitlines()
    assert header.split() == ["NAME", "ACTIVE", "TIMEZONE", "NEXTTRANSITION", "AGE"]
    assert row.split()[:3] == ["exchange", "true", "Asia/Tokyo"]
    assert "open, and never closes" in control_plane.kubectl("get", "cms", "-n", scenario.namespace, "-o", "wide")


PAUSE = {"start": "12:00", "end": "13:00"}

REFUSED: dict[str, tuple[Json, str, str]] = {
    "zone": ({"timezone": "W. Europe Standard Time"}, "spec.timezone", "should match"),
    "day": ({"sessions": [{**DAY, "daysOfWeek": ["Mon"]}]}, "spec.sessions[0].daysOfWeek[0]", "lower case"),
    "hour": ({"sessions": [{**ALWAYS, "hoursOfDay": ["9-24"]}]}, "spec.sessions[0].hoursOfDay[0]", "0 to 23"),
    "minutes-as-hours": (
        {"sessions": [{**ALWAYS, "hoursOfDay": ["9:30-16:00"]}]},
        "spec.sessions[0].hoursOfDay[0]",
        "for minutes use start and end",
    ),
    "time": ({"sessions": [{**DAY, "open": "9:30"}]}, "spec.sessions[0].open", '"HH:MM"'),
    "open-at-24": ({"sessions": [{**DAY, "open": "24:00"}]}, "spec.sessions[0].open", "00:00 to 23:59"),
    "no-length": ({"sessions": [{**DAY, "open": "16:00"}]}, "spec.sessions[0]", "start and end must differ"),
    "half": (
        {"sessions": [{"daysOfWeek": ["mon"], "open": "09:30"}]},
        "spec.sessions[0]",
        "a session is either {days, start, end}",
    ),
    "both-forms": (
        {"sessions": [{**DAY, "hoursOfDay": ["9"]}]},
        "spec.sessions[0]",
        "a session is either {days, start, end}",
    ),
    "hours-with-breaks": ({"sessions": [{**ALWAYS, "breaks": [PAUSE]}]}, "spec.sessions[0]", "alone can have breaks"),
    "two-names-of-days": ({"sessions": [{**DAY, "days": ["mon"]}]}, "spec.sessions[0]", "write days alone"),
    "two-names-of-start": ({"sessions": [{**DAY, "start": "09:30"}]}, "spec.sessions[0]", "write start alone"),
    "span-of-a-day": (
        {"sessions": [{**DAY, "from": "mon 17:00", "until": "tue 17:00"}]},
        "spec.sessions[0]",
        "a session is either {days, start, end}",
    ),
    "span-without-length": (
        {"sessions": [{"from": "mon 17:00", "until": "mon 17:00"}]},
        "spec.sessions[0]",
        "from and until must differ",
    ),
    "special-without-end": (
        {"specialSessions": [{"date": "2027-01-04", "start": "09:30"}]},
        "spec.specialSessions[0]",
        "a special session has",
    ),
    "order": (
        {"validFrom": "2027-01-01T00:00:00Z", "validUntil": "2026-01-01T00:00:00Z"},
        "spec",
        "validFrom must be before validUntil",
    ),
    "no-days": ({"sessions": [{"open": "09:30", "close": "16:00"}]}, "spec.sessions[0]", "must name its days"),
    "break-time": (
        {"sessions": [{**DAY, "breaks": [{"start": "noon", "end": "13:00"}]}]},
        "spec.sessions[0].breaks[0].start",
        '"HH:MM"',
    ),
    "break-outside": (
        {"sessions": [{**DAY, "breaks": [PAUSE, {"start": "15:30", "end": "16:30"}]}]},
        "spec.sessions[0]",
        "breaks must lie within the session",
    ),
    "break-before": (
        {"sessions": [{**DAY, "breaks": [{"start": "09:00", "end": "10:00"}]}]},
        "spec.sessions[0]",
        "breaks must lie within the session",
    ),
    "break-of-a-night-outside": (
        {"sessions": [{**DAY, "open": "17:00", "breaks": [{"start": "16:15", "end": "16:30"}]}]},
        "spec.sessions[0]",
        "breaks must lie within the session",
    ),
    "break-backwards": (
        {"specialSessions": [{**SPECIAL, "breaks": [{"start": "13:00", "end": "12:00"}]}]},
        "spec.specialSessions[0]",
        "each must end after it starts",
    ),
    "holiday": ({"holidays": ["2026-12-24", "2026-13-40"]}, "spec.holidays[1]", "a date YYYY-MM-DD that exists"),
    "holiday-with-time": ({"holidays": ["2026-12-24T14:00"]}, "spec.holidays[0]", "a date YYYY-MM-DD that exists"),
    "no-leap-year": ({"holidays": ["2027-02-29"]}, "spec.holidays[0]", "a date YYYY-MM-DD that exists"),
    "early-date": ({"earlyCloses": [{"date": "24.12.2026", "closeHour": 12}]}, "spec.earlyCloses[0].date", "exists"),
    "early-hour": ({"earlyCloses": [{"date": "2026-12-24", "closeHour": 24}]}, "spec.earlyCloses[0].closeHour", "23"),
    "early-time": ({"earlyCloses": [{"date": "2026-12-24", "close": "1pm"}]}, "spec.earlyCloses[0].close", '"HH:MM"'),
    "early-neither": ({"earlyCloses": [{"date": "2026-12-24"}]}, "spec.earlyCloses[0]", "either closeHour"),
    "early-both": (
        {"earlyCloses": [{"date": "2026-12-24", "closeHour": 12, "close": "13:00"}]},
        "spec.earlyCloses[0]",
        "either closeHour",
    ),
    "late-time": ({"lateOpens": [{"date": "2026-12-24", "open": "10"}]}, "spec.lateOpens[0].open", '"HH:MM"'),
    "late-without-time": ({"lateOpens": [{"date": "2026-12-24"}]}, "spec.lateOpens[0].open", "Required"),
    "special-no-length": ({"specialSessions": [{**SPECIAL, "close": "09:30"}]}, "spec.specialSessions[0]", "differ"),
    "breaks": ({"breaks": "giveBack"}, "spec.breaks", "Unsupported value"),
    "many-holidays": ({"holidays": ["2027-01-01"] * 367}, "spec.holidays", "must have at most 366 items"),
}


@pytest.mark.contract("C2")
@pytest.mark.parametrize("case", REFUSED)
def test_what_the_schema_can_tell_is_refused_with_the_field_named(api: Api, case: str) -> None:
    spec, field, part = REFUSED[case]
    with pytest.raises(ApiError) as caught:
        api.create(market("bad", "default", spec), dry_run=True)
    assert caught.value.status == 422
    told = [cause for cause in caught.value.body["details"]["causes"] if cause["field"] == field]
    assert any(part in cause["message"] for cause in told), caught.value.body["message"]
    with pytest.raises(InvalidObject):
        validate(CapitalMarketsScheduleSpec, spec)


ACCEPTED: dict[str, Json] = {
    "empty": {},
    "existing": {
        "timezone": "America/New_York",
        "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-16"]}, {}],
        "holidays": ["2026-12-25", "2026-12-25"],
        "earlyCloses": [{"date": "2026-12-24", "closeHour": 0}, {"date": "2026-12-24", "closeHour": 23}],
    },
    "nights": {
        "sessions": [
            {
                **DAY,
                "open": "17:00",
                "breaks": [{"start": "23:30", "end": "00:30"}, {"start": "15:00", "end": "16:00"}],
            },
            {
                **DAY,
                "close": "24:00",
                "breaks": [{"start": "09:30", "end": "24:00"}, {"start": "23:00", "end": "00:00"}],
            },
        ],
        "breaks": "GiveBack",
    },
    "as much as may be": {
        "sessions": [{**DAY, "daysOfWeek": ["mon-fri"] * 16, "breaks": [PAUSE] * 4}] * 32,
        "holidays": ["2027-01-01"] * 366,
        "earlyCloses": [{"date": "2027-01-01", "close": "13:00"}] * 366,
        "lateOpens": [{"date": "2027-01-01", "open": "13:00"}] * 366,
        "specialSessions": [{**SPECIAL, "breaks": [PAUSE] * 4}] * 366,
    },
}


@pytest.mark.contract("C2")
@pytest.mark.parametrize("case", ACCEPTED)
def test_what_keeps_the_rules_is_taken(api: Api, case: str) -> None:
    spec = ACCEPTED[case]
    created = api.create(market("sample", "default", spec), dry_run=True)["spec"]
    assert {name: created[name] for name in spec} == spec, "nothing is written into what people apply again"
    assert validate(CapitalMarketsScheduleSpec, created) == validate(CapitalMarketsScheduleSpec, spec)


@pytest.mark.contract("C2")
def test_a_status_without_a_verdict_reads_as_inactive_as_in_the_existing_5_spot(api: Api, namespace: str) -> None:
    api.create(market("sample", namespace, {}))
    status = api.patch_status(*MARKET, "sample", namespace, {"observedGeneration": 1})["status"]
    assert status["active"] is False
