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
from support.measurements import writes
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]


@pytest.fixture
def own_kind(scenario: Scenario) -> Iterator[InfrastructureKind]:
    """An infrastructure kind of this test's own, not installed yet."""
    kind = InfrastructureKind(scenario.api, f"Own{secrets.token_hex(3).capitalize()}Machine")
    yield kind
    kind.remove()


def nothing_created(plane: ControlPlane, mark: int, namespace: str) -> bool:
    return not select(writes(plane, mark, namespace), verbs="create")


def refused(scenario: Scenario, *words: str) -> Json:
    """Wait until the refusal to create says all these words; the status."""

    def told() -> Json:
        status = scenario.wait_phase("Error", "MachineCreationFailed")
        for word in words:
            assert word in status["message"], status["message"]
        return status

    return eventually(told, what=f"refused because of {words}")


@pytest.mark.contract("B2.4")
def test_a_kind_without_the_contract_label_is_refused_before_anything_is_created(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    mark = control_plane.audit_log.mark()
    scenario.create(infrastructureSpec=infrastructure(kind="UnlabelledMachine"))
    scenario.active(True)
    name = "unlabelledmachines.infrastructure.cluster.x-k8s.io"
    refused(scenario, name, "no Cluster API contract label", "cluster.x-k8s.io/v1beta2")
    assert scenario.condition("Stalled")["status"] == "True"
    assert nothing_created(control_plane, mark, scenario.namespace)
    # The cure is another kind, and it works at once.
    scenario.edit(infrastructureSpec=infrastructure())
    scenario.wait_made()
    scenario.wait_phase("Active", "MachineCreated")
    assert scenario.condition("Stalled") == {}


@pytest.mark.contract("B2.4")
def test_kinds_that_are_installed_and_labelled_later_are_used_at_once(
    scenario: Scenario, control_plane: ControlPlane, own_kind: InfrastructureKind
) -> None:
    mark = control_plane.audit_log.mark()
    scenario.create(infrastructureSpec=own_kind.spec)
    scenario.active(True)
    refused(scenario, own_kind.kind, "not installed")
    assert scenario.condition("Stalled")["status"] == "True"
    own_kind.install(labelled=False)
    refused(scenario, own_kind.name, "no Cluster API contract label")
    assert nothing_created(control_plane, mark, scenario.namespace)
    own_kind.label()
    wait_present(scenario, MACHINES, BOOTSTRAP, own_kind.resource)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.active(False)
    wait_absent(scenario, MACHINES, BOOTSTRAP, own_kind.resource)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    # Removed with its objects while the machine is not there, it is missed again when it is wanted.
    own_kind.remove()
    eventually(lambda: scenario.api.find(*CRD, own_kind.name) is None, what="it is not served")
    scenario.active(True)
    refused(scenario, own_kind.kind)


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
    scenario: Scenario, control_plane: ControlPlane, templates: Json, words: tuple[str, ...]
) -> None:
    mark = control_plane.audit_log.mark()
    scenario.create(**templates)
    scenario.active(True)
    refused(scenario, *words)
    assert scenario.condition("Stalled")["status"] == "True"
    assert nothing_created(control_plane, mark, scenario.namespace)
    scenario.edit(bootstrapSpec=bootstrap(), infrastructureSpec=infrastructure())
    scenario.wait_made()


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
def test_templates_may_neither_use_reserved_prefixes_nor_name_their_objects(scenario: Scenario, changes: Json) -> None:
    with pytest.raises(ApiError) as caught:
        scenario.create(**changes)
    assert caught.value.status in {403, 422}
    [field] = changes
    assert "reserved" in str(caught.value) or f"{field}.metadata" in str(caught.value)
    assert scenario.find() is None


@pytest.mark.contract("B2.4")
def test_version_and_failure_domain_are_copied_to_the_machine(scenario: Scenario) -> None:
    scenario.create(machineTemplate={"version": "v1.34.2", "failureDomain": "zone-b"})
    scenario.active(True)
    scenario.wait_made()
    spec = scenario.machine()["spec"]
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
    scenario: Scenario, control_plane: ControlPlane, edit: Json
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_condition("UpToDate", "True")
    before = {kind: scenario.child(kind) for kind in CHILDREN}
    mark = control_plane.audit_log.mark()
    scenario.edit(**edit)
    condition = scenario.wait_condition("UpToDate", "False", "TemplateChanged")
    assert "next activation" in condition["message"]
    assert {kind: scenario.child(kind) for kind in CHILDREN} == before
    # Taken back, nothing was lost by it.
    assert {e["objectRef"]["resource"] for e in writes(control_plane, mark, scenario.namespace)} == {
        "scheduledmachines"
    }
    scenario.active(False)
    scenario.wait_gone()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    assert scenario.condition("UpToDate") == {}, "nothing is there to compare"
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_condition("UpToDate", "True")
    made = {kind: scenario.child(kind) or {} for kind in CHILDREN}
    assert made[INFRASTRUCTURE]["spec"].get("size") == ("small" if "infrastructureSpec" in edit else "large")
    assert made[BOOTSTRAP]["spec"].get("script") == ("new" if "bootstrapSpec" in edit else None)
    assert made[MACHINES]["metadata"]["labels"].get("team") == ("new" if "machineTemplate" in edit else None)
    drain = made[MACHINES]["spec"]["deletion"]["nodeDrainTimeoutSeconds"]
    assert drain == (420 if "nodeDrainTimeout" in edit else 300)


@pytest.mark.contract("B2.4")
def test_an_edit_that_is_taken_back_leaves_the_machine_up_to_date(scenario: Scenario) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_condition("UpToDate", "True")
    scenario.edit(infrastructureSpec=infrastructure(spec={"size": "small"}))
    scenario.wait_condition("UpToDate", "False", "TemplateChanged")
    scenario.edit(infrastructureSpec=infrastructure(spec={"size": "large"}))
    scenario.wait_condition("UpToDate", "True")
    # What the machine is not made from does not count.
    scenario.edit(priority=9, gracefulShutdownTimeout="3m")
    generation = scenario.get()["metadata"]["generation"]
    eventually(lambda: scenario.status["observedGeneration"] == generation, what="the edit was seen")
    assert scenario.condition("UpToDate")["status"] == "True"
