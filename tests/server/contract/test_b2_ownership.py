"""B2.2: which objects are ours, and that everything else is never touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from support import eventually
from support.children import LABEL, OTHER_INFRASTRUCTURE, UID, controller_reference, wait_read
from support.manager import MANAGER_USER
from support.observing import writes
from support.refusing import foreign
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

Json = dict[str, Any]


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("change", [None, "somebody-else"], ids=["lost", "changed"])
def test_a_label_that_was_lost_is_put_back(scene: Scene, control_plane: ControlPlane, change: str | None) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_phase("Active")
    uid = scene.machine()["metadata"]["uid"]
    mark = control_plane.audit_log.mark()
    labels = {LABEL: change, "kept": "yes"}
    scene.api.patch(*MACHINES, "web", scene.namespace, {"metadata": {"labels": labels}})
    eventually(lambda: scene.machine()["metadata"]["labels"].get(LABEL) == "web", what="the label is back")
    metadata = scene.machine()["metadata"]
    assert metadata["uid"] == uid, "a Machine is ours by its owner, whatever its labels say"
    assert metadata["labels"]["kept"] == "yes"
    patches = select(writes(control_plane, mark, scene.namespace), resource="machines")
    assert [event["verb"] for event in patches] == ["patch"]


def another(scene: Scene) -> Json:
    """An object of the namespace that can own others."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": scene.namespace}}
    return scene.api.create(body)


def marks(scene: Scene, which: str) -> Json:
    """Metadata that looks like ours and is not enough."""
    label = {LABEL: "web", "cluster.x-k8s.io/cluster-name": "prod"}
    uid = scene.get()["metadata"]["uid"]
    found: dict[str, Json] = {
        "nothing": {},
        "our labels": {"labels": label},
        "the mark of another": {"labels": label, "annotations": {UID: "5b7c1f0e-0000-4000-8000-000000000000"}},
        "our mark but another controller": {
            "labels": label,
            "annotations": {UID: uid},
            "ownerReferences": [controller_reference(another(scene))],
        },
    }
    return found[which]


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE], ids=["bootstrap", "infrastructure"])
@pytest.mark.parametrize("which", ["nothing", "our labels", "the mark of another", "our mark but another controller"])
def test_a_foreign_bootstrap_or_infrastructure_object_is_never_touched(
    scene: Scene, control_plane: ControlPlane, kind: tuple[str, str], which: str
) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    before = scene.api.create(foreign(kind, scene.namespace, **marks(scene, which)))
    mark = control_plane.audit_log.mark()
    scene.active(True)
    scene.wait_phase("Error", "MachineCreationFailed")
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.delete()
    eventually(lambda: scene.find() is None, what="the ScheduledMachine is gone")
    assert scene.child(kind) == before
    # A try to create it is all that the server can have heard, where its event came after the flip.
    tried = select(writes(control_plane, mark, scene.namespace), resource=f"{kind[1].lower()}s")
    assert {(event["verb"], event["responseStatus"]["code"]) for event in tried} <= {("create", 409)}


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("which", ["nothing", "our labels", "our mark but another controller"])
def test_a_foreign_machine_is_never_touched(scene: Scene, control_plane: ControlPlane, which: str) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    before = scene.api.create(foreign(MACHINES, scene.namespace, **marks(scene, which)))
    # Where the flip is seen first, children are made before the name turns out to be taken.
    wait_read(scene, MACHINES)
    mark = control_plane.audit_log.mark()
    scene.active(True)
    status = scene.wait_phase("Error", "MachineCreationFailed")
    assert "machineRef" not in status, "it is not shown as ours"
    # A change of it may make another decision possible, so it is looked at again, and still left alone.
    before = scene.api.patch(*MACHINES, "web", scene.namespace, {"metadata": {"labels": {"seen": "yes"}}})
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.delete()
    eventually(lambda: scene.find() is None, what="the ScheduledMachine is gone")
    assert scene.child(MACHINES) == before
    resources = {event["objectRef"]["resource"] for event in writes(control_plane, mark, scene.namespace)}
    assert resources == {"scheduledmachines"}


