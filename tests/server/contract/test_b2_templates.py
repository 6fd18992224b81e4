"""B2.4: which templates are taken, and when a change of one counts."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import ApiError, ControlPlane
from controlplane.audit import select
from support import eventually
from support.children import CRD, InfrastructureKind, wait_absent, wait_present
from support.machines import bootstrap, infrastructure
from support.observing import writes
from support.scene import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scene

Json = dict[str, Any]


@pytest.fixture
def own_kind(scene: Scene) -> Iterator[InfrastructureKind]:
    """An infrastructure kind of this test's own, not installed yet."""
    kind = InfrastructureKind(scene.api, f"Own{secrets.token_hex(3).capitalize()}Machine")
    yield kind
    kind.remove()


def nothing_created(plane: ControlPlane, mark: int, namespace: str) -> bool:
    return not select(writes(plane, mark, namespace), verbs="create")


def refused(scene: Scene, *words: str) -> Json:
    """Wait until the refusal to create says all these words; the status."""

    def told() -> Json:
        status = scene.wait_phase("Error", "MachineCreationFailed")
        for word in words:
            assert word in status["message"], status["message"]
        return status

    return eventually(told, what=f"refused because of {words}")


@pytest.mark.contract("B2.4")
def test_a_kind_without_the_contract_label_is_refused_before_anything_is_created(
    scene: Scene, control_plane: ControlPlane
) -> None:
    mark = control_plane.audit_log.mark()
    scene.create(infrastructureSpec=infrastructure(kind="UnlabelledMachine"))
    scene.active(True)
    name = "unlabelledmachines.infrastructure.cluster.x-k8s.io"
    refused(scene, name, "no Cluster API contract label", "cluster.x-k8s.io/v1beta2")
    assert scene.condition("Stalled")["status"] == "True"
    assert nothing_created(control_plane, mark, scene.namespace)
    # The cure is another kind, and it works at once.
    scene.edit(infrastructureSpec=infrastructure())
    scene.wait_made()
    scene.wait_phase("Active", "MachineCreated")
    assert scene.condition("Stalled") == {}


@pytest.mark.contract("B2.4")
def test_kinds_that_are_installed_and_labelled_later_are_used_at_once(
    scene: Scene, control_plane: ControlPlane, own_kind: InfrastructureKind
) -> None:
    mark = control_plane.audit_log.mark()
    scene.create(infrastructureSpec=own_kind.spec)
    scene.active(True)
    refused(scene, own_kind.kind, "not installed")
    assert scene.condition("Stalled")["status"] == "True"
    own_kind.install(labelled=False)
    refused(scene, own_kind.name, "no Cluster API contract label")
    assert nothing_created(control_plane, mark, scene.namespace)
    own_kind.label()
    wait_present(scene, MACHINES, BOOTSTRAP, own_kind.resource)
    scene.wait_phase("Active", "MachineCreated")
    scene.active(False)
    wait_absent(scene, MACHINES, BOOTSTRAP, own_kind.resource)
    scene.wait_phase("Inactive", "ScheduleInactive")
    # Removed with its objects while the machine is not there, it is missed again when it is wanted.
    own_kind.remove()
    eventually(lambda: scene.api.find(*CRD, own_kind.name) is None, what="it is not served")
    scene.active(True)
    refused(scene, own_kind.kind)


@pytest.mark.contract("B2.4")
@pytest.mark.parametrize(
    ("templates", "words"),
    [
        (
            {"infrastructureSpec": infrastructure("infrastructure.cluster.x-k8s.io/v9")},
            ("StandInMachine (infrastructure.cluster.x-k8s.io/v9)", "version v9 is not served", "v1beta1"),
        ),
        (
            {"bootstrapSpec": bootstrap("bootstrap.cluster.x-k8s.io/v9")},
            ("StandInBootstrap (bootstrap.cluster.x-k8s.io/v9)", "version v9 is not served", "v1beta1"),
        ),
        ({"bootstrapSpec": bootstrap(kind="NoSuchBootstrap")}, ("NoSuchBootstrap", "not installed")),
    ],
    ids=["infrastructure version", "bootstrap version", "bootstrap kind"],
)
def test_what_is_not_served_is_named_with_what_is(
    scene: Scene, control_plane: ControlPlane, templates: Json, words: tuple[str, ...]
) -> None:
    mark = control_plane.audit_log.mark()
    scene.create(**templates)
    scene.active(True)
    refused(scene, *words)
    assert scene.condition("Stalled")["status"] == "True"
    assert nothing_created(control_plane, mark, scene.namespace)
    scene.edit(bootstrapSpec=bootstrap(), infrastructureSpec=infrastructure())
    scene.wait_made()


