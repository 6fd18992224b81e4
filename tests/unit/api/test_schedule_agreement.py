"""Admission and calendar agree: a schedule that the definition accepts can be evaluated."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.api import InvalidObject, validate
from fivespot.providers.timebased.spec import TimeBasedSpotSchedule, TimeBasedSpotScheduleSpec
from fivespot.runtime.crd import structural_schema
from fivespot.schedule import read_schedule

Json = dict[str, Any]

SPEC = structural_schema(TimeBasedSpotSchedule)["properties"]["spec"]["properties"]


def texts(schema: Json, longest: int) -> st.SearchStrategy[str]:
    """Texts that the field's own rule takes."""
    (pattern,) = (
        found[1]
        for rule in schema["x-kubernetes-validations"]
        if (found := re.search(r"matches\(r'(.*)'\)$", rule["rule"]))
    )
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True).filter(lambda text: len(text) <= longest)


days = st.lists(texts(SPEC["daysOfWeek"]["items"], 128), max_size=3)
hours = st.lists(texts(SPEC["hoursOfDay"]["items"], 128), max_size=3)
window = SPEC["windows"]["items"]["properties"]
start, end, begin, until = (texts(window[name], 32) for name in ("start", "end", "from", "until"))
windows = st.one_of(
    st.fixed_dictionaries(
        {"days": st.lists(texts(window["days"]["items"], 128), min_size=1, max_size=2), "start": start, "end": end}
    ),
    st.fixed_dictionaries({"from": begin, "until": until}),
)
exceptions = st.fixed_dictionaries(
    {"date": st.dates(date(1000, 1, 1), date(8999, 12, 31)).map(str)},
    optional={"windows": st.lists(st.fixed_dictionaries({"start": start, "end": end}), max_size=2)},
)
instants = st.builds(
    lambda day, offset: f"{day}T23:59:59.5{offset}",
    st.dates(date(1000, 1, 1), date(8999, 12, 31)),
    st.sampled_from(["Z", "+05:45", "-23:59"]),
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "daysOfWeek": days,
        "hoursOfDay": hours,
        "timezone": st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12"]),
        "enabled": st.booleans(),
        "windows": st.lists(windows, max_size=3),
        "exceptions": st.lists(exceptions, max_size=3),
        "validFrom": instants,
        "validUntil": instants,
        "leadTime": st.from_regex("0{0,2}[0-9]{1,7}[smh]", fullmatch=True),
        "lagTime": st.from_regex("0{0,2}[0-9]{1,7}[smh]", fullmatch=True),
    },
)


@settings(max_examples=40)
@given(specs)
def test_an_accepted_schedule_can_be_read(spec: Json) -> None:
    try:
        accepted = validate(TimeBasedSpotScheduleSpec, spec)
    except InvalidObject:
        return  # windows without length, dates that occur twice, and so on
    read_schedule(accepted.model_dump(by_alias=True, exclude_none=True))
