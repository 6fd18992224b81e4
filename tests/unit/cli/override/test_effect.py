"""The predicted effect of an override, and that it is what the provider then does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.cli.override.effect import Effect, describe, predict
from fivespot.cli.override.schedule import LiveSchedule
from fivespot.providers.registry import shipped_provider
from fivespot.providers.sdk import Override
from fivespot.runtime import Key, Resource

NOW = datetime(2027, 3, 12, 16, 30, tzinfo=UTC)
"""Friday, 17:30 in Berlin."""
CLOSES = datetime(2027, 3, 12, 17, 0, tzinfo=UTC)
EVENING = datetime(2027, 3, 12, 19, 0, tzinfo=UTC)
OFFICE = {"timezone": "Europe/Berlin", "windows": [{"days": ["mon-fri"], "start": "08:00", "end": "18:00"}]}


def schedule(
    spec: Mapping[str, Any], kind: str = "TimeBasedSpotSchedule", status: Mapping[str, Any] | None = None
) -> LiveSchedule:
    resource = Resource(PROVIDER_GROUP, PROVIDER_VERSION, f"{kind.lower()}s", kind)
    metadata = {"name": "hours", "namespace": "prod", "uid": "u", "resourceVersion": "1"}
    return LiveSchedule(resource, Key("prod", "hours"), {"metadata": metadata, "spec": spec, "status": status or {}})


def effect(found: LiveSchedule, override: Override, now: datetime = NOW) -> Effect:
    return predict(found, override, now, found.zone)


def on(until: Any = "nextTransition", **more: Any) -> Override:
    return Override("by-hand", True, NOW, until, **more)


def off(until: Any = "nextTransition", now: datetime = NOW) -> Override:
    return Override("by-hand", False, now, until)


def test_staying_on_past_the_close_needs_a_later_end() -> None:
    found = effect(schedule(OFFICE), on())
    assert not found.changes
    assert found.sentence == (
        "TimeBasedSpotSchedule/hours is active by its own schedule already until Fri 2027-03-12 18:00 Europe/Berlin "
        "(in 30m), and this override would end then too: nothing changes; --for or --until sets a later end"
    )


def test_staying_on_until_the_evening() -> None:
    found = effect(schedule(OFFICE), on(EVENING))
    assert found == Effect(
        True,
        "TimeBasedSpotSchedule/hours stays active until Fri 2027-03-12 20:00 Europe/Berlin (in 2h30m); then it is "
        "inactive by its own schedule",
    )


def test_off_until_the_schedule_itself_opens_again() -> None:
    assert effect(schedule(OFFICE), off()).sentence == (
        "TimeBasedSpotSchedule/hours becomes inactive until Mon 2027-03-15 08:00 Europe/Berlin (in 2d14h): the "
        "override ends at Fri 2027-03-12 18:00 Europe/Berlin (in 30m), and its own schedule is inactive then"
    )


def test_an_end_inside_a_window_hands_over_to_the_schedule() -> None:
    assert effect(schedule(OFFICE), off(NOW + timedelta(minutes=10))).sentence == (
        "TimeBasedSpotSchedule/hours becomes inactive until Fri 2027-03-12 17:40 Europe/Berlin (in 10m); then it is "
        "active by its own schedule"
    )


def test_an_end_before_the_close_changes_nothing() -> None:
    found = effect(schedule(OFFICE), on(NOW + timedelta(minutes=10)))
    assert not found.changes
    assert "this override would end at Fri 2027-03-12 17:40 Europe/Berlin (in 10m)" in found.sentence


def test_a_disabled_schedule_takes_no_overrides() -> None:
    found = effect(schedule({**OFFICE, "enabled": False}), on(EVENING))
    assert not found.changes
    assert "disabled by spec.enabled" in found.sentence
    assert "overrides have no effect" in found.sentence


def test_a_switch_never_changes_by_itself() -> None:
    found = effect(schedule({"enabled": False}, "ManualSchedule"), on())
    assert found.changes
    assert "until the override is removed (fivespot override clear ManualSchedule/hours -n prod)" in found.sentence
    assert "never changes by itself" in found.sentence
    same = effect(schedule({"enabled": True}, "ManualSchedule"), on("forever"))
    assert not same.changes
    assert "changes nothing" in same.sentence


def test_an_override_that_starts_later_takes_over() -> None:
    later = {"name": "freeze", "active": False, "from": "2027-03-12T18:00:00Z", "until": "2027-03-12T22:00:00Z"}
    found = effect(schedule({**OFFICE, "overrides": [later]}), on(EVENING))
    assert found.sentence.endswith(
        "stays active until Fri 2027-03-12 19:00 Europe/Berlin (in 1h30m), when override freeze takes over"
    )


def test_an_override_that_started_later_by_its_own_clock_decides() -> None:
    entry = {"name": "freeze", "active": False, "from": "2027-03-12T16:30:00Z", "until": "forever"}
    found = effect(schedule({**OFFICE, "overrides": [entry]}), on(EVENING))
    assert not found.changes
    assert "override freeze" in found.sentence


def test_an_entry_of_the_same_name_is_replaced() -> None:
    entry = {"name": "by-hand", "active": True, "from": "2027-03-12T10:00:00Z", "until": "2027-03-12T23:00:00Z"}
    found = effect(schedule({**OFFICE, "overrides": [entry]}), on(EVENING))
    assert found.changes
    assert "until Fri 2027-03-12 20:00" in found.sentence


def test_the_status_has_to_do_for_kinds_that_are_not_computed_here() -> None:
    status = {"active": True, "nextTransitionTime": "2027-03-12T17:00:00Z"}
    found = effect(schedule({}, "OfficeHours", status), on())
    assert not found.changes
    assert "until Fri 2027-03-12 17:00 UTC (in 30m)" in found.sentence
    assert effect(schedule({}, "OfficeHours", status), on(EVENING)).sentence == (
        "OfficeHours/hours stays active until Fri 2027-03-12 19:00 UTC (in 2h30m); then it is inactive by its own "
        "schedule"
    )


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"active": True, "conditions": [{"type": "Ready", "status": "False"}]},
        {"active": "yes"},
        {
            "active": True,
            "overrides": [
                {
                    "name": "x",
                    "active": True,
                    "state": "InForce",
                    "until": "forever",
                    "startedAt": "2027-01-01T00:00:00Z",
                }
            ],
        },
    ],
)
def test_without_a_verdict_only_the_end_is_told(status: Mapping[str, Any]) -> None:
    found = effect(schedule({}, "OfficeHours", status), on(EVENING))
    assert found.changes
    assert found.sentence.endswith("until Fri 2027-03-12 19:00 UTC (in 2h30m); then its own schedule decides")


def test_a_base_that_may_change_at_any_time_ends_the_override() -> None:
    found = effect(schedule({"base": {"kind": "X", "name": "y"}}, "ManualSchedule", {"active": False}), on())
    assert found.sentence == "ManualSchedule/hours becomes active until the verdict of its own schedule changes next"


def test_the_remaining_verdict_is_described() -> None:
    assert describe(schedule(OFFICE), [], NOW) == (
        "TimeBasedSpotSchedule/hours is active until Fri 2027-03-12 18:00 Europe/Berlin (in 30m)"
    )
    assert describe(schedule({}, "OfficeHours"), [], NOW) == "OfficeHours/hours follows its own schedule"


@given(
    active=st.booleans(),
    minutes=st.integers(1, 20_000),
    offset=st.integers(0, 10_000),
    other=st.booleans(),
)
def test_an_override_that_changes_nothing_can_be_left_out(active: bool, minutes: int, offset: int, other: bool) -> None:
    """The schedule's verdict at every instant of the override is its own, or it is reported as a change."""
    now = NOW + timedelta(minutes=offset)
    end = now + timedelta(minutes=minutes)
    found = effect(schedule(OFFICE), Override("by-hand", active, now, end if other else "nextTransition"), now)
    provider = shipped_provider("TimeBasedSpotSchedule")
    rule = provider.prepare(provider.model.model_validate(OFFICE))
    until = end if other else provider.decide(rule, now).until  # type: ignore[union-attr]
    assert until is not None
    instants = [now]
    while (change := provider.decide(rule, instants[-1]).until) is not None and change < until:  # type: ignore[union-attr]
        instants.append(change)
    differs = any(provider.decide(rule, at).active is not active for at in instants)  # type: ignore[union-attr]
    assert found.changes is differs
