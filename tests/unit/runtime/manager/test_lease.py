"""The rules of an election, without a loop or a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from fivespot.runtime.manager.lease import Candidate, ElectionTimings, Lease, claim, read_lease, released
from fivespot.runtime.objects import Object

ANNOTATION = "5spot.finos.org/reconcilers"
NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
STAMP = "2026-03-01T12:00:00.123456Z"


def parse(body: dict[str, Any], version: int = 1) -> Lease:
    metadata = {**body.get("metadata", {}), "name": "l", "uid": "u", "resourceVersion": str(version)}
    return read_lease(Object.parse(msgspec.json.encode({**body, "metadata": metadata})), ANNOTATION)


def held(by: str, renewed: str = "t0", *, duration: int | None = 15, members: str | None = "a,b") -> Lease:
    annotations = {} if members is None else {ANNOTATION: members}
    spec = {"holderIdentity": by, "renewTime": renewed, "acquireTime": "t", "leaseTransitions": 3}
    if duration is not None:
        spec["leaseDurationSeconds"] = duration
    return parse({"metadata": {"annotations": annotations}, "spec": spec})


def candidate(timings: ElectionTimings | None = None) -> Candidate:
    return Candidate("me", ["b", "c"], timings or ElectionTimings())


def strange(me: Candidate) -> bool:
    return me.conflicting_holder is not None


def make_claim(lease: Lease | None) -> dict[str, Any]:
    return claim(
        lease,
        name="l",
        namespace="ns",
        identity="me",
        members=["b", "a"],
        annotation=ANNOTATION,
        duration=14.2,
        now=NOW,
    )


@pytest.mark.parametrize("values", [(10, 10, 2), (15, 10, 10), (15, 10, 0), (15, 16, 2), (float("inf"), 10, 2)])
def test_timings_that_cannot_keep_two_leaders_apart_are_refused(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="lease duration > renew deadline > retry period"):
        ElectionTimings(*values)


def test_the_defaults_are_those_of_client_go_and_a_hung_request_leaves_time_for_another() -> None:
    timings = ElectionTimings()
    assert (timings.lease_duration, timings.renew_deadline, timings.retry_period) == (15, 10, 2)
    assert timings.request_timeout <= timings.renew_deadline / 2


def test_a_missing_lease_and_a_released_one_are_free_at_once() -> None:
    me = candidate()
    me.observe(None, 100)
    assert me.may_claim_at() <= 100
    me.observe(held(""), 100)
    assert me.may_claim_at() <= 100


def test_a_held_lease_is_free_after_the_holders_duration_counted_from_the_first_sight_here() -> None:
    """kubernetes PR#120824: the clocks written in the record say nothing. kubernetes#114872: whose duration."""
    me = candidate(ElectionTimings(15, 10, 2))
    me.observe(held("other", "1999-01-01T00:00:00.000000Z", duration=60), 100)
    assert me.may_claim_at() == 160
    me.observe(held("other", "1999-01-01T00:00:00.000000Z", duration=60), 130)
    assert me.may_claim_at() == 160, "seeing the same renewal again is no sign of life"
    me.observe(held("other", "1998-01-01T00:00:00.000000Z", duration=60), 140)
    assert me.may_claim_at() == 200, "any change is one, even of a clock that runs backwards"


@pytest.mark.parametrize("duration", [None, 0, -5])
def test_a_record_without_a_usable_duration_is_waited_for_by_our_own(duration: int | None) -> None:
    me = candidate()
    me.observe(held("other", duration=duration), 100)
    assert me.may_claim_at() == 115


def test_a_label_set_by_somebody_is_no_sign_of_life() -> None:
    me = candidate()
    me.observe(held("other"), 100)
    me.observe(held("other", members="x,b"), 110)
    assert me.may_claim_at() == 115


def test_the_deadline_counts_from_before_the_send() -> None:
    me = candidate()
    me.sent(STAMP, 100)
    me.confirmed(held("me", STAMP), 104)
    assert me.lead_until == 110
    assert me.leads(109.9)
    assert not me.leads(110)


def test_a_claim_whose_answer_was_lost_is_recognised_when_it_is_read() -> None:
    me = candidate()
    me.observe(held("other"), 80)
    me.sent(STAMP, 100)
    me.observe(held("me", STAMP), 104)
    assert me.leads(104)
    assert me.lead_until == 110


