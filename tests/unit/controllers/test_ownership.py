"""B2.2: which objects are ours, and that everything else is foreign."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fivespot.api import names
from fivespot.controllers.scheduledmachine.cluster_api import MachineView
from fivespot.controllers.scheduledmachine.ownership import child_is_ours, machine_is_ours
from fivespot.runtime import GroupKind, Head, OwnerReference
from unit.controllers.build import BOOTSTRAP, INFRASTRUCTURE, NAME, NAMESPACE, UID, controller, machine

KIND = INFRASTRUCTURE.group_kind
LABEL = {names.LABEL_MACHINE: NAME}
MARK = {names.ANNOTATION_UID: UID}
PLAIN_OWNER = OwnerReference("cluster.x-k8s.io/v1beta2", "Cluster", "prod", "c-1")


def child(*owners: OwnerReference, labels: dict[str, str] | None = None, marks: dict[str, str] | None = None) -> Head:
    return Head(NAMESPACE, NAME, "i-1", 3, labels=labels or {}, annotations=marks or {}, owners=owners)


def ours(head: Head, of: MachineView | None, kind: GroupKind = KIND) -> bool:
    return child_is_ours(head, kind, owner_uid=UID, owner_name=NAME, machine=of)


@pytest.mark.contract("B2.2")
def test_a_machine_is_ours_by_its_controller_and_by_nothing_else() -> None:
    assert machine_is_ours(machine(labels={}, annotations={}).head, UID)
    assert not machine_is_ours(machine(ours=False).head, UID)
    copied = replace(machine().head, owners=())
    assert not machine_is_ours(copied, UID)
    plain = OwnerReference(names.API_VERSION, names.KIND, NAME, UID)
    assert not machine_is_ours(replace(copied, owners=(plain,)), UID)


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize("marks", [{}, MARK, {names.ANNOTATION_UID: "theirs"}])
def test_what_our_machine_controls_is_ours(marks: dict[str, str]) -> None:
    assert ours(child(controller("Machine", "m-1"), marks=marks), machine())


@pytest.mark.contract("B2.2")
def test_what_carries_our_uid_and_has_no_controller_is_ours() -> None:
    assert ours(child(marks=MARK), None)
    assert ours(child(PLAIN_OWNER, marks=MARK), None)
    assert not ours(child(marks={names.ANNOTATION_UID: "theirs"}), None)
    assert not ours(child(labels=LABEL), None)


@pytest.mark.contract("B2.2")
def test_what_carries_our_uid_and_belongs_to_a_machine_of_our_name_is_ours_though_that_is_gone() -> None:
    assert ours(child(controller("Machine", "gone"), marks=MARK), None)
    assert ours(child(controller("Machine", "gone"), marks=MARK), machine(uid="m-2"))


@pytest.mark.contract("B2.2")
@pytest.mark.parametrize(
    "owner",
    [
        controller("Machine", "x", name="another"),
        controller("MachinePool", "x"),
        controller("Machine", "x", api_version="example.com/v1"),
        controller("Machine", "x", api_version="cluster.x-k8s.io.example.com/v1"),
    ],
)
def test_what_another_controller_holds_is_foreign_though_it_carries_our_uid(owner: OwnerReference) -> None:
    assert not ours(child(owner, marks=MARK, labels=LABEL), machine())


@pytest.mark.contract("B2.2")
def test_an_object_of_the_existing_5_spot_is_ours_if_our_machine_refers_to_it() -> None:
    assert ours(child(labels=LABEL), machine())
    assert not ours(child(labels=LABEL), machine(), GroupKind(KIND.group, "Another"))
    assert not ours(child(labels=LABEL), None)
    assert not ours(child(labels=LABEL), machine(infrastructure=None))
    assert not ours(child(labels={names.LABEL_MACHINE: "another"}), machine())
    assert not ours(child(), machine())
    assert not ours(child(controller("Machine", "other", name="another"), labels=LABEL), machine())


@pytest.mark.contract("B2.2")
def test_the_mark_of_another_scheduled_machine_beats_our_label() -> None:
    assert not ours(child(labels=LABEL, marks={names.ANNOTATION_UID: "theirs"}), machine())


@pytest.mark.contract("B2.2")
def test_a_bootstrap_object_is_judged_alike() -> None:
    assert ours(child(labels=LABEL), machine(), BOOTSTRAP.group_kind)
