"""Admission and calendar agree: a schedule that the definition accepts can be evaluated."""

from __future__ import annotations

import itertools
import re
from datetime import date
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.api import InvalidObject, validate
from fivespot.providers.capitalmarkets.provider import PROVIDER
from fivespot.providers.capitalmarkets.spec import CapitalMarketsScheduleSpec
from fivespot.schedule import ScheduleError
from fivespot.schedule.market import read_calendar

Json = dict[str, Any]

ROOT = PROVIDER.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SPEC = ROOT["properties"]["spec"]["properties"]
SESSION = SPEC["sessions"]["items"]["properties"]


def texts(schema: Json) -> st.SearchStrategy[str]:
    """Texts that the field's own rule takes."""
    (pattern,) = (
        found[1]
        for rule in schema["x-kubernetes-validations"]
        if (found := re.search(r"matches\(r'(.*)'\)$", rule["rule"]))
    )
    longest = schema["maxLength"]
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True).filter(lambda text: len(text) <= longest)


days = st.lists(texts(SESSION["daysOfWeek"]["items"]), max_size=2)
hours = st.lists(texts(SESSION["hoursOfDay"]["items"]), max_size=2)
opens, closes = texts(SESSION["open"]), texts(SESSION["close"])
dates = st.dates(date(1000, 1, 1), date(8999, 12, 31)).map(str)
breaks = st.lists(st.fixed_dictionaries({"start": opens, "end": closes}), max_size=1)
sessions = st.one_of(
    st.fixed_dictionaries({}, optional={"daysOfWeek": days, "hoursOfDay": hours}),
    st.fixed_dictionaries(
        {"daysOfWeek": days, "open": opens, "close": closes}, optional={"breaks": breaks, "hoursOfDay": hours}
    ),
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "timezone": st.sampled_from(["UTC", "America/New_York", "Asia/Hong_Kong", "Etc/GMT+12"]),
        "sessions": st.lists(sessions, max_size=2),
        "holidays": st.lists(dates, max_size=2),
        "earlyCloses": st.lists(
            st.fixed_dictionaries(
                {"date": dates}, optional={"closeHour": st.integers(-1, 24), "close": texts(SESSION["open"])}
            ),
            max_size=2,
        ),
        "lateOpens": st.lists(st.fixed_dictionaries({"date": dates, "open": opens}), max_size=2),
        "specialSessions": st.lists(
            st.fixed_dictionaries({"date": dates, "open": opens, "close": closes}, optional={"breaks": breaks}),
            max_size=2,
        ),
        "breaks": st.sampled_from(["Keep", "GiveBack", "keep"]),
    },
)


@settings(max_examples=100)
@given(specs)
def test_the_model_accepts_what_the_calendar_can_read_and_nothing_else(spec: Json) -> None:
    try:
        accepted = validate(CapitalMarketsScheduleSpec, spec)
    except InvalidObject:
        accepted = None
    try:
        read_calendar(spec)
    except ScheduleError:
        assert accepted is None, "admission would take what the provider has to refuse"
    else:
        assert accepted is not None, "admission would refuse what makes sense"


@pytest.mark.parametrize("opens", ["00:00", "09:00", "20:00", "23:59"])
@pytest.mark.parametrize("closes", ["00:00", "00:01", "09:00", "20:00", "24:00"])
def test_breaks_at_the_edges_of_sessions_are_judged_alike(opens: str, closes: str) -> None:
    times = ["00:00", "00:01", "08:59", "09:00", "09:01", "20:00", "23:59", "24:00"]
    taken = 0
    for start, end in itertools.product(times[:-1], times):
        hours = {"open": opens, "close": closes, "breaks": [{"start": start, "end": end}]}
        spec = {"sessions": [{"daysOfWeek": ["mon"], **hours}]}
        agreed = []
        for judge in (partial(validate, CapitalMarketsScheduleSpec), read_calendar):
            try:
                judge(spec)
            except (InvalidObject, ScheduleError):
                agreed.append(False)
            else:
                agreed.append(True)
        assert agreed[0] == agreed[1], hours
        taken += agreed[0]
    assert taken > 0 or opens in {closes, "23:59"}


def test_defaults_of_the_model_are_those_of_the_reader() -> None:
    read = validate(CapitalMarketsScheduleSpec, {}).model_dump(by_alias=True, exclude_none=True)
    assert read_calendar(read) == read_calendar({})