@pytest.mark.contract("B2.2")
def test_an_object_with_our_mark_is_ours_also_when_a_machine_of_our_name_controls_it(
    scene: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.wait_phase("Inactive", "ScheduleInactive")
    uid = scene.get()["metadata"]["uid"]
    stranger = scene.api.create(foreign(MACHINES, scene.namespace))
    mark = control_plane.audit_log.mark()
    # Controlled by a Machine that lives; the garbage collector would take it otherwise, and prove nothing.
    owners = [controller_reference(stranger)]
    scene.api.create(foreign(INFRASTRUCTURE, scene.namespace, annotations={UID: uid}, ownerReferences=owners))
    scene.api.create(foreign(BOOTSTRAP, scene.namespace, annotations={UID: uid}))
    eventually(lambda: scene.child(BOOTSTRAP) is None and scene.child(INFRASTRUCTURE) is None, what="both are gone")
    deleted = select(writes(control_plane, mark, scene.namespace), verbs="delete", user=MANAGER_USER)
    assert {event["objectRef"]["resource"] for event in deleted} == {"standinbootstraps", "standinmachines"}
    assert scene.child(MACHINES) == stranger


@pytest.fixture
def neighbour(scene: Scene) -> Iterator[Scene]:
    """A second ScheduledMachine of the same schedule."""
    other = Scene(scene.api, scene.namespace, scene.provider, "neighbour")
    other.create()
    yield other
    other.delete(missing_ok=True)


@pytest.mark.contract("B2.2")
def test_what_belongs_to_a_namesake_of_before_is_not_inherited(
    scene: Scene, neighbour: Scene, control_plane: ControlPlane
) -> None:
    scene.create()
    scene.active(True)
    for each in (scene, neighbour):
        each.wait_made()
    old = {kind: scene.child(kind) for kind in (BOOTSTRAP, INFRASTRUCTURE)}
    # Restored from a backup under the same name: a new uid, and objects that carry the old one.
    orphans = []
    for kind, child in old.items():
        assert child is not None
        metadata = {"labels": child["metadata"]["labels"], "annotations": child["metadata"]["annotations"]}
        orphans.append(foreign(kind, scene.namespace, **metadata))
    scene.delete()
    eventually(lambda: scene.find() is None, what="the ScheduledMachine is gone")
    scene.wait_gone()
    made = [scene.api.create(body) for body in orphans]
    scene.create()
    scene.wait_phase("Error", "MachineCreationFailed")
    assert scene.child(MACHINES) is None
    assert [scene.child(kind) for kind in old] == made
    assert all(neighbour.child(kind) is not None for kind in CHILDREN), "nobody else is affected"
    assert neighbour.wait_phase("Active")["machineRef"]["name"] == "neighbour"


@pytest.mark.contract("B2.2")
def test_other_kinds_under_the_name_with_our_label_alone_are_left_alone(
    scene: Scene, control_plane: ControlPlane, drop_status: Callable[[Scene], None]
) -> None:
    theirs = scene.api.create(foreign(OTHER_INFRASTRUCTURE, scene.namespace, labels={LABEL: "web"}))
    scene.create()
    scene.active(True)
    scene.wait_made()
    mark = control_plane.audit_log.mark()
    scene.active(False)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    # Not even by the search for what is left after a loss of status.
    drop_status(scene)
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="list", resource="othermachines")
    assert scene.child(OTHER_INFRASTRUCTURE) == theirs


@pytest.fixture
def drop_status() -> Callable[[Scene], None]:
    """Loses the status of a ScheduledMachine, as a restore from a backup does."""

    def drop(scene: Scene) -> None:
        nothing = dict.fromkeys(scene.status)
        scene.api.patch_status("5spot.finos.org/v1beta1", "ScheduledMachine", scene.name, scene.namespace, nothing)

    return drop
