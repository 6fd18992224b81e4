"""B2.1: what the three objects look like, and the version of Cluster API at which Machines are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ControlPlane
from controlplane.audit import COMPLETE, STARTED, select
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.children import CRD
from support.gate import Gate
from support.refusals import conversion_dies
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

MACHINE_CRD = "machines.cluster.x-k8s.io"
OLD_FORM = {"apiVersion", "kind", "name", "namespace"}
NEW_FORM = {"apiGroup", "kind", "name"}


@pytest.mark.contract("B2.1")
def test_the_three_objects_have_our_name_and_marks_and_only_the_machine_an_owner(scenario: Scenario) -> None:
    template = {
        "labels": {"team": "batch"},
        "annotations": {"example.com/cost": "12"},
    }
    embedded = {"apiVersion": INFRASTRUCTURE[0], "kind": INFRASTRUCTURE[1], "spec": {"size": 3}, "metadata": template}
    scenario.create(machineTemplate=template, infrastructureSpec=embedded)
    scenario.active(True)
    scenario.wait_made()
    owner = scenario.get()
    found = {kind: scenario.child(kind) for kind in CHILDREN}
    hashes = set()
    for kind, child in found.items():
        assert child is not None
        metadata = child["metadata"]
        assert (metadata["name"], metadata["namespace"]) == ("web", scenario.namespace)
        assert metadata["labels"]["5spot.finos.org/scheduled-machine"] == "web"
        assert metadata["labels"]["cluster.x-k8s.io/cluster-name"] == "prod"
        assert metadata["annotations"]["5spot.finos.org/scheduled-machine-uid"] == owner["metadata"]["uid"]
        assert metadata["annotations"]["5spot.finos.org/schedule-ref"] == f"{scenario.provider.kind}/hours"
        hashes.add(metadata["annotations"]["5spot.finos.org/template-hash"])
        assert (metadata["labels"].get("team") == "batch") is (kind != BOOTSTRAP)
        assert (metadata["annotations"].get("example.com/cost") == "12") is (kind != BOOTSTRAP)
        if kind != MACHINES:
            assert "ownerReferences" not in metadata, "Cluster API could not adopt it"
    assert len(hashes) == 1
    infrastructure, machine = found[INFRASTRUCTURE], found[MACHINES]
    assert infrastructure is not None
    assert machine is not None
    assert infrastructure["spec"] == {"size": 3}
    assert machine["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "5spot.finos.org/v1beta1",
            "kind": "ScheduledMachine",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def store_machines_at(plane: ControlPlane, version: str) -> None:
    """Have the server store Machines at a version from now on, as an upgrade of Cluster API does."""
    versions = [{**v, "storage": v["name"] == version} for v in plane.api.get(*CRD, MACHINE_CRD)["spec"]["versions"]]
    plane.api.patch(*CRD, MACHINE_CRD, None, {"spec": {"versions": versions}})


def versions_used(plane: ControlPlane, since: int) -> dict[str, set[str]]:
    """The versions at which the manager used Machines, by verb; of a watch counts when it began."""
    found: dict[str, set[str]] = {}
    for event in select(plane.audit(since=since, stages=(COMPLETE, STARTED)), user=MANAGER_USER, resource="machines"):
        if event["verb"] == "watch" and event["stage"] != STARTED:
            continue
        found.setdefault(event["verb"], set()).add(event["objectRef"]["apiVersion"])
    return found


class Round:
    """A machine that comes, and later goes, in a namespace of its own, with what the manager sent for it."""

    def __init__(self, plane: ControlPlane, provider: ProviderKind) -> None:
        self.plane = plane
        namespace = make_namespace(plane.api, "b2-1")
        provider.create(namespace, active=True)
        self.scenario = Scenario(plane.api, namespace, provider)

    def up(self, *, create: bool = True) -> dict[str, Any]:
        """The Machine as the manager sent it."""
        with Gate(
            self.plane, self.scenario.namespace, [("cluster.x-k8s.io", "machines")], ["CREATE"], is_open=True
        ) as g:
            if create:
                self.scenario.create()
            self.scenario.active(True)
            sent: dict[str, Any] = g.held()["object"]
            self.scenario.wait_made()
            self.scenario.wait_phase("Active", "MachineCreated")
        return sent

    def down(self) -> None:
        self.scenario.active(False)
        self.scenario.wait_gone()
        self.scenario.wait_phase("Inactive", "ScheduleInactive")


def assert_form(sent: dict[str, Any], version: str) -> None:
    """Everything about a Machine follows its version, and nothing else."""
    spec = sent["spec"]
    assert sent["apiVersion"] == f"cluster.x-k8s.io/{version}"
    old = version == "v1beta1"
    for reference in (spec["bootstrap"]["configRef"], spec["infrastructureRef"]):
        assert set(reference) == (OLD_FORM if old else NEW_FORM)
    # B2.5
    if old:
        assert (spec["nodeDrainTimeout"], spec["nodeVolumeDetachTimeout"]) == ("300s", "300s")
        assert "deletion" not in spec
    else:
        assert spec["deletion"] == {"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 300}
        assert "nodeDrainTimeout" not in spec


@pytest.mark.long
@pytest.mark.contract("B2.1")
@pytest.mark.timeout(240)
def test_the_version_is_the_one_asked_for_if_served_and_else_the_one_that_is_stored(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    for stored, asked, expected in (
        ("v1beta2", "v1beta1", "v1beta1"),
        ("v1beta1", "v1beta2", "v1beta2"),
        ("v1beta1", "v1beta9", "v1beta1"),
    ):
        store_machines_at(plane, stored)
        mark = plane.audit_log.mark()
        with ManagerProcess(plane, environment={"CAPI_MACHINE_API_VERSION": asked}):
            machine = Round(plane, provider)
            assert_form(machine.up(), expected)
            assert machine.scenario.status["machineRef"]["apiVersion"] == f"cluster.x-k8s.io/{expected}"
            machine.down()
        used = versions_used(plane, mark)
        assert {"watch", "create", "delete"} <= set(used)
        assert set().union(*used.values()) == {expected}, used


@pytest.mark.long
@pytest.mark.contract("B2.1")
@pytest.mark.timeout(240)
def test_the_stored_version_changes_while_the_manager_runs_and_conversion_dies(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    store_machines_at(plane, "v1beta1")
    with ManagerProcess(plane) as manager:
        machine, idle = Round(plane, provider), Round(plane, provider)
        assert_form(machine.up(), "v1beta1")
        idle.scenario.create()
        idle.scenario.active(False)
        idle.scenario.wait_phase("Inactive", "ScheduleInactive")
        uid = machine.scenario.machine()["metadata"]["uid"]
        before = plane.audit_log.mark()
        store_machines_at(plane, "v1beta2")
        # The server ends what is watched at the old version, which may be begun once more before the change is seen.
        eventually(lambda: "v1beta2" in versions_used(plane, before).get("watch", ()), what="the new one is watched")
        # What is stored is migrated, as an upgrade does; then nothing needs the old version, and its conversion dies.
        migrated = {"metadata": {"annotations": {"example.com/migrated": "yes"}}}
        machine.scenario.api.patch(*MACHINES, "web", machine.scenario.namespace, migrated)
        conversion_dies(plane.api, MACHINE_CRD, stored="v1beta2")
        mark = plane.audit_log.mark()
        assert_form(idle.up(create=False), "v1beta2")
        found = machine.scenario.machine()["metadata"]
        assert found["uid"] == uid, "held through the change"
        assert "deletionTimestamp" not in found
        assert machine.scenario.wait_phase("Active")["machineRef"]["uid"] == uid
        machine.down()
        idle.down()
        assert_form(machine.up(create=False), "v1beta2")
        used = versions_used(plane, mark)
        assert set().union(*used.values()) == {"v1beta2"}, used
        assert manager.exit_code is None
