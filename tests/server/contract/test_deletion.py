"""B3: the deletion of a ScheduledMachine, of its namespace, and in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, ManagerProcess
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.children import adopt, let_deleting_machines_go
from support.gate import Gate
from support.machines import MACHINE, machine
from support.measurements import caught_up, received, writes
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]

OURS = "5spot.finos.org/scheduledmachine"
OWN_RESOURCE = ("5spot.finos.org", "scheduledmachines")
REPOSITORY = Path(__file__).resolve().parents[3]


def gone(scenario: Scenario, timeout: float = 15) -> None:
    eventually(lambda: scenario.find() is None, timeout, what="the ScheduledMachine is gone")


def finalizers(scenario: Scenario) -> list[str]:
    found: list[str] = scenario.get()["metadata"].get("finalizers", [])
    return found


def deleting(scenario: Scenario, kind: tuple[str, str]) -> bool:
    child = scenario.child(kind)
    return child is not None and "deletionTimestamp" in child["metadata"]


def sent(plane: ControlPlane, mark: int, namespace: str) -> list[str]:
    """Return the manager's writes in order, status writes and Events excepted."""
    return [
        f"{event['verb']} {event['objectRef']['resource']}"
        # A long answer is sent before the log has its line, and what follows from it may be logged first.
        for event in sorted(writes(plane, mark, namespace), key=received)
        if event["objectRef"].get("subresource") != "status"
    ]


