"""Parsing of stored status, whoever wrote it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.contract import HeldVerdict
from fivespot.controllers.scheduledmachine.cluster_api import ChildRef
from fivespot.controllers.scheduledmachine.stored_status import ReplacementCount, StoredStatus, read_stored_status
from unit.controllers.build import (
    HOURS,
    INFRASTRUCTURE,
    NAME,
    at,
    entries,
    machine_ref,
    ref,
    status,
    stored_status,
)


def test_what_this_controller_wrote_is_remembered() -> None:
    found = stored_status(
        phase="ShuttingDown",
        machineRef=machine_ref(),
        infrastructureRef=ref(INFRASTRUCTURE, "i-1"),
        shutdownRequestedTime=at(minutes=1),
        replacements={"count": 2, "lastTime": at(minutes=3), "uid": "m-0"},
        conditions=entries(("Scheduled", "False", "ScheduleInactive")),
    )
    assert found.phase == "ShuttingDown"
    assert found.schedule == HeldVerdict(True, HOURS)
    assert found.machine_uid == "m-1"
    assert found.bootstrap is None
    assert found.infrastructure == ChildRef(INFRASTRUCTURE.group_kind, NAME, "i-1")
    assert found.shutdown_requested == datetime(2026, 11, 30, 8, 59, tzinfo=UTC)
    assert found.replaced == ReplacementCount(2, datetime(2026, 11, 30, 8, 57, tzinfo=UTC), "m-0")
    assert found.scheduled_reason == "ScheduleInactive"


@pytest.mark.contract("B1.23")
def test_a_status_of_the_existing_5_spot_has_a_verdict_without_reference() -> None:
    assert stored_status(status(None)).schedule == HeldVerdict(True, None)
    assert stored_status({"phase": "Active", "machineRef": {"name": NAME}}).machine_uid == ""


@pytest.mark.parametrize("nothing", [None, {}, [], "up", 5])
def test_no_status_is_no_memory(nothing: Any) -> None:
    assert read_stored_status({"status": nothing}) == StoredStatus()
    assert read_stored_status({}) == StoredStatus()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-11-30",
        "2026-11-30T09:00:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        None,
        5,
        {},
    ],
)
def test_what_is_no_instant_counts_as_absent(text: Any) -> None:
    assert stored_status(shutdownRequestedTime=text).shutdown_requested is None


def test_instants_of_other_offsets_are_the_same_instants() -> None:
    found = stored_status(shutdownRequestedTime="2026-11-30T10:00:00+01:00").shutdown_requested
    assert found == datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "stored",
    [
        *({"count": count, "lastTime": at(), "uid": "m-0"} for count in (-1, 0, 10**9, "2", None, 1.5)),
        {"count": 2, "uid": "m-0"},
        {"count": 2, "lastTime": "soon", "uid": "m-0"},
        "garbage",
    ],
)
def test_a_brake_that_makes_no_sense_is_none(stored: Any) -> None:
    assert stored_status(replacements=stored).replaced == ReplacementCount()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ("spotSchedule", "machineRef", "bootstrapRef", "shutdownRequestedTime", "replacements", "conditions", "phase")


@given(st.dictionaries(st.sampled_from(_FIELDS), json_values))
def test_no_status_makes_the_reader_raise(stored: dict[str, Any]) -> None:
    found = read_stored_status({"status": stored})
    assert isinstance(found.scheduled_reason, str)
    assert found.shutdown_requested is None or found.shutdown_requested.tzinfo is UTC
