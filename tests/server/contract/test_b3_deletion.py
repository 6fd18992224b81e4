"""B3: the deletion of a ScheduledMachine, of its namespace, and in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from controlplane.audit import select
from support import eventually, make_namespace
from support.children import adopt, let_deleting_machines_go
from support.gate import Gate
from support.machines import MACHINE, machine
from support.manager import MANAGER_USER, ManagerProcess
from support.observing import caught_up, writes
from support.providers import ProviderKind
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene
from support.spending import received

Json = dict[str, Any]

OURS = "5spot.finos.org/scheduledmachine"
OWN_RESOURCE = ("5spot.finos.org", "scheduledmachines")
REPOSITORY = Path(__file__).resolve().parents[3]


def gone(scene: Scene, timeout: float = 15) -> None:
    eventually(lambda: scene.find() is None, timeout, what="the ScheduledMachine is gone")


def finalizers(scene: Scene) -> list[str]:
    found: list[str] = scene.get()["metadata"].get("finalizers", [])
    return found


def deleting(scene: Scene, kind: tuple[str, str]) -> bool:
    child = scene.child(kind)
    return child is not None and "deletionTimestamp" in child["metadata"]


def sent(plane: ControlPlane, mark: int, namespace: str) -> list[str]:
    """What the manager wrote, in order; reports are left out."""
    return [
        f"{event['verb']} {event['objectRef']['resource']}"
        # A long answer is sent before the log has its line, and what follows from it may be logged first.
        for event in sorted(writes(plane, mark, namespace), key=received)
        if event["objectRef"].get("subresource") != "status"
    ]


@pytest.mark.contract("B3.1")
def test_nothing_is_created_before_the_finalizer_is_on_it(scene: Scene, control_plane: ControlPlane) -> None:
    mark = control_plane.audit_log.mark()
    scene.active(True)
    with Gate(control_plane, scene.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        scene.create()
        assert gate.held()["object"]["metadata"]["finalizers"] == [OURS]
        # Something else goes on meanwhile: the manager is not stuck, it waits.
        other = Scene(scene.api, scene.namespace, scene.provider, "other")
        other.create()
        gate.held(2)
        assert [scene.child(kind) for kind in CHILDREN] == [None, None, None]
        assert select(writes(control_plane, mark, scene.namespace), verbs="create") == []
        gate.release()
        scene.wait_made()
        other.wait_made()
    order = [event for event in sent(control_plane, mark, scene.namespace) if "web" not in event]
    assert order.index("patch scheduledmachines") < order.index("create standinbootstraps")


@pytest.mark.contract("B3.1")
def test_a_machine_that_is_down_has_the_finalizer_too(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert finalizers(scene) == [OURS]
    # Taken off by hand, it is put back before it matters.
    scene.api.patch(*MACHINE, "web", scene.namespace, {"metadata": {"finalizers": None}})
    eventually(lambda: finalizers(scene) == [OURS], what="it is back")


@pytest.mark.contract("B3.2")
@pytest.mark.parametrize("state", ["up", "in grace", "down"])
def test_deletion_skips_grace_keeps_the_drain_and_lets_go_last(
    scene: Scene, control_plane: ControlPlane, state: str
) -> None:
    scene.create(gracefulShutdownTimeout="1h")
    if state == "down":
        scene.wait_phase("Inactive", "ScheduleInactive")
    else:
        scene.active(True)
        scene.wait_made()
        scene.hold_machine()
    if state == "in grace":
        scene.active(False)
        scene.wait_phase("ShuttingDown", "GracePeriodActive")
    mark = control_plane.audit_log.mark()
    scene.delete()
    if state == "down":
        gone(scene)
        assert sent(control_plane, mark, scene.namespace) == ["patch scheduledmachines"]
        return
    scene.wait_phase("ShuttingDown", "NodeDraining")
    eventually(lambda: deleting(scene, MACHINES), what="the Machine is deleted")
    assert not any("exclude" in name for name in scene.machine()["metadata"].get("annotations", {})), "drained"
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        assert not deleting(scene, kind)
        assert scene.child(kind) is not None
    assert OURS in finalizers(scene)
    assert sent(control_plane, mark, scene.namespace) == ["delete machines"]
    scene.let_machine_go()
    gone(scene)
    scene.wait_gone()
    order = sent(control_plane, mark, scene.namespace)
    assert order[0] == "delete machines"
    assert sorted(order[1:3]) == ["delete standinbootstraps", "delete standinmachines"]
    assert order[3:] == ["patch scheduledmachines"], "the finalizer last"


@pytest.mark.contract("B3.2")
def test_what_is_left_after_the_machine_is_waited_for(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    held = {"metadata": {"finalizers": ["example.com/cloud"]}}
    scene.api.patch(*INFRASTRUCTURE, "web", scene.namespace, held)
    scene.delete()
    eventually(lambda: scene.child(BOOTSTRAP) is None and deleting(scene, INFRASTRUCTURE), what="one is held")
    status = scene.wait_phase("ShuttingDown", "DeletingLeftovers")
    assert "StandInMachine" in status["message"]
    assert OURS in finalizers(scene)
    scene.api.patch(*INFRASTRUCTURE, "web", scene.namespace, {"metadata": {"finalizers": None}})
    gone(scene)


@pytest.mark.contract("B3.2")
def test_a_deleted_one_is_not_started_whatever_its_schedule_says(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.api.patch(*MACHINE, "web", scene.namespace, {"metadata": {"finalizers": [OURS, "example.com/keep"]}})
    scene.delete()
    eventually(lambda: finalizers(scene) == ["example.com/keep"], what="ours is off")
    scene.active(True)
    # A later event that is handled proves that this one was.
    other = Scene(scene.api, scene.namespace, scene.provider, "other")
    other.create()
    other.wait_made()
    assert [scene.child(kind) for kind in CHILDREN] == [None, None, None]
    scene.api.patch(*MACHINE, "web", scene.namespace, {"metadata": {"finalizers": None}})


# B3.5 ---------------------------------------------------------------------------------------------------------------


def set_finalizers(scene: Scene, *names: str) -> Json:
    return scene.api.patch(*MACHINE, "web", scene.namespace, {"metadata": {"finalizers": list(names)}})


@pytest.mark.contract("B3.5")
def test_a_finalizer_that_comes_while_ours_is_being_added_is_kept(
    scene: Scene, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    with Gate(control_plane, scene.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        mark = control_plane.audit_log.mark()
        scene.create()
        gate.held()
        # Known by the time that the refusal comes: another try on the old state would be refused too.
        caught_up(manager, set_finalizers(scene, "example.com/theirs"))
        gate.release()
        eventually(lambda: set(finalizers(scene)) == {OURS, "example.com/theirs"}, what="both are there")
    own = select(control_plane.audit(since=mark), user=MANAGER_USER, resource="scheduledmachines", subresource="")
    patches = select(own, verbs="patch", namespace=scene.namespace)
    assert [event["responseStatus"]["code"] for event in patches] == [422, 200], "the first came too late"


@pytest.mark.contract("B3.5")
def test_the_finalizers_of_others_survive_although_they_change_while_ours_is_removed(
    scene: Scene, control_plane: ControlPlane, manager: ManagerProcess
) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    set_finalizers(scene, "example.com/before", OURS, "example.com/after", "example.com/last")
    with Gate(control_plane, scene.namespace, [OWN_RESOURCE], ["UPDATE"]) as gate:
        mark = control_plane.audit_log.mark()
        scene.delete()
        gate.held()
        # Ours moves to the front, and where it was there is now another's.
        caught_up(manager, set_finalizers(scene, OURS, "example.com/after", "example.com/last"))
        gate.release()
        eventually(lambda: OURS not in finalizers(scene), what="ours is off")
    assert finalizers(scene) == ["example.com/after", "example.com/last"]
    own = select(control_plane.audit(since=mark), user=MANAGER_USER, resource="scheduledmachines", subresource="")
    patches = select(own, verbs="patch", namespace=scene.namespace)
    assert [event["responseStatus"]["code"] for event in patches] == [422, 200]
    # From here on it is theirs alone, whatever they do.
    mark = control_plane.audit_log.mark()
    set_finalizers(scene, "example.com/last")
    other = Scene(scene.api, scene.namespace, scene.provider, "other")
    other.create()
    other.wait_phase("Inactive", "ScheduleInactive")
    assert not select(writes(control_plane, mark, scene.namespace), resource="scheduledmachines", name="web")
    set_finalizers(scene)
    gone(scene)


# B3.6 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.contract("B3.6")
@pytest.mark.timeout(180)
def test_a_namespace_with_ten_live_machines_goes_by_itself(
    api: Api, provider: ProviderKind, manager: ManagerProcess, control_plane: ControlPlane
) -> None:
    namespace = make_namespace(api, "b3-6")
    provider.create(namespace, active=True)
    given = {"schedule": provider.reference(), "gracefulShutdownTimeout": "1h"}
    scenes = [Scene(api, namespace, provider, f"m{number}") for number in range(10)]
    api.create_many(machine(scene.name, namespace, **given) for scene in scenes)
    for scene in scenes:
        scene.wait_made(30)
        scene.hold_machine()
    for scene in scenes[:5]:
        adopt(scene)
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
    after = Scene(api, other, provider)
    after.create()
    after.wait_made()
    assert writes(control_plane, mark, namespace) == []
    api.delete("v1", "Namespace", other)


# B3.7 ---------------------------------------------------------------------------------------------------------------


def release(scene: Scene) -> bool:
    """Takes Cluster API's finalizer off the Machine, and no other: the collector puts its own on and off meanwhile."""
    held = scene.machine()["metadata"]["finalizers"]
    index = held.index("machine.cluster.x-k8s.io")
    path = f"/metadata/finalizers/{index}"
    patch = [{"op": "test", "path": path, "value": held[index]}, {"op": "remove", "path": path}]
    try:
        scene.api.patch(*MACHINES, "web", scene.namespace, patch, how="json")
    except ApiError as error:
        raise AssertionError(f"the finalizers changed meanwhile: {error}") from error
    return True


@pytest.mark.contract("B3.7")
def test_deletion_in_the_foreground_ends_and_may_cut_the_drain_short_as_documented(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.hold_machine()
    adopt(scene)
    scene.delete(propagation="Foreground")
    # Whose deletion of the Machine comes first is a race: the collector's in the foreground, which takes what the
    # Machine owns while it still drains (that is what is warned of), or ours in the background. Both have to end.
    eventually(lambda: deleting(scene, MACHINES), 60, what="the Machine is being deleted")
    assert set(finalizers(scene)) == {OURS, "foregroundDeletion"}
    scene.wait_phase("ShuttingDown", "NodeDraining")
    eventually(lambda: release(scene), what="Cluster API lets the Machine go")
    gone(scene, 60)
    scene.wait_gone()
    [row] = [line for line in (REPOSITORY / "docs" / "contract.md").read_text().splitlines() if "| B3.7 |" in line]
    assert "drain short" in row


@pytest.mark.contract("B3.7")
def test_a_machine_that_is_down_goes_in_the_foreground_too(scene: Scene) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.delete(propagation="Foreground")
    gone(scene, 60)
