"""Messages say what to write instead, in the API server's words and in Python's."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.api import InvalidObject, validate
from fivespot.apiserver.schema.cel_rules import check_rules
from fivespot.apiserver.schema.node import compile_schema
from fivespot.providers.capitalmarkets.spec import CapitalMarketsScheduleSpec
from fivespot.providers.manual.provider import ManualScheduleSpec
from fivespot.providers.sdk.override_spec import OverrideEntry
from fivespot.providers.timebased.spec import TimeBasedSpotScheduleSpec
from fivespot.runtime.crd import structural_schema
from fivespot.schedule import zone_names

Json = dict[str, Any]
WINDOW: Json = {"days": ["mon-fri"], "start": "08:00", "end": "18:00"}


def told(model: type[Any], spec: Json) -> str:
    with pytest.raises(InvalidObject) as caught:
        validate(model, spec)
    return str(caught.value)


def at_apply(model: type[Any], spec: Json) -> str:
    """The messages of the rules of the definition."""
    node = compile_schema(structural_schema(model))
    return "; ".join(cause.message for cause in check_rules(spec, node, "spec"))


BOTH = {
    "15 min": ({"leadTime": "15 min"}, '"15m"'),
    "15min": ({"leadTime": "15min"}, '"15m"'),
    "PT15M": ({"leadTime": "PT15M"}, '"15m"'),
    "900": ({"leadTime": "900"}, '"900s"'),
    "monday": ({"windows": [{**WINDOW, "days": ["monday"]}]}, '"mon"'),
    "Mon-Fri": ({"windows": [{**WINDOW, "days": ["Mon-Fri"]}]}, '"mon-fri"'),
    "weekdays": ({"daysOfWeek": ["weekdays"]}, '"mon-fri"'),
    "9:00": ({"windows": [{**WINDOW, "start": "9:00"}]}, '"09:00"'),
    "9": ({"windows": [{**WINDOW, "start": "9"}]}, '"09:00"'),
    "09.00": ({"windows": [{**WINDOW, "end": "09.00"}]}, '"09:00"'),
    "17:00:00": ({"windows": [{**WINDOW, "end": "17:00:00"}]}, '"17:00"'),
}


@pytest.mark.parametrize(("spec", "right"), BOTH.values(), ids=BOTH)
def test_the_server_and_python_hint_at_the_same_spelling(spec: Json, right: str) -> None:
    hint = f"did you mean {right}?"
    assert hint in told(TimeBasedSpotScheduleSpec, spec)
    assert hint in at_apply(TimeBasedSpotScheduleSpec, spec)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CEST", "is not a time zone: CEST is Central European Summer Time; write an IANA name such as Europe/Berlin"),
        ("cest", "is not a time zone: CEST is Central European Summer Time; write an IANA name such as Europe/Berlin"),
        ("IST", "such as Asia/Kolkata, Europe/Dublin or Asia/Jerusalem"),
        ("UTC-5", "is not a time zone: UTC-5 is an offset, which does not follow summer time"),
        ("+01:00", "is not a time zone: +01:00 is an offset, which does not follow summer time"),
        ("Berlin", "is not a time zone: use a name of the IANA database, such as Europe/Berlin or UTC"),
    ],
)
def test_a_name_that_is_no_zone_is_explained_by_the_server_and_python(name: str, words: str) -> None:
    for model in (TimeBasedSpotScheduleSpec, CapitalMarketsScheduleSpec):
        assert words in told(model, {"timezone": name})
        assert words in at_apply(model, {"timezone": name})


def test_every_zone_is_accepted_by_the_rule() -> None:
    for name in zone_names():
        validate(TimeBasedSpotScheduleSpec, {"timezone": name})
    assert not at_apply(TimeBasedSpotScheduleSpec, {"timezone": "W-SU"})


PYTHON: dict[str, tuple[type[Any], Json, str]] = {
    "text for a list": (TimeBasedSpotScheduleSpec, {"daysOfWeek": "mon-fri"}, "must be a list: write [mon-fri]"),
    "text to quote for a list": (TimeBasedSpotScheduleSpec, {"hoursOfDay": "9-17"}, 'must be a list: write ["9-17"]'),
    "wrong text for a list": (TimeBasedSpotScheduleSpec, {"daysOfWeek": "Monday"}, 'did you mean "mon"?'),
    "number for an hour": (TimeBasedSpotScheduleSpec, {"hoursOfDay": [9]}, '9: must be text: write "9" with quotes'),
    "number for a day": (TimeBasedSpotScheduleSpec, {"daysOfWeek": [1]}, 'did you mean "mon"?'),
    "truth value for a day": (TimeBasedSpotScheduleSpec, {"daysOfWeek": [True]}, "YAML takes on, off, yes, no"),
    "number for a duration": (TimeBasedSpotScheduleSpec, {"leadTime": 900}, 'did you mean "900s"?'),
    "minutes for a time": (
        TimeBasedSpotScheduleSpec,
        {"windows": [{**WINDOW, "start": 540}]},
        "some YAML readers take 9:00 for a number of minutes",
    ),
    "text for a truth value": (TimeBasedSpotScheduleSpec, {"enabled": "on"}, "must be true or false, without quotes"),
    "cron line": (
        TimeBasedSpotScheduleSpec,
        {"windows": "0 9 * * 1-5"},
        "(a cron line is not read, because it says only when something begins) such as {days: [mon-fri],",
    ),
    "text for a window": (TimeBasedSpotScheduleSpec, {"windows": ["mon 08:00"]}, "must be an object such as {days:"),
    "window without a dash": (TimeBasedSpotScheduleSpec, {"windows": WINDOW}, "with a dash in front of each"),
    "date for an exception": (TimeBasedSpotScheduleSpec, {"exceptions": ["2027-01-05"]}, "such as {date: "),
    "number for a date": (CapitalMarketsScheduleSpec, {"holidays": [20270105]}, 'did you mean "2027-01-05"?'),
    "date without zeros": (CapitalMarketsScheduleSpec, {"holidays": ["2027-1-5"]}, 'did you mean "2027-01-05"?'),
    "text for a number": (
        CapitalMarketsScheduleSpec,
        {"earlyCloses": [{"date": "2027-12-24", "closeHour": "13"}]},
        "must be a whole number, without quotes",
    ),
    "wrong case of a choice": (CapitalMarketsScheduleSpec, {"breaks": "giveback"}, 'did you mean "GiveBack"?'),
    "short name of a kind": (ManualScheduleSpec, {"base": {"kind": "tbss", "name": "x"}}, "TimeBasedSpotSchedule?"),
    "text for a base": (ManualScheduleSpec, {"base": "x"}, "such as {kind: TimeBasedSpotSchedule, name: office-hours}"),
    "length of an override": (
        OverrideEntry,
        {"name": "x", "active": True, "until": "2h"},
        "fivespot override --for computes the instant",
    ),
    "case of an override's end": (
        OverrideEntry,
        {"name": "x", "active": True, "until": "next-transition"},
        "did you mean nextTransition?",
    ),
}


@pytest.mark.parametrize(("model", "spec", "words"), PYTHON.values(), ids=PYTHON)
def test_a_value_of_another_form_is_answered_with_the_form_to_write(model: type[Any], spec: Json, words: str) -> None:
    assert words in told(model, spec)
