"""When a simulated object is made, fails and is unmade."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.testing.clusterapi.lifecycle import LifecycleAction, LifecycleDecision, decide
from fivespot.testing.clusterapi.script import LifeScript

OUTCOMES = ["Succeed", "Fail", "Never"]


def decided(
    script: LifeScript | None = None,
    *,
    left: dict[str, float] | None = None,
    asked: list[str] | None = None,
    **facts: Any,
) -> LifecycleDecision:
    """What is decided; nothing is in the way unless ``facts`` say so."""

    def remaining(what: str, seconds: float) -> float:
        if asked is not None:
            asked.append(what)
        return (left or {}).get(what, 0.0)

    state = {"deleting": False, "held": True, "made": False, "paused": False, "blocked": ""}
    return decide(script or LifeScript(), **{**state, **facts}, remaining=remaining)


@pytest.mark.parametrize(
    ("script", "act"),
    [
        ({}, LifecycleAction.CREATE),
        ({"create": "Fail"}, LifecycleAction.FAIL),
        ({"create": "Never"}, LifecycleAction.NOTHING),
    ],
)
def test_what_may_be_made_is_made_or_not_as_the_script_says(script: dict[str, Any], act: LifecycleAction) -> None:
    assert decided(LifeScript.model_validate(script)).act is act


@pytest.mark.parametrize(
    ("script", "act"),
    [
        ({}, LifecycleAction.LET_GO),
        ({"delete": "Fail"}, LifecycleAction.FAIL),
        ({"delete": "Never"}, LifecycleAction.NOTHING),
    ],
)
def test_what_is_deleted_goes_or_stays_as_the_script_says(script: dict[str, Any], act: LifecycleAction) -> None:
    assert decided(LifeScript.model_validate(script), deleting=True, made=True).act is act


def test_a_waiting_time_is_waited_for_and_looked_at_again_when_it_is_over() -> None:
    script = LifeScript(create_after_seconds=5, delete_after_seconds=7)
    assert decided(script, left={"create": 2.5}) == LifecycleDecision(
        LifecycleAction.NOTHING, 2.5, "creation takes 2.5 s more"
    )
    assert decided(script, left={"delete": 4}, deleting=True).wait == 4
    assert decided(script, left={}).act is LifecycleAction.CREATE


def test_the_waiting_time_does_not_begin_before_what_is_needed_is_there() -> None:
    asked: list[str] = []
    found = decided(LifeScript(create_after_seconds=5), blocked="no Machine has adopted it", asked=asked)
    assert (found.act, found.why) == (LifecycleAction.NOTHING, "no Machine has adopted it")
    assert asked == []


def test_what_is_made_stays_so_whatever_the_script_says_afterwards() -> None:
    assert decided(LifeScript(create="Never"), made=True).act is LifecycleAction.CREATE
    assert decided(LifeScript(), made=True, blocked="the Cluster is not ready").act is LifecycleAction.CREATE


def test_a_deletion_without_our_finalizer_is_none_of_our_business() -> None:
    assert decided(deleting=True, held=False).act is LifecycleAction.NOTHING


@given(
    create=st.sampled_from(OUTCOMES),
    delete=st.sampled_from(OUTCOMES),
    deleting=st.booleans(),
    held=st.booleans(),
    made=st.booleans(),
)
def test_nothing_is_done_while_paused(create: Any, delete: Any, deleting: bool, held: bool, made: bool) -> None:
    script = LifeScript(create=create, delete=delete)
    found = decided(script, deleting=deleting, held=held, made=made, paused=True)
    assert found == LifecycleDecision(LifecycleAction.NOTHING, why="paused")


@given(
    create=st.sampled_from(OUTCOMES),
    delete=st.sampled_from(OUTCOMES),
    deleting=st.booleans(),
    held=st.booleans(),
    made=st.booleans(),
    left=st.floats(0, 100),
)
def test_an_object_is_let_go_only_when_it_is_deleted_and_made_only_when_it_is_not(
    create: Any, delete: Any, deleting: bool, held: bool, made: bool, left: float
) -> None:
    script = LifeScript(create=create, delete=delete, create_after_seconds=1, delete_after_seconds=1)
    found = decided(script, deleting=deleting, held=held, made=made, left={"create": left, "delete": left})
    assert found.act is not LifecycleAction.LET_GO or (deleting and held)
    assert found.act is not LifecycleAction.CREATE or not deleting
    assert found.wait is None or (found.act is LifecycleAction.NOTHING and found.wait > 0)