def test_a_lost_answer_read_too_late_is_ours_to_claim_but_not_to_lead_on() -> None:
    me = candidate()
    me.sent(STAMP, 100)
    me.observe(held("me", STAMP), 120)
    assert not me.leads(120)
    assert me.may_claim_at() <= 120


def test_a_record_in_our_name_that_we_did_not_write_is_waited_for() -> None:
    """An earlier life of the pod, or a twin that was given the same name."""
    me = candidate()
    me.observe(held("me", "t-of-the-twin"), 100)
    assert not me.ours
    assert me.may_claim_at() == 115


def test_a_twin_that_takes_over_ends_the_term() -> None:
    me = candidate()
    me.sent(STAMP, 100)
    me.confirmed(held("me", STAMP), 101)
    me.observe(held("me", "t-of-the-twin"), 103)
    assert not me.leads(103)


def test_a_shared_lease_is_a_mistake_only_when_its_holder_lives_and_does_other_work() -> None:
    me = candidate()
    me.observe(held("other", "t1", members="x,y"), 100)
    assert not strange(me), "a record left behind by a dead deployment is taken over, not run away from"
    me.observe(held("other", "t2", members="x,y"), 102)
    assert strange(me)
    me.observe(held("other", "t3", members="x,b"), 104)
    assert not strange(me)
    me.observe(held("other", "t4", members=None), 106)
    assert not strange(me), "5-Spot itself leaves no annotation"
    me.observe(held("third", "t5", members="x"), 108)
    assert not strange(me), "a new holder has to be seen alive first"


def test_the_first_claim_makes_the_lease() -> None:
    body = make_claim(None)
    assert body["metadata"] == {"name": "l", "namespace": "ns", "annotations": {ANNOTATION: "a,b"}}
    assert body["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": STAMP,
        "renewTime": STAMP,
        "leaseTransitions": 0,
    }


def test_a_renewal_changes_the_renewal_time_only() -> None:
    body = make_claim(held("me", "t0"))
    assert body["spec"]["acquireTime"] == "t"
    assert body["spec"]["leaseTransitions"] == 3
    assert body["spec"]["renewTime"] == STAMP


def test_a_take_over_counts_a_transition_and_keeps_what_others_wrote() -> None:
    lease = parse(
        {
            "metadata": {"labels": {"team": "infra"}, "annotations": {"note": "x"}, "managedFields": [{}]},
            "spec": {"holderIdentity": "other", "leaseTransitions": 3, "strategy": "OldestEmulationVersion"},
        },
        version=77,
    )
    body = make_claim(lease)
    assert body["spec"]["leaseTransitions"] == 4
    assert body["spec"]["acquireTime"] == STAMP
    assert body["spec"]["strategy"] == "OldestEmulationVersion"
    assert body["metadata"]["labels"] == {"team": "infra"}
    assert body["metadata"]["annotations"]["note"] == "x"
    assert body["metadata"]["resourceVersion"] == "77", "a write that arrives late is refused"


def test_letting_go_leaves_nobody_to_wait_for() -> None:
    body = released(held("me"), name="l", namespace="ns", now=NOW)
    lease = parse(body)
    assert (lease.holder, lease.transitions) == ("", 3)
    me = candidate()
    me.observe(lease, 5)
    assert me.may_claim_at() <= 5


@pytest.mark.parametrize("spec", [None, "text", [], {"holderIdentity": 5, "leaseTransitions": "x", "renewTime": {}}])
def test_garbage_in_a_lease_counts_as_absent(spec: object) -> None:
    lease = parse({"spec": spec})
    assert (lease.holder, lease.renewed, lease.transitions, lease.duration) == ("", "", 0, None)
    assert make_claim(lease)["spec"]["holderIdentity"] == "me"


def test_forgetting_claims_nothing_any_more() -> None:
    me = candidate()
    me.sent(STAMP, 100)
    me.confirmed(held("me", STAMP), 101)
    me.forget()
    assert not me.claimed
    assert not me.leads(102)
    assert me.may_claim_at() == 116


def test_micro_time_has_six_decimals_even_when_they_are_zero() -> None:
    whole = NOW - timedelta(microseconds=123456)
    body = released(held("me"), name="l", namespace="ns", now=whole)
    assert body["spec"]["renewTime"] == "2026-03-01T12:00:00.000000Z"
