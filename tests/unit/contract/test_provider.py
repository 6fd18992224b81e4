"""Part A of the contract: how a provider's status is read, however hostile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.contract import Resolved, Unresolved, clean, cut_provider, read_provider


def read(status: Any) -> Resolved | Unresolved:
    body = {"metadata": {"name": "hours", "uid": "u"}, "spec": {"secret": "x"}, "status": status}
    whole = json.dumps(body).encode()
    result = read_provider(whole, name="Hours/hours", generation=3)
    assert read_provider(cut_provider(whole), name="Hours/hours", generation=3) == result
    return result


def ready(status: Any, **more: Any) -> dict[str, Any]:
    return {"type": "Ready", "status": status, **more}


@pytest.mark.parametrize("active", [True, False])
def test_active_is_authoritative_without_a_ready_condition(active: bool) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"conditions": None},
        {"conditions": []},
        {"conditions": [{"type": "Synced"}]},
    )
    for conditions in cases:
        result = read({"active": active, **conditions})
        assert isinstance(result, Resolved)
        assert result.active is active


@pytest.mark.parametrize("active", [True, False])
def test_active_is_authoritative_when_ready_is_true(active: bool) -> None:
    result = read({"active": active, "conditions": [ready("True", reason="WindowOpen", message="until 17:00")]})
    assert isinstance(result, Resolved)
    assert result.active is active
    assert (result.display.reason, result.display.message) == ("WindowOpen", "until 17:00")


@pytest.mark.parametrize("state", ["False", "Unknown", "true", "", None, 1, True, {}, []])
def test_a_ready_condition_that_is_not_true_leaves_the_provider_unresolved(state: Any) -> None:
    result = read({"active": True, "conditions": [ready(state)]})
    assert isinstance(result, Unresolved)
    assert result.reason == "ProviderNotReady"


def test_a_ready_condition_without_status_leaves_the_provider_unresolved() -> None:
    result = read({"active": True, "conditions": [{"type": "Ready"}]})
    assert isinstance(result, Unresolved)
    assert result.reason == "ProviderNotReady"


@pytest.mark.parametrize("order", [("True", "False"), ("False", "True"), ("Unknown", "True")])
def test_one_of_several_ready_entries_that_is_not_true_decides(order: tuple[str, str]) -> None:
    result = read({"active": True, "conditions": [ready(state) for state in order]})
    assert isinstance(result, Unresolved)
    assert result.reason == "ProviderNotReady"


@pytest.mark.parametrize("conditions", ["Ready", 5, {}, {"Ready": "True"}, True])
def test_conditions_that_are_no_list_leave_the_provider_unresolved(conditions: Any) -> None:
    result = read({"active": True, "conditions": conditions})
    assert isinstance(result, Unresolved)
    assert result.reason == "ProviderNotReady"


@pytest.mark.parametrize("active", [None, "true", "false", 1, 0, [], {}, [True]])
def test_an_active_that_is_no_boolean_is_missing(active: Any) -> None:
    result = read({"active": active, "conditions": [ready("False")]})
    assert isinstance(result, Unresolved)
    assert result.reason == "StatusActiveMissing"


@pytest.mark.parametrize("status", [None, "up", 7, [], [{"active": True}], {}])
def test_a_status_without_active_is_missing(status: Any) -> None:
    result = read(status)
    assert isinstance(result, Unresolved)
    assert result.reason == "StatusActiveMissing"


def test_garbage_elsewhere_in_status_is_ignored() -> None:
    status = {
        "active": True,
        "observedGeneration": "many",
        "lastTransitionTime": {"a": 1},
        "conditions": [5, None, "Ready", {"type": 3}, {"type": "Ready", "status": "True", "message": 4}],
        "more": {"deep": [1, 2, 3]},
    }
    result = read(status)
    assert isinstance(result, Resolved)
    assert result.display.observed_generation is None
    assert result.display.last_transition_time == ""


@pytest.mark.parametrize(
    "since", ["", "soon", "2026-13-01T00:00:00Z", "2026-11-29", "2026-11-29T10:00:00", "٢٠٢٦-11-29T10:00:00Z"]
)
def test_a_transition_time_that_our_own_status_could_not_hold_is_dropped(since: str) -> None:
    assert read({"active": True, "lastTransitionTime": since}).display.last_transition_time == ""
    assert read({"active": True, "lastTransitionTime": "2026-11-29T10:00:00Z"}).display.last_transition_time


@pytest.mark.parametrize("generation", [-1, 2**63, 10**40, 1.5, True])
def test_an_observed_generation_that_our_own_status_could_not_hold_is_dropped(generation: Any) -> None:
    assert read({"active": True, "observedGeneration": generation}).display.observed_generation is None


def test_an_observed_generation_behind_is_shown_and_changes_nothing() -> None:
    result = read({"active": False, "observedGeneration": 1})
    assert isinstance(result, Resolved)
    assert (result.display.generation, result.display.observed_generation) == (3, 1)


def test_at_most_a_kilobyte_of_a_providers_texts_is_kept() -> None:
    huge = "\x1b[31m\u0000" + "é" * 2_000_000
    kept = cut_provider(
        json.dumps(
            {
                "status": {
                    "active": True,
                    "lastTransitionTime": huge,
                    "conditions": [ready("Down", reason=huge, message=huge)],
                }
            }
        ).encode()
    )
    assert len(kept) < 1024
    result = read_provider(kept, name="Hours/hours", generation=1)
    assert isinstance(result, Unresolved)
    shown = result.message + result.display.reason + result.display.message + result.display.last_transition_time
    assert len(shown.encode()) < 1024 + 64
    assert all(c.isprintable() for c in shown)


def test_a_status_nested_beyond_reason_does_not_raise() -> None:
    raw = b'{"status":{"active":true,"conditions":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    assert isinstance(read_provider(cut_provider(raw), name="n", generation=1), Unresolved)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "active": json_values,
            "conditions": json_values
            | st.lists(st.fixed_dictionaries({"type": st.just("Ready"), "status": json_values})),
            "observedGeneration": json_values,
            "lastTransitionTime": json_values,
        },
    )
)
def test_no_json_makes_the_reader_raise_or_resolve_without_a_boolean(
    status: dict[str, Any],
) -> None:
    result = read(status)
    if isinstance(result, Resolved):
        assert result.active is status["active"]
    else:
        assert result.reason in ("StatusActiveMissing", "ProviderNotReady")


@given(st.text(), st.integers(min_value=0, max_value=64))
def test_clean_text_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    result = clean(text, limit)
    assert len(result.encode()) <= limit
    assert result.isprintable()
