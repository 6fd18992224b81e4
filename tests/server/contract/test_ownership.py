"""B2.2: which objects are ours, and that everything else is never touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER
from support import eventually
from support.children import LABEL, OTHER_INFRASTRUCTURE, UID, controller_reference, wait_read
from support.measurements import writes
from support.refusals import foreign
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("change", [None, "somebody-else"], ids=["lost", "changed"])
def test_a_label_that_was_lost_is_put_back(scenario: Scenario, control_plane: ControlPlane, change: str | None) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    uid = scenario.machine()["metadata"]["uid"]
    mark = control_plane.audit_log.mark()
    labels = {LABEL: change, "kept": "yes"}
    scenario.api.patch(*MACHINES, "web", scenario.namespace, {"metadata": {"labels": labels}})
    eventually(lambda: scenario.machine()["metadata"]["labels"].get(LABEL) == "web", what="the label is back")
    metadata = scenario.machine()["metadata"]
    assert metadata["uid"] == uid, "a Machine is ours by its owner, whatever its labels say"
    assert metadata["labels"]["kept"] == "yes"
    patches = select(writes(control_plane, mark, scenario.namespace), resource="machines")
    assert [event["verb"] for event in patches] == ["patch"]


def another(scenario: Scenario) -> Json:
    """An object of the namespace that can own others."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": scenario.namespace}}
    return scenario.api.create(body)


