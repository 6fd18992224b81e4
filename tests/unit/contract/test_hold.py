"""A8, A15, B1.22, B1.23: what is believed while a provider gives no verdict."""

from __future__ import annotations

import pytest

from fivespot.contract import (
    EffectiveVerdict,
    HeldVerdict,
    Reference,
    Resolved,
    Unreadable,
    Unresolved,
    effective_verdict,
)

HOURS = Reference("Hours", "office")
OTHER = Reference("Hours", "night")
LOST = Unresolved("ProviderNotFound", "gone")
BLIND = Unreadable("forbidden")


@pytest.mark.parametrize("memory", [None, HeldVerdict(True, HOURS), HeldVerdict(False, OTHER)])
@pytest.mark.parametrize("active", [True, False])
def test_a_resolved_verdict_needs_no_memory(active: bool, memory: HeldVerdict | None) -> None:
    assert effective_verdict(Resolved(active), memory, HOURS) == EffectiveVerdict(
        active, known=True, fresh=True, may_begin=True
    )


@pytest.mark.parametrize("held", [True, False])
def test_the_last_verdict_of_this_reference_is_held_while_unresolved(held: bool) -> None:
    assert effective_verdict(LOST, HeldVerdict(held, HOURS), HOURS) == EffectiveVerdict(
        held, known=True, fresh=False, may_begin=True
    )


def test_a_provider_that_cannot_be_read_holds_and_lets_nothing_begin() -> None:
    assert effective_verdict(BLIND, HeldVerdict(True, HOURS), HOURS) == EffectiveVerdict(
        True, known=True, fresh=False, may_begin=False
    )


def test_never_resolved_means_inactive() -> None:
    assert effective_verdict(LOST, None, HOURS) == EffectiveVerdict(False, known=False, fresh=False, may_begin=True)


def test_another_reference_does_not_inherit_a_verdict() -> None:
    assert not effective_verdict(LOST, HeldVerdict(True, OTHER), HOURS).active
    assert not effective_verdict(LOST, HeldVerdict(True, OTHER), HOURS).known


def test_a_memory_without_reference_belongs_to_the_present_one() -> None:
    assert effective_verdict(LOST, HeldVerdict(True, None), HOURS).active


@pytest.mark.parametrize(
    ("made_for", "held"), [("Hours/office", True), ("", True), ("Hours/night", False), (None, False)]
)
def test_a_machine_made_for_this_reference_stands_in_for_a_lost_status(made_for: str | None, held: bool) -> None:
    assert effective_verdict(LOST, None, HOURS, machine_made_for=made_for).active is held
    assert effective_verdict(LOST, HeldVerdict(None, None), HOURS, machine_made_for=made_for).active is held


def test_a_remembered_verdict_beats_what_a_machine_says() -> None:
    assert not effective_verdict(LOST, HeldVerdict(False, HOURS), HOURS, machine_made_for="Hours/office").active
