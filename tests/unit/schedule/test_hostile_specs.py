"""No text or value in a spec crashes, hangs or slows the parsers: it is read, or refused with words."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.providers.registry import SHIPPED, shipped_provider
from fivespot.providers.sdk.decider import Decider
from fivespot.schedule import (
    GrammarError,
    load_zone,
    parse_date,
    parse_days,
    parse_duration,
    parse_hours,
    parse_instant,
    parse_moment,
    parse_time,
)
from fivespot.schedule.errors import ScheduleError

Json = dict[str, Any]

PARSERS: dict[str, Callable[[str], object]] = {
    "date": parse_date,
    "days": lambda text: parse_days([text]),
    "duration": parse_duration,
    "hours": lambda text: parse_hours([text]),
    "instant": parse_instant,
    "moment": parse_moment,
    "time": parse_time,
    "zone": load_zone,
}

PARTS = """
mon Monday mo fri weekdays 1-5 on to and - , : . / T 09:00 9am 24:00 0 9 900 99999999999 noon 15m PT15M 1h30 min d + Z
2027-01-04 2026-02-30 1/2/2026 Europe/Berlin CEST UTC-5 UTC * # \u2013 \u0663 \u212a \u0130 e\u0301 \uff11
"""
WORDS = st.sampled_from([*PARTS.split(), " ", "24 Dec 2027", "\0", "\n"])
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=6).map("".join))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_a_parser_reads_a_text_or_refuses_it_with_words(text: str) -> None:
    for parse in PARSERS.values():
        words = "read"
        try:
            parse(text)
        except ScheduleError as error:
            words = str(error)
        assert words


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_a_suggestion_is_a_value_that_the_parser_takes(text: str) -> None:
    for name, parse in PARSERS.items():
        try:
            parse(text)
        except ScheduleError as error:
            suggestion = error.suggestion
        else:
            continue
        if suggestion is not None and suggestion.startswith('"'):
            whole = suggestion.strip('"')
            if name == "moment" and " " not in whole:
                continue  # of the time alone
            parse(whole)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                (
                    *("days", "start", "end", "from", "until", "date", "windows", "open", "close", "breaks", "kind"),
                    *("name", "active", "hoursOfDay", "daysOfWeek", "closeHour", "x"),
                )
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
FIELDS = """
timezone windows daysOfWeek hoursOfDay exceptions validFrom validUntil leadTime lagTime enabled sessions holidays
earlyCloses lateOpens specialSessions breaks base overrides
"""


@pytest.mark.parametrize("kind", sorted(SHIPPED))
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS.split()), VALUES, max_size=4))
def test_a_spec_is_read_or_invalid_and_never_a_failure_of_the_code(kind: str, spec: Json) -> None:
    prepared = Decider(shipped_provider(kind)).prepare("u", 1, spec)
    if prepared.failure is not None:
        assert prepared.failure.reason == "InvalidSpec", prepared.failure.message
        assert prepared.failure.message.startswith("spec")


LONG = 200_000


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "part", ["9", "a", "-", " ", ",", "mon,", "mon-", "1h", "1 ", "+1", "2027-", "T", ":0", "\u0130", "e/"]
)
def test_a_long_text_takes_time_in_proportion_to_its_length(name: str, part: str) -> None:
    text = part * (LONG // len(part))
    began = time.process_time()
    with suppress(GrammarError, ScheduleError):
        PARSERS[name](text)
    # A quadratic scan of it would take minutes.
    assert time.process_time() - began < 2