RESERVED = ("kubernetes.io/x", "k8s.io/x", "cluster.x-k8s.io/cluster-name", "5spot.finos.org/scheduled-machine")


@pytest.mark.contract("B2.4")
@pytest.mark.parametrize(
    "changes",
    [
        *({"machineTemplate": {"labels": {key: "x"}}} for key in RESERVED),
        {"machineTemplate": {"annotations": {"5spot.finos.org/template-hash": "x"}}},
        {"bootstrapSpec": bootstrap(metadata={"labels": {"cluster.x-k8s.io/x": "x"}})},
        {"infrastructureSpec": infrastructure(metadata={"annotations": {"k8s.io/x": "x"}})},
        {"infrastructureSpec": infrastructure(metadata={"name": "mine"})},
        {"bootstrapSpec": bootstrap(metadata={"namespace": "kube-system"})},
    ],
    ids=str,
)
def test_templates_may_neither_use_reserved_prefixes_nor_name_their_objects(scene: Scene, changes: Json) -> None:
    with pytest.raises(ApiError) as caught:
        scene.create(**changes)
    assert caught.value.status in {403, 422}
    [field] = changes
    assert "reserved" in str(caught.value) or f"{field}.metadata" in str(caught.value)
    assert scene.find() is None


@pytest.mark.contract("B2.4")
def test_version_and_failure_domain_are_copied_to_the_machine(scene: Scene) -> None:
    scene.create(machineTemplate={"version": "v1.34.2", "failureDomain": "zone-b"})
    scene.active(True)
    scene.wait_made()
    spec = scene.machine()["spec"]
    assert (spec["version"], spec["failureDomain"]) == ("v1.34.2", "zone-b")


@pytest.mark.contract("B2.4")
@pytest.mark.parametrize(
    "edit",
    [
        {"infrastructureSpec": infrastructure(spec={"size": "small"})},
        {"bootstrapSpec": bootstrap(spec={"script": "new"})},
        {"machineTemplate": {"labels": {"team": "new"}}},
        {"nodeDrainTimeout": "7m"},
    ],
    ids=["infrastructure", "bootstrap", "machine", "drain timeout"],
)
def test_an_edit_while_active_waits_for_the_next_activation(
    scene: Scene, control_plane: ControlPlane, edit: Json
) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_condition("UpToDate", "True")
    before = {kind: scene.child(kind) for kind in CHILDREN}
    mark = control_plane.audit_log.mark()
    scene.edit(**edit)
    condition = scene.wait_condition("UpToDate", "False", "TemplateChanged")
    assert "next activation" in condition["message"]
    assert {kind: scene.child(kind) for kind in CHILDREN} == before
    # Taken back, nothing was lost by it.
    assert {e["objectRef"]["resource"] for e in writes(control_plane, mark, scene.namespace)} == {"scheduledmachines"}
    scene.active(False)
    scene.wait_gone()
    scene.wait_phase("Inactive", "ScheduleInactive")
    assert scene.condition("UpToDate") == {}, "nothing is there to compare"
    scene.active(True)
    scene.wait_made()
    scene.wait_condition("UpToDate", "True")
    made = {kind: scene.child(kind) or {} for kind in CHILDREN}
    assert made[INFRASTRUCTURE]["spec"].get("size") == ("small" if "infrastructureSpec" in edit else "large")
    assert made[BOOTSTRAP]["spec"].get("script") == ("new" if "bootstrapSpec" in edit else None)
    assert made[MACHINES]["metadata"]["labels"].get("team") == ("new" if "machineTemplate" in edit else None)
    drain = made[MACHINES]["spec"]["deletion"]["nodeDrainTimeoutSeconds"]
    assert drain == (420 if "nodeDrainTimeout" in edit else 300)


@pytest.mark.contract("B2.4")
def test_an_edit_that_is_taken_back_leaves_the_machine_up_to_date(scene: Scene) -> None:
    scene.create()
    scene.active(True)
    scene.wait_made()
    scene.wait_condition("UpToDate", "True")
    scene.edit(infrastructureSpec=infrastructure(spec={"size": "small"}))
    scene.wait_condition("UpToDate", "False", "TemplateChanged")
    scene.edit(infrastructureSpec=infrastructure(spec={"size": "large"}))
    scene.wait_condition("UpToDate", "True")
    # What the machine is not made from does not count.
    scene.edit(priority=9, gracefulShutdownTimeout="3m")
    generation = scene.get()["metadata"]["generation"]
    eventually(lambda: scene.status["observedGeneration"] == generation, what="the edit was seen")
    assert scene.condition("UpToDate")["status"] == "True"
