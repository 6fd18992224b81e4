"""B1.7: what a refused step waits for, and that nothing secret is remembered of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from fivespot.controllers.scheduledmachine.cluster_api import ClusterApi, ClusterView, Known
from fivespot.controllers.scheduledmachine.plan import Want
from fivespot.controllers.scheduledmachine.refusals import Refusals, fingerprint
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot, TemplateState
from fivespot.controllers.scheduledmachine.status import RefusedStep
from fivespot.controllers.scheduledmachine.timings import Timings
from fivespot.runtime import Key
from unit.controllers.build import (
    DOWN,
    LOST,
    NAME,
    NAMESPACE,
    UP,
    at,
    child,
    head,
    machine,
    snapshot,
    stored_status,
    world,
)

KEY = Key(NAMESPACE, NAME)
QUOTA = RefusedStep("MachineCreationFailed", "exceeded quota", stalled=False)


@pytest.fixture
def refusals() -> Refusals:
    return Refusals(Timings(), random.Random(7))


@pytest.mark.contract("B1.7")
def test_the_wait_doubles_from_half_a_minute_to_five_with_jitter(refusals: Refusals) -> None:
    for expected in (30, 60, 120, 240, 300, 300):
        seconds = refusals.note(KEY, QUOTA, Want.ACTIVE, "same", 100.0).due - 100.0
        assert expected * 0.8 <= seconds <= expected * 1.2
        found = refusals.current(KEY, "same")
        assert found is not None
        assert found.due == 100.0 + seconds


@pytest.mark.contract("B1.7")
def test_another_refusal_begins_anew(refusals: Refusals) -> None:
    refusals.note(KEY, QUOTA, Want.ACTIVE, "same", 0.0)
    refusals.note(KEY, QUOTA, Want.ACTIVE, "same", 0.0)
    forbidden = RefusedStep("MachineCreationFailed", "forbidden", stalled=True)
    assert refusals.note(KEY, forbidden, Want.ACTIVE, "same", 0.0).due <= 36


@pytest.mark.contract("B1.7")
@pytest.mark.parametrize("words", ["used: {n}, limited: 100", "request {n:032x} was denied", "at 10:00:{n:02}"])
def test_the_wait_grows_whatever_the_words_of_one_refusal_are(refusals: Refusals, words: str) -> None:
    cause = "ForbiddenError create machines team-a/web-1"
    found = []
    for n in range(6):
        refused = RefusedStep("MachineCreationFailed", words.format(n=n), stalled=False, cause=cause)
        found.append(refusals.note(KEY, refused, Want.ACTIVE, "same", 0.0))
    assert found[-1].due >= 240


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("denied (request 3fa9c1d2)", "denied (request b7e04a55)"),
        ("id 0b2f6c1e-7a3d-4f5e-9c1b-2d3e4f5a6b7c: no", "id c1d2e3f4-a5b6-4c7d-8e9f-0a1b2c3d4e5f: no"),
        ("at 2026-01-05T04:01:01Z: no", "at 2026-01-05T04:06:12.5Z: no"),
    ],
)
def test_ids_of_requests_do_not_change_the_message(refusals: Refusals, first: str, second: str) -> None:
    for words in (first, second, first):
        refused = RefusedStep("MachineCreationFailed", words, stalled=True, cause="create")
        assert refusals.note(KEY, refused, Want.ACTIVE, "same", 0.0).message == first


def test_words_that_differ_in_digits_alone_stay_those_of_the_first_refusal(refusals: Refusals) -> None:
    """Status then stays as it is, and costs no write."""
    cause = "ForbiddenError create machines team-a/web-1"
    for n in range(3):
        refused = RefusedStep("MachineCreationFailed", f"exceeded quota, used: {100 + n}", stalled=False, cause=cause)
        assert refusals.note(KEY, refused, Want.ACTIVE, "same", 0.0).message == "exceeded quota, used: 100"
    other = RefusedStep("MachineCreationFailed", "no right", stalled=True, cause=cause)
    assert refusals.note(KEY, other, Want.ACTIVE, "same", 0.0).message == "no right"


@pytest.mark.contract("B1.7")
def test_a_relevant_change_makes_it_due_at_once(refusals: Refusals) -> None:
    refusals.note(KEY, QUOTA, Want.ACTIVE, "before", 0.0)
    assert refusals.current(KEY, "after") is None
    assert refusals.current(Key(NAMESPACE, "other"), "before") is None


@pytest.mark.contract("B1.7")
def test_a_change_and_its_reverse_make_it_due_at_once_if_nothing_was_tried_in_between(refusals: Refusals) -> None:
    refusals.note(KEY, QUOTA, Want.ACTIVE, "before", 0.0)
    refusals.outdate(KEY, Want.ACTIVE)
    assert refusals.current(KEY, "before") is None
    assert refusals.note(KEY, QUOTA, Want.ACTIVE, "before", 0.0).due > 36, "it is the second try all the same"
    refusals.outdate(Key(NAMESPACE, "other"), Want.ACTIVE)
    assert len(refusals) == 1


@pytest.mark.contract("B1.7")
def test_a_schedule_that_flaps_causes_no_more_tries(refusals: Refusals) -> None:
    refusals.note(KEY, QUOTA, Want.ACTIVE, "before", 0.0)
    refusals.outdate(KEY, Want.INACTIVE)
    assert refusals.current(KEY, "before") is not None


def test_a_refusal_goes_with_its_object(refusals: Refusals) -> None:
    refusals.note(KEY, QUOTA, Want.ACTIVE, "same", 0.0)
    refusals.forget(KEY)
    refusals.forget(KEY)
    assert len(refusals) == 0


RELEVANT: dict[str, Callable[[Snapshot], Snapshot]] = {
    "spec": lambda s: replace(s, head=msgspec.structs.replace(s.head, generation=4)),
    "deletion": lambda s: replace(s, head=head(deleted=at())),
    "verdict": lambda s: replace(s, world=replace(s.world, resolution=DOWN)),
    "resolution": lambda s: replace(s, world=replace(s.world, resolution=LOST)),
    "capi": lambda s: replace(s, world=replace(s.world, capi=ClusterApi(Known.YES, "v1beta1"))),
    "cluster": lambda s: replace(s, world=replace(s.world, cluster=ClusterView(Known.NO))),
    "kinds": lambda s: replace(s, world=replace(s.world, templates=TemplateState(Known.NO, "x"))),
    "machine": lambda s: replace(s, world=replace(s.world, machine=machine(deleting=True))),
    "child": lambda s: replace(s, world=replace(s.world, children=(child(Slot.BOOTSTRAP, ours=False),))),
}


@pytest.mark.contract("B1.7")
@pytest.mark.parametrize("change", RELEVANT.values(), ids=RELEVANT)
def test_every_relevant_change_changes_the_fingerprint(change: Callable[[Snapshot], Snapshot]) -> None:
    s = snapshot(UP, machine=machine())
    assert fingerprint(change(s)) != fingerprint(s)


@pytest.mark.contract("B1.7")
def test_time_and_our_own_reports_are_no_relevant_change() -> None:
    s = snapshot(UP, machine=machine())
    later = replace(s, monotonic=5000.0, stored=stored_status(phase="Error"), unreadable_for=4.0)
    assert fingerprint(later) == fingerprint(s)
    back = (child(Slot.INFRASTRUCTURE), child(Slot.BOOTSTRAP))
    assert fingerprint(replace(s, world=world(UP, children=back))) == fingerprint(
        replace(s, world=world(UP, children=back[::-1]))
    )


def test_a_long_message_without_a_number_is_compared_in_linear_time(refusals: Refusals) -> None:
    """An admission webhook chooses its words; quadratic work on 200,000 letters takes minutes."""
    long = replace(QUOTA, message="x" * 200_000, cause="webhook")
    refusals.note(KEY, long, Want.ACTIVE, "same", 0.0)
    assert refusals.note(KEY, replace(long, message="x" * 200_001), Want.ACTIVE, "same", 0.0).message.endswith("x")