@pytest.mark.contract("B3.1")
def test_nothing_is_created_before_the_finalizer_is_on_it(scenario: Scenario, control_plane: ControlPlane) -> None:
    mark = control_plane.audit_log.mark()
    scenario.active(True)
    with Gate(control_plane, scenario.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        scenario.create()
        assert gate.held()["object"]["metadata"]["finalizers"] == [OURS]
        # Something else goes on meanwhile: the manager is not stuck, it waits.
        other = Scenario(scenario.api, scenario.namespace, scenario.provider, "other")
        other.create()
        gate.held(2)
        assert [scenario.child(kind) for kind in CHILDREN] == [None, None, None]
        assert select(writes(control_plane, mark, scenario.namespace), verbs="create") == []
        gate.release()
        scenario.wait_made()
        other.wait_made()
    order = [event for event in sent(control_plane, mark, scenario.namespace) if "web" not in event]
    assert order.index("patch scheduledmachines") < order.index("create standinbootstraps")


@pytest.mark.contract("B3.1")
def test_a_machine_that_is_down_has_the_finalizer_too(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert finalizers(scenario) == [OURS]
    # Taken off by hand, it is put back before it matters.
    scenario.api.patch(*MACHINE, "web", scenario.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: finalizers(scenario) == [OURS], what="it is back")


@pytest.mark.contract("B3.2")
@pytest.mark.parametrize("state", ["up", "in grace", "down"])
def test_deletion_skips_grace_keeps_the_drain_and_lets_go_last(
    scenario: Scenario, control_plane: ControlPlane, state: str
) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    if state == "down":
        scenario.wait_phase("Inactive", "ScheduleInactive")
    else:
        scenario.active(True)
        scenario.wait_made()
        scenario.hold_machine()
    if state == "in grace":
        scenario.active(False)
        scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    mark = control_plane.audit_log.mark()
    scenario.delete()
    if state == "down":
        gone(scenario)
        assert sent(control_plane, mark, scenario.namespace) == ["patch scheduledmachines"]
        return
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    eventually(lambda: deleting(scenario, MACHINES), what="the Machine is deleted")
    assert not any("exclude" in name for name in scenario.machine()["metadata"].get("annotations", {})), "drained"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        assert not deleting(scenario, kind)
        assert scenario.child(kind) is not None
    assert OURS in finalizers(scenario)
    assert sent(control_plane, mark, scenario.namespace) == ["delete machines"]
    scenario.let_machine_go()
    gone(scenario)
    scenario.wait_gone()
    order = sent(control_plane, mark, scenario.namespace)
    assert order[0] == "delete machines"
    assert sorted(order[1:3]) == ["delete standinbootstraps", "delete standinmachines"]
    assert order[3:] == ["patch scheduledmachines"], "the finalizer last"


@pytest.mark.contract("B3.2")
def test_what_is_left_after_the_machine_is_waited_for(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    held = {"metadata": {"finalizers": ["example.com/cloud"]}}
    scenario.api.patch(*INFRASTRUCTURE, "web", scenario.namespace, held)
    scenario.delete()
    eventually(lambda: scenario.child(BOOTSTRAP) is None and deleting(scenario, INFRASTRUCTURE), what="one is held")
    status = scenario.wait_phase("ShuttingDown", "DeletingLeftovers")
    assert "StandInMachine" in status["message"]
    assert OURS in finalizers(scenario)
    scenario.api.patch(*INFRASTRUCTURE, "web", scenario.namespace, {"metadata": {"finalizers": None}})
    gone(scenario)


@pytest.mark.contract("B3.2")
def test_a_deleted_one_is_not_started_whatever_its_schedule_says(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.api.patch(*MACHINE, "web", scenario.namespace, {"metadata": {"finalizers": [OURS, "example.com/keep"]}})
    scenario.delete()
    eventually(lambda: finalizers(scenario) == ["example.com/keep"], what="ours is off")
    scenario.active(True)
    # A later event that is handled proves that this one was.
    other = Scenario(scenario.api, scenario.namespace, scenario.provider, "other")
    other.create()
    other.wait_made()
    assert [scenario.child(kind) for kind in CHILDREN] == [None, None, None]
    scenario.api.patch(*MACHINE, "web", scenario.namespace, {"metadata": {"finalizers": None}})


# B3.5 ---------------------------------------------------------------------------------------------------------------


def set_finalizers(scenario: Scenario, *names: str) -> Json:
    return scenario.api.patch(*MACHINE, "web", scenario.namespace, {"metadata": {"finalizers": list(names)}})


@pytest.mark.contract("B3.5")
def test_a_finalizer_that_comes_while_ours_is_being_added_is_kept(
    scenario: Scenario, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    with Gate(control_plane, scenario.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        mark = control_plane.audit_log.mark()
        scenario.create()
        gate.held()
        # Known by the time that the refusal comes: another try on the old state would be refused too.
        caught_up(manager, set_finalizers(scenario, "example.com/theirs"))
        gate.release()
        eventually(lambda: set(finalizers(scenario)) == {OURS, "example.com/theirs"}, what="both are there")
    own = select(control_plane.audit(since=mark), user=MANAGER_USER, resource="scheduledmachines", subresource="")
    patches = select(own, verbs="patch", namespace=scenario.namespace)
    assert [event["responseStatus"]["code"] for event in patches] == [422, 200], "the first came too late"


@pytest.mark.contract("B3.5")
def test_the_finalizers_of_others_survive_although_they_change_while_ours_is_removed(
    scenario: Scenario, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    set_finalizers(scenario, "example.com/before", OURS, "example.com/after", "example.com/last")
    with Gate(control_plane, scenario.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        mark = control_plane.audit_log.mark()
        scenario.delete()
        gate.held()
        # Ours moves to the front, and where it was there is now another's.
        caught_up(manager, set_finalizers(scenario, OURS, "example.com/after", "example.com/last"))
        gate.release()
        eventually(lambda: OURS not in finalizers(scenario), what="ours is off")
    assert finalizers(scenario) == ["example.com/after", "example.com/last"]
    own = select(control_plane.audit(since=mark), user=MANAGER_USER, resource="scheduledmachines", subresource="")
    patches = select(own, verbs="patch", namespace=scenario.namespace)
    assert [event["responseStatus"]["code"] for event in patches] == [422, 200]
    # From here on it is theirs alone, whatever they do.
    mark = control_plane.audit_log.mark()
    set_finalizers(scenario, "example.com/last")
    other = Scenario(scenario.api, scenario.namespace, scenario.provider, "other")
    other.create()
    other.wait_phase("Inactive", "ScheduleInactive")
    assert not select(writes(control_plane, mark, scenario.namespace), resource="scheduledmachines", name="web")
    set_finalizers(scenario)
    gone(scenario)


# B3.6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B3.6")
@pytest.mark.timeout(180)
def test_a_namespace_with_ten_live_machines_goes_by_itself(
    api: Api, provider: ProviderKind, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    namespace = make_namespace(api, "b3-6")
    provider.create(namespace, active=True)
    given = {"schedule": provider.reference(), "gracefulShutdownTimeout": "1h"}
    scenarios = [Scenario(api, namespace, provider, f"m{number}") for number in range(10)]
    api.create_many(machine(scenario.name, namespace, **given) for scenario in scenarios)
    for scenario in scenarios:
        scenario.wait_made(30)
        scenario.hold_machine()
    for scenario in scenarios[:5]:
        adopt(scenario)
    api.delete("v1", "Namespace", namespace)

    def ended() -> bool:
        # Cluster API lets a Machine go once it has done its part.
        let_deleting_machines_go(api, namespace)
        return api.find("v1", "Namespace", namespace) is None

    eventually(ended, 120, what="the namespace is gone", poll=0.5)
    assert manager.exit_code is None
    # Nobody is left to be told, and nothing is tried for ever.
    mark = control_plane.audit_log.mark()
    other = make_namespace(api, "b3-6-after")
    provider.create(other, active=True)
    after = Scenario(api, other, provider)
    after.create()
    after.wait_made()
    assert writes(control_plane, mark, namespace) == []
    api.delete("v1", "Namespace", other)


# B3.7 ---------------------------------------------------------------------------------------------------------------


def release(scenario: Scenario) -> bool:
    """Takes Cluster API's finalizer off the Machine, and no other: the collector puts its own on and off meanwhile."""
    held = scenario.machine()["metadata"]["finalizers"]
    index = held.index("machine.cluster.x-k8s.io")
    path = f"/metadata/finalizers/{index}"
    patch = [{"op": "test", "path": path, "value": held[index]}, {"op": "remove", "path": path}]
    try:
        scenario.api.patch(*MACHINES, "web", scenario.namespace, patch, how="json")
    except ApiError as error:
        raise AssertionError(f"the finalizers changed meanwhile: {error}") from error
    return True


@pytest.mark.contract("B3.7")
def test_deletion_in_the_foreground_ends_and_may_cut_the_drain_short_as_documented(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.hold_machine()
    adopt(scenario)
    scenario.delete(propagation="Foreground")
    # Whose deletion of the Machine comes first is a race: the collector's in the foreground, which takes what the
    # Machine owns while it still drains (that is what is warned of), or ours in the background. Both have to end.
    eventually(lambda: deleting(scenario, MACHINES), 60, what="the Machine is being deleted")
    assert set(finalizers(scenario)) == {OURS, "foregroundDeletion"}
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    eventually(lambda: release(scenario), what="Cluster API lets the Machine go")
    gone(scenario, 60)
    scenario.wait_gone()
    [row] = [line for line in (REPOSITORY / "docs" / "contract.md").read_text().splitlines() if "| B3.7 |" in line]
    assert "drain short" in row


@pytest.mark.contract("B3.7")
def test_a_machine_that_is_down_goes_in_the_foreground_too(scenario: Scenario) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.delete(propagation="Foreground")
    gone(scenario, 60)
