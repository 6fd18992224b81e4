"""`spec.overrides` and `status.overrides` as they are stored, and as they are read again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from fivespot.providers.sdk.override_spec import OverrideEntry, read_overrides, read_records, write_records
from fivespot.providers.sdk.overrides import Override, OverrideRecord, OverrideState

START = datetime(2027, 1, 31, 6, 0, tzinfo=UTC)
END = datetime(2027, 1, 31, 18, 0, tzinfo=UTC)
RECORD = OverrideRecord("night", True, OverrideState.IN_FORCE, None, "nextTransition", START, END)


def entry(**fields: Any) -> OverrideEntry:
    return OverrideEntry.model_validate({"name": "night", "active": True, **fields})


def test_an_entry_ends_with_the_next_transition_unless_it_says_otherwise() -> None:
    assert read_overrides([entry()]) == (Override("night", True, None, "nextTransition", ""),)
    assert read_overrides([entry(until="forever", reason="why")]) == (Override("night", True, None, "forever", "why"),)
    both = entry(**{"from": "2027-01-31T07:00:00+01:00"}, until="2027-01-31T18:00:00Z")
    assert read_overrides([both]) == (Override("night", True, START, END, ""),)
    assert read_overrides(None) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "Night"},
        {"name": ""},
        {"until": "tomorrow"},
        {"until": "2027-01-31T18:00:00"},
        {"from": "2027-02-30T00:00:00Z"},
        {"active": "yes"},
    ],
)
def test_an_entry_that_cannot_be_followed_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        entry(**fields)


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        replace(RECORD, until="forever", end=None, open_ended=True),
        replace(RECORD, begin=START, until=END),
        replace(RECORD, end=None, base=False),
        replace(RECORD, end=None, base=True, state=OverrideState.OVERRULED),
        replace(RECORD, active=False, state=OverrideState.EXPIRED),
        replace(RECORD, start=START.replace(microsecond=250_000), end=END.replace(microsecond=1)),
    ],
)
def test_a_record_is_read_as_it_was_written(record: OverrideRecord) -> None:
    assert read_records(write_records([record])) == {"night": record}


@pytest.mark.parametrize(
    "change",
    [
        {"active": "true"},
        {"startedAt": None},
        {"startedAt": "soon"},
        {"state": "Unknown"},
        {"until": 7},
        {"endsAt": "never"},
    ],
)
def test_a_record_that_cannot_be_read_counts_as_lost_and_takes_no_other_along(change: dict[str, Any]) -> None:
    [good, bad] = write_records([replace(RECORD, name="good"), RECORD])
    assert read_records([good, bad | change]).keys() == {"good"}


@pytest.mark.parametrize("stored", [None, "x", {"name": "night"}, [None, 7, "x", {}]])
def test_what_is_no_list_of_records_is_none(stored: Any) -> None:
    assert read_records(stored) == {}
