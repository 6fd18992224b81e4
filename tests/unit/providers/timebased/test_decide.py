"""Messages of a TimeBasedSpotSchedule."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.api import validate
from fivespot.providers.sdk import Verdict
from fivespot.providers.timebased.provider import decide, prepare
from fivespot.providers.timebased.spec import TimeBasedSpotScheduleSpec

WEEKDAYS = {"windows": [{"days": ["mon-fri"], "start": "08:00", "end": "16:00"}]}
NEVER_AGAIN = {**WEEKDAYS, "validUntil": "2020-01-01T00:00:00Z"}


def verdict(spec: dict[str, Any], at: str) -> Verdict:
    return decide(prepare(validate(TimeBasedSpotScheduleSpec, spec)), datetime.fromisoformat(at).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("spec", "active", "reason", "message"),
    [
        # karpenter#1939: whether a window is what is allowed or what is blocked must not be left to the reader.
        (WEEKDAYS, False, "WindowClosed", "opens Tue 2027-01-05 08:00 UTC = 2027-01-05T08:00:00Z"),
        # azure-docs#9842: both times, so that nobody takes one for the other.
        (
            {**WEEKDAYS, "timezone": "America/Los_Angeles"},
            True,
            "WindowOpen",
            "closes Mon 2027-01-04 16:00 America/Los_Angeles = 2027-01-05T00:00:00Z",
        ),
        ({**WEEKDAYS, "enabled": False}, False, "WindowClosed", "disabled by spec.enabled; no window opens"),
        (NEVER_AGAIN, False, "WindowClosed", "after validUntil; no window opens"),
        (
            {**WEEKDAYS, "validFrom": "2027-01-08T17:00:00Z"},
            False,
            "WindowClosed",
            "before validFrom; opens Mon 2027-01-11 08:00 UTC = 2027-01-11T08:00:00Z",
        ),
        ({"daysOfWeek": ["mon-fri"]}, False, "WindowClosed", "closed, and no window opens"),
        (
            {"windows": [{"days": ["mon-sun"], "start": "00:00", "end": "24:00"}]},
            True,
            "WindowOpen",
            "open, and never closes",
        ),
    ],
)
def test_the_verdict_and_when_it_changes_in_words(
    spec: dict[str, Any], active: bool, reason: str, message: str
) -> None:
    found = verdict(spec, "2027-01-04T20:00")
    assert (found.active, found.reason, found.message) == (active, reason, message)


def test_a_window_wholly_inside_a_jump_of_the_clock_is_told_from_the_jump_on() -> None:
    """librefang#3831: a rule was dropped on the day of the change, and nothing said so."""
    spec = {"timezone": "America/New_York", "windows": [{"days": ["mon-sun"], "start": "02:10", "end": "02:40"}]}
    before, at_the_jump = verdict(spec, "2027-03-13T20:00"), verdict(spec, "2027-03-14T07:00")
    assert (before.notes, before.again) == ((), datetime(2027, 3, 14, 7, tzinfo=UTC))
    (note,) = at_the_jump.notes
    assert (note.reason, note.once) == ("WindowSkipped", "2027-03-14 02:10")
    assert note.message == (
        "the window 02:10-02:40 of 2027-03-14 does not take place: "
        "the clock jumps over all of it at 2027-03-14T07:00:00Z"
    )
    assert verdict(spec, "2027-03-15T06:59").notes == (note,)
    assert verdict(spec, "2027-03-15T07:01").notes == ()


def test_switched_off_is_final_and_nothing_else_is() -> None:
    """No override gives machines to a schedule that is switched off."""
    assert verdict({**WEEKDAYS, "enabled": False}, "2027-01-04T12:00").final
    assert not verdict(WEEKDAYS, "2027-01-04T12:00").final
    assert not verdict(NEVER_AGAIN, "2027-01-04T12:00").final


@pytest.mark.parametrize("at", ["0001-01-01T00:00", "9999-12-31T23:59:59.999999"])
def test_the_first_and_last_instants_have_a_verdict(at: str) -> None:
    assert verdict(WEEKDAYS, at).reason == "WindowClosed"
