"""The status of a schedule: `active` is always set, and times change with the verdict alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.providers.sdk import Verdict
from fivespot.providers.sdk.status import (
    broken_status,
    decided_status,
    only_generations_differ,
    only_messages_differ,
    stored_active,
    stored_overridden,
    stored_since,
)

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)
OPEN = Verdict(True, NOW + timedelta(hours=1), reason="WindowOpen", message="closes 13:00")


def decided(
    status: dict[str, Any] | None = None, verdict: Verdict = OPEN, *, generation: int = 3, now: datetime = NOW
) -> dict[str, Any]:
    return decided_status(status or {}, verdict, generation=generation, now=now)


@pytest.mark.contract("C9")
def test_the_same_verdict_gives_the_same_status_at_any_later_time() -> None:
    first = decided()
    assert decided(first, now=LATER) == first


@pytest.mark.parametrize("active", [True, False])
def test_the_time_of_the_last_change_moves_with_the_verdict_and_with_nothing_else(active: bool) -> None:
    first = decided(verdict=Verdict(active))
    assert first["lastTransitionTime"] == "2026-12-01T12:00:00Z"
    assert decided(first, Verdict(active, message="other words"), now=LATER)["lastTransitionTime"].endswith("12:00:00Z")
    assert decided(first, Verdict(not active), now=LATER)["lastTransitionTime"] == "2026-12-01T12:10:00Z"


@pytest.mark.parametrize(
    ("status", "active"),
    [
        ({}, None),
        ({"active": "true"}, None),
        ({"active": False}, None),
        ({"active": False, "lastTransitionTime": "2026-12-01T12:00:00Z"}, False),
        ({"active": True}, True),
    ],
    ids=["nothing", "no boolean", "the schema's default", "decided", "active"],
)
def test_a_default_of_the_schema_is_no_verdict(status: dict[str, Any], active: bool | None) -> None:
    assert stored_active(status) is active


@pytest.mark.contract("C10")
@pytest.mark.parametrize("before", [True, False])
def test_without_a_verdict_active_stays_as_it_was_and_nothing_is_announced(before: bool) -> None:
    first = decided(verdict=Verdict(before, NOW + timedelta(hours=1)))
    broken = broken_status(first, "InvalidSpec", "spec.timezone: no", generation=4, now=LATER)
    assert broken["active"] is before
    assert broken["nextTransitionTime"] is None
    assert broken["observedGeneration"] == 4
    assert broken["lastTransitionTime"] == first["lastTransitionTime"]
    [ready] = broken["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert ready["lastTransitionTime"] == "2026-12-01T12:10:00Z"


def test_a_schedule_that_never_had_a_verdict_is_not_active_when_it_is_broken() -> None:
    assert broken_status({}, "InvalidSpec", "x", generation=1, now=NOW)["active"] is False
    assert broken_status({"active": "yes"}, "InvalidSpec", "x", generation=1, now=NOW)["active"] is False


def test_messages_are_cut_so_that_they_fit_a_condition() -> None:
    for status in (
        decided(verdict=Verdict(True, message="m" * 5000)),
        broken_status({}, "R", "m" * 5000, generation=1, now=NOW),
    ):
        assert len(status["conditions"][0]["message"]) == 1024


def test_conditions_of_other_writers_survive() -> None:
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for status in (
        decided({"conditions": [theirs]}),
        broken_status({"conditions": [theirs]}, "R", "m", generation=1, now=NOW),
    ):
        assert theirs in status["conditions"]


def test_a_change_of_mere_messages_is_told_apart_from_any_other() -> None:
    first = decided()
    assert only_messages_differ(first, decided(first, Verdict(True, OPEN.until, reason="WindowOpen", message="new")))
    assert not only_messages_differ(first, first)
    assert not only_messages_differ(first, decided(first, Verdict(True, OPEN.until, reason="Other", message="new")))
    assert not only_messages_differ(first, decided(first, Verdict(False, OPEN.until)))
    assert not only_messages_differ(first, decided(first, Verdict(True, LATER, reason="WindowOpen", message="new")))


def test_a_change_of_the_mere_generation_is_told_apart_from_any_other() -> None:
    first = decided()
    assert only_generations_differ(first, decided(first, generation=4))
    assert not only_generations_differ(first, decided(first, Verdict(False, OPEN.until), generation=4))
    assert not only_generations_differ(first, decided(first, Verdict(True, OPEN.until, message="new"), generation=4))


@pytest.mark.parametrize("stored", [None, 7, "yesterday", "2026-12-01"])
def test_a_time_that_is_none_counts_as_unknown(stored: Any) -> None:
    assert stored_since({"lastTransitionTime": stored}) is None
    assert stored_since({}) is None


def test_an_override_shows_in_the_reason() -> None:
    assert stored_overridden(decided(verdict=Verdict(True, reason="Overridden")))
    assert not stored_overridden(decided())
    assert not stored_overridden({"conditions": "none"})
