"""Decisions on a simulated object: provision, fail, remove or wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.testing.clusterapi.kinds import LifeScript
from fivespot.testing.clusterapi.lifecycle import LifecycleAction, LifecycleDecision, decide

OUTCOMES = ["Succeed", "Fail", "Never"]


def decided(
    script: LifeScript | None = None,
    *,
    left: dict[str, float] | None = None,
    asked: list[str] | None = None,
    **overrides: Any,
) -> LifecycleDecision:
    """Decide with nothing in the way unless ``overrides`` say so."""

    def remaining(what: str, seconds: float) -> float:
        if asked is not None:
            asked.append(what)
        return (left or {}).get(what, 0.0)

    state = {"deleting": False, "held": True, "provisioned": False, "paused": False, "blocked_reason": ""}
    return decide(script or LifeScript(), **{**state, **overrides}, remaining=remaining)


@pytest.mark.parametrize(
    ("script", "action"),
    [
        ({}, LifecycleAction.PROVISION),
        ({"create": "Fail"}, LifecycleAction.FAIL),
        ({"create": "Never"}, LifecycleAction.NOTHING),
    ],
)
def test_provisioning_ends_as_the_script_says(script: dict[str, Any], action: LifecycleAction) -> None:
    assert decided(LifeScript.model_validate(script)).action is action


@pytest.mark.parametrize(
    ("script", "action"),
    [
        ({}, LifecycleAction.REMOVE),
        ({"delete": "Fail"}, LifecycleAction.FAIL),
        ({"delete": "Never"}, LifecycleAction.NOTHING),
    ],
)
def test_removal_ends_as_the_script_says(script: dict[str, Any], action: LifecycleAction) -> None:
    assert decided(LifeScript.model_validate(script), deleting=True, provisioned=True).action is action


def test_a_scripted_delay_requeues_the_object_for_its_end() -> None:
    script = LifeScript(create_after_seconds=5, delete_after_seconds=7)
    assert decided(script, left={"create": 2.5}) == LifecycleDecision(
        LifecycleAction.NOTHING, 2.5, "creation takes 2.5 s more"
    )
    assert decided(script, left={"delete": 4}, deleting=True).wait == 4
    assert decided(script, left={}).action is LifecycleAction.PROVISION


def test_the_delay_does_not_begin_while_a_prerequisite_is_missing() -> None:
    asked: list[str] = []
    found = decided(LifeScript(create_after_seconds=5), blocked_reason="no Machine owns it", asked=asked)
    assert (found.action, found.reason) == (LifecycleAction.NOTHING, "no Machine owns it")
    assert asked == []


def test_a_provisioned_object_stays_so_whatever_the_script_says_later() -> None:
    assert decided(LifeScript(create="Never"), provisioned=True).action is LifecycleAction.PROVISION
    assert (
        decided(LifeScript(), provisioned=True, blocked_reason="the Cluster is not ready").action
        is LifecycleAction.PROVISION
    )


def test_a_deletion_without_our_finalizer_needs_no_action() -> None:
    assert decided(deleting=True, held=False).action is LifecycleAction.NOTHING


@given(
    create=st.sampled_from(OUTCOMES),
    delete=st.sampled_from(OUTCOMES),
    deleting=st.booleans(),
    held=st.booleans(),
    provisioned=st.booleans(),
)
def test_nothing_is_done_while_paused(create: Any, delete: Any, deleting: bool, held: bool, provisioned: bool) -> None:
    script = LifeScript(create=create, delete=delete)
    found = decided(script, deleting=deleting, held=held, provisioned=provisioned, paused=True)
    assert found == LifecycleDecision(LifecycleAction.NOTHING, reason="paused")


@given(
    create=st.sampled_from(OUTCOMES),
    delete=st.sampled_from(OUTCOMES),
    deleting=st.booleans(),
    held=st.booleans(),
    provisioned=st.booleans(),
    left=st.floats(0, 100),
)
def test_an_object_is_removed_only_when_deleted_and_provisioned_only_when_not(
    create: Any, delete: Any, deleting: bool, held: bool, provisioned: bool, left: float
) -> None:
    script = LifeScript(create=create, delete=delete, create_after_seconds=1, delete_after_seconds=1)
    found = decided(
        script, deleting=deleting, held=held, provisioned=provisioned, left={"create": left, "delete": left}
    )
    assert found.action is not LifecycleAction.REMOVE or (deleting and held)
    assert found.action is not LifecycleAction.PROVISION or not deleting
    assert found.wait is None or (found.action is LifecycleAction.NOTHING and found.wait > 0)
