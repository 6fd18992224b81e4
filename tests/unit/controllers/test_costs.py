"""B5.2: what is not written, so that a flip costs no more than it must."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fivespot.contract import Resolution
from fivespot.controllers.scheduledmachine.cluster_api import MachineView
from fivespot.controllers.scheduledmachine.status import machine_progress_only
from fivespot.runtime import merge_diff
from unit.controllers.build import (
    BOOTSTRAP,
    DOWN,
    INFRASTRUCTURE,
    UP,
    adopted,
    at,
    judged,
    machine,
    machine_ref,
    ready_machine,
    ref,
    snapshot,
    status,
    stored_status,
)

REFERENCES = ("bootstrapRef", "infrastructureRef")


@pytest.mark.contract("B5.2")
@pytest.mark.parametrize("resolution", [UP, DOWN], ids=["up", "down"])
def test_what_cluster_api_deletes_with_its_machine_costs_no_write(resolution: Resolution) -> None:
    begun = stored_status(machineRef=machine_ref(), shutdownRequestedTime=at(minutes=1))
    going = snapshot(resolution, machine=machine(deleting=True), stored=begun)
    _, written = judged(going)
    assert set(REFERENCES) <= set(written)
    for left in (adopted()[:1], adopted()[1:], ()):
        later = snapshot(resolution, machine=machine(deleting=True), children=left, stored=stored_status(written))
        assert merge_diff(written, judged(later)[1]) == {}


@pytest.mark.contract("B4.5")
def test_the_references_go_with_the_machine() -> None:
    refs = {"bootstrapRef": ref(BOOTSTRAP), "infrastructureRef": ref(INFRASTRUCTURE)}
    stored = stored_status({**status(machineRef=machine_ref(), shutdownRequestedTime=at(minutes=1)), **refs})
    _, written = judged(snapshot(DOWN, stored=stored))
    assert not set(REFERENCES) & set(written)
    alive = snapshot(UP, machine=machine(), children=adopted()[:1], stored=stored)
    assert set(judged(alive)[1]) & set(REFERENCES) == {"bootstrapRef"}, "a machine that stays may lose one too"


# What mirrors a Machine on its way ------------------------------------------------------------------------------


def mirrors(first: MachineView, second: MachineView) -> bool:
    """Whether going from one Machine to the other is a change of what mirrors it alone."""
    old = judged(snapshot(UP, machine=first))[1]
    new = judged(snapshot(UP, machine=second, stored=stored_status(old)))[1]
    assert merge_diff(old, new)
    return machine_progress_only(old, new)


@pytest.mark.contract("B5.2")
def test_what_cluster_api_reports_of_a_machine_on_its_way_may_wait() -> None:
    begun = machine(ready_reason="NotReady", ready_message="* NodeHealthy: waiting")
    for further in (
        machine(ready_reason="NotReady", ready_message="* InfrastructureReady: waiting"),
        machine(ready_reason="NodeNotReady"),
        machine(provider_id="x://1", ready_reason="NotReady", ready_message="* NodeHealthy: waiting"),
        machine(provider_id="x://1", node="node-1"),
    ):
        assert mirrors(begun, further)


@pytest.mark.contract("B5.2")
def test_that_a_machine_is_ready_and_that_it_no_longer_is_waits_for_nothing() -> None:
    assert not mirrors(machine(), ready_machine())
    assert not mirrors(ready_machine(), ready_machine(ready=False))


@pytest.mark.contract("B5.2")
def test_where_a_ready_machine_is_found_is_told_at_once() -> None:
    """Cluster API writes that a Machine is ready before it writes the id, and people go on with either."""
    old = judged(snapshot(UP, machine=ready_machine()))[1]
    for changes in ({"providerID": "x://9"}, {"nodeRef": {"name": "node-9"}}):
        assert not machine_progress_only(old, {**old, **changes})
    assert machine_progress_only(old, {**old, "message": "other"})


@pytest.mark.contract("B5.2")
def test_while_a_machine_goes_its_readiness_is_mirrored_like_the_rest() -> None:
    going = snapshot(DOWN, machine=ready_machine(deleting=True), stored=stored_status(machineRef=machine_ref()))
    old = judged(going)[1]
    for later in (machine(deleting=True, ready_reason="Deleting"), machine(deleting=True)):
        new = judged(snapshot(DOWN, machine=later, stored=stored_status(old)))[1]
        assert merge_diff(old, new)
        assert machine_progress_only(old, new)


@pytest.mark.contract("B5.2")
@pytest.mark.parametrize(
    "edit",
    [
        lambda stored: stored.update(phase="Error"),
        lambda stored: stored.update(phase="ShuttingDown"),
        lambda stored: stored.update(observedGeneration=4),
        lambda stored: stored.update(inSchedule=False),
        lambda stored: stored.update(nextCleanup=at(minutes=1)),
        lambda stored: stored.update(replacements={"count": 1}),
        lambda stored: stored["machineRef"].update(uid="m-2"),
        lambda stored: stored.pop("machineRef"),
        lambda stored: stored.pop("bootstrapRef"),
        lambda stored: stored["conditions"][0].update(status="True"),
        lambda stored: stored["conditions"][0].update(reason="Paused"),
        lambda stored: stored["conditions"][2].update(status="False"),
        lambda stored: stored["conditions"].append({"type": "Stalled", "status": "True"}),
        lambda stored: stored["spotSchedule"].update(active=False),
    ],
)
def test_whatever_else_changes_is_written_at_once(edit: Any) -> None:
    old = judged(snapshot(UP, machine=machine(), children=adopted()))[1]
    assert [entry["type"] for entry in old["conditions"][:3]] == ["Ready", "MachineReady", "SpotScheduleResolved"]
    new = copy.deepcopy(old)
    new["message"] = "other"
    assert machine_progress_only(old, new)
    edit(new)
    assert not machine_progress_only(old, new)


@pytest.mark.contract("B5.2")
def test_without_a_machine_nothing_is_mirrored() -> None:
    old = judged(snapshot(DOWN))[1]
    assert not machine_progress_only(old, {**old, "message": "other"})