def marks(scenario: Scenario, which: str) -> Json:
    """Metadata that looks like ours and is not enough."""
    label = {LABEL: "web", "cluster.x-k8s.io/cluster-name": "prod"}
    uid = scenario.get()["metadata"]["uid"]
    found: dict[str, Json] = {
        "nothing": {},
        "our labels": {"labels": label},
        "the mark of another": {"labels": label, "annotations": {UID: "5b7c1f0e-0000-4000-8000-000000000000"}},
        "our mark but another controller": {
            "labels": label,
            "annotations": {UID: uid},
            "ownerReferences": [controller_reference(another(scenario))],
        },
    }
    return found[which]


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE], ids=["bootstrap", "infrastructure"])
@pytest.mark.parametrize("which", ["nothing", "our labels", "the mark of another", "our mark but another controller"])
def test_a_foreign_bootstrap_or_infrastructure_object_is_never_touched(
    scenario: Scenario, control_plane: ControlPlane, kind: tuple[str, str], which: str
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    before = scenario.api.create(foreign(kind, scenario.namespace, **marks(scenario, which)))
    mark = control_plane.audit_log.mark()
    scenario.active(True)
    scenario.wait_phase("Error", "MachineCreationFailed")
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.delete()
    eventually(lambda: scenario.find() is None, what="the ScheduledMachine is gone")
    assert scenario.child(kind) == before
    # A try to create it is all that the server can have heard, where its event came after the flip.
    tried = select(writes(control_plane, mark, scenario.namespace), resource=f"{kind[1].lower()}s")
    assert {(event["verb"], event["responseStatus"]["code"]) for event in tried} <= {("create", 409)}


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("which", ["nothing", "our labels", "our mark but another controller"])
def test_a_foreign_machine_is_never_touched(scenario: Scenario, control_plane: ControlPlane, which: str) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    before = scenario.api.create(foreign(MACHINES, scenario.namespace, **marks(scenario, which)))
    # Where the flip is seen first, children are made before the name turns out to be taken.
    wait_read(scenario, MACHINES)
    mark = control_plane.audit_log.mark()
    scenario.active(True)
    status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert "machineRef" not in status, "it is not shown as ours"
    # A change of it may make another decision possible, so it is looked at again, and still left alone.
    before = scenario.api.patch(*MACHINES, "web", scenario.namespace, {"metadata": {"labels": {"seen": "yes"}}})
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.delete()
    eventually(lambda: scenario.find() is None, what="the ScheduledMachine is gone")
    assert scenario.child(MACHINES) == before
    resources = {event["objectRef"]["resource"] for event in writes(control_plane, mark, scenario.namespace)}
    assert resources == {"scheduledmachines"}


@pytest.mark.contract("B2.2")
def test_what_a_living_machine_uses_that_is_not_ours_is_left_alone_though_it_has_our_mark(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    uid = scenario.get()["metadata"]["uid"]
    stranger = scenario.api.create(foreign(MACHINES, scenario.namespace))
    mark = control_plane.audit_log.mark()
    # Controlled by a Machine that lives; the garbage collector would take it otherwise, and prove nothing.
    owners = [controller_reference(stranger)]
    scenario.api.create(foreign(INFRASTRUCTURE, scenario.namespace, annotations={UID: uid}, ownerReferences=owners))
    scenario.api.create(foreign(BOOTSTRAP, scenario.namespace, annotations={UID: uid}))
    eventually(lambda: scenario.child(BOOTSTRAP) is None, what="what nothing uses is gone")
    deleted = select(writes(control_plane, mark, scenario.namespace), verbs="delete", user=MANAGER_USER)
    assert {event["objectRef"]["resource"] for event in deleted} == {"standinbootstraps"}
    assert scenario.child(INFRASTRUCTURE) is not None
    assert scenario.child(MACHINES) == stranger


@pytest.fixture
def neighbour(scenario: Scenario) -> Iterator[Scenario]:
    """A second ScheduledMachine of the same schedule."""
    other = Scenario(scenario.api, scenario.namespace, scenario.provider, "neighbour")
    other.create()
    yield other
    other.delete(missing_ok=True)


@pytest.mark.contract("B2.2")
def test_what_belongs_to_a_namesake_of_before_is_not_inherited(
    scenario: Scenario, neighbour: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    for each in (scenario, neighbour):
        each.wait_made()
    old = {kind: scenario.child(kind) for kind in (BOOTSTRAP, INFRASTRUCTURE)}
    # Restored from a backup under the same name: a new uid, and objects that carry the old one.
    orphans = []
    for kind, child in old.items():
        assert child is not None
        metadata = {"labels": child["metadata"]["labels"], "annotations": child["metadata"]["annotations"]}
        orphans.append(foreign(kind, scenario.namespace, **metadata))
    scenario.delete()
    eventually(lambda: scenario.find() is None, what="the ScheduledMachine is gone")
    scenario.wait_gone()
    made = [scenario.api.create(body) for body in orphans]
    scenario.create()
    scenario.wait_phase("Error", "MachineCreationFailed")
    assert scenario.child(MACHINES) is None
    assert [scenario.child(kind) for kind in old] == made
    assert all(neighbour.child(kind) is not None for kind in CHILDREN), "nobody else is affected"
    assert neighbour.wait_phase("Active")["machineRef"]["name"] == "neighbour"


@pytest.mark.contract("B2.2")
def test_other_kinds_under_the_name_with_our_label_alone_are_left_alone(
    scenario: Scenario, control_plane: ControlPlane, drop_status: Callable[[Scenario], None]
) -> None:
    theirs = scenario.api.create(foreign(OTHER_INFRASTRUCTURE, scenario.namespace, labels={LABEL: "web"}))
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    mark = control_plane.audit_log.mark()
    scenario.active(False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    # Not even by the search for what is left after a loss of status.
    drop_status(scenario)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="list", resource="othermachines")
    assert scenario.child(OTHER_INFRASTRUCTURE) == theirs


@pytest.fixture
def drop_status() -> Callable[[Scenario], None]:
    """Loses the status of a ScheduledMachine, as a restore from a backup does."""

    def drop(scenario: Scenario) -> None:
        nothing = dict.fromkeys(scenario.status)
        scenario.api.patch_status(
            "5spot.finos.org/v1beta1", "ScheduledMachine", scenario.name, scenario.namespace, nothing
        )

    return drop
