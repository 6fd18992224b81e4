"""B1.17, B1.23: objects that are older than a rule or than this product, found when the manager starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane, read_crds
from harness import MANIFESTS, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import MACHINE, bootstrap, machine, without_rules
from support.refusals import foreign
from support.scenario import BOOTSTRAP, CHILDREN, INFRASTRUCTURE, MACHINES, Scenario

LABEL = "5spot.finos.org/scheduled-machine"
CREATED = "2026-11-01T06:00:00Z"
Json = dict[str, Any]


@pytest.mark.long
@pytest.mark.contract("B1.17", "B1.23")
@pytest.mark.timeout(240)
def test_objects_of_an_older_release_are_kept_and_can_be_shut_down(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane(crds=map(without_rules, read_crds(MANIFESTS / "crds")))
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    namespace = make_namespace(plane.api, "older")
    provider.create(namespace, active=True)

    def scenario(name: str) -> Scenario:
        return Scenario(plane.api, namespace, provider, name)

    def create(name: str, **spec: Any) -> Scenario:
        plane.api.create(machine(name, namespace, schedule=provider.reference(), **spec))
        return scenario(name)

    # Invalid by today's rules, and nothing was made of them.
    empty = {
        "spec.clusterName": create("bad-cluster", clusterName="-prod"),
        "spec.priority": create("bad-priority", priority=256),
        "spec.bootstrapSpec.apiVersion": create("bad-template", bootstrapSpec=bootstrap("v1")),
        "spec.gracefulShutdownTimeout": create("bad-grace", gracefulShutdownTimeout="1h30m"),
        "metadata.name": create("n" * 70),
    }
    # The same, with machines that an older release made of them.
    kept = create("bad-with-machine", priority=256, gracefulShutdownTimeout="0s")
    kept_waiting = create("bad-grace-with-machine", gracefulShutdownTimeout="1h30m")
    # As the existing 5-Spot leaves a machine that is up, and its schedule cannot be found just now.
    taken_over = create("taken-over", gracefulShutdownTimeout="0s")
    plane.api.patch(*MACHINE, "taken-over", namespace, {"spec": {"schedule": provider.reference("away")}})
    for each in (kept, kept_waiting):
        make_machine(plane.api, each, {"5spot.finos.org/scheduled-machine-uid": each.get()["metadata"]["uid"]})
    make_machine(plane.api, taken_over)
    as_5spot_writes(taken_over)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "crds"))
    eventually(lambda: judged(plane.api, namespace), 30, what="the rules are in force")
    install(plane)

    before = {each.name: uids(each) for each in (kept, kept_waiting, taken_over)}
    with ManagerProcess(plane) as manager:
        assert_refused(empty)
        assert_kept(kept, before)
        assert_taken_over(taken_over, before)
        kept_waiting.wait_phase("Active", "MachineCreated")
        assert_shut_down(kept, kept_waiting, empty, before)
        assert_goes_like_any_other(taken_over)
        for invalid in (*empty.values(), kept):
            invalid.delete()
        for invalid in (*empty.values(), kept):
            eventually(lambda invalid=invalid: invalid.find() is None, what=f"{invalid.name} is gone")  # type: ignore[misc]
        assert manager.exit_code is None


def assert_refused(empty: dict[str, Scenario]) -> None:
    for field, invalid in empty.items():
        status = invalid.wait_phase("Error", "ReferencesInvalid", 30)
        assert field in status["message"], status["message"]
        assert invalid.condition("Stalled")["status"] == "True"
        assert [invalid.child(kind) for kind in CHILDREN] == [None] * 3


def assert_kept(kept: Scenario, before: dict[str, list[str]]) -> None:
    kept.wait_phase("Active", "MachineCreated")
    assert uids(kept) == before[kept.name]
    kept.node_ready()
    kept.wait_condition("Ready", "True", "MachineReady")


def assert_taken_over(taken_over: Scenario, before: dict[str, list[str]]) -> None:
    status = taken_over.wait_phase("Active", "ProviderNotFound")
    assert status["inSchedule"] is True, "the verdict that it remembers belongs to the present reference"
    held = status["spotSchedule"]
    assert (held["resolved"], held["active"]) == (False, True)
    assert held["reference"] == {"kind": taken_over.provider.kind, "name": "away"}
    eventually(lambda: references(taken_over) == before["taken-over"], what="its objects are found")
    taken_over.wait_condition("UpToDate", "Unknown", "NoTemplateHash")
    assert uids(taken_over) == before["taken-over"]


def assert_shut_down(
    kept: Scenario, kept_waiting: Scenario, empty: dict[str, Scenario], before: dict[str, list[str]]
) -> None:
    kept.active(False)
    kept.wait_gone()
    kept.wait_phase("Error", "ReferencesInvalid")
    # Of a time that cannot be read the default is taken.
    status = kept_waiting.wait_phase("ShuttingDown", "GracePeriodActive")
    begun, due = (datetime.fromisoformat(status[name]) for name in ("shutdownRequestedTime", "nextCleanup"))
    assert due - begun == timedelta(minutes=5)
    assert uids(kept_waiting) == before[kept_waiting.name]
    # Corrected, it is like any other.
    kept_waiting.edit(gracefulShutdownTimeout="0s")
    kept_waiting.wait_gone()
    kept_waiting.wait_phase("Inactive", "ScheduleInactive")
    kept.edit(priority=50)
    kept.wait_phase("Inactive", "ScheduleInactive")
    killed = empty["spec.bootstrapSpec.apiVersion"]
    killed.edit(killSwitch=True, bootstrapSpec=bootstrap())
    killed.wait_phase("Terminated", "KillSwitchActivated")


def assert_goes_like_any_other(taken_over: Scenario) -> None:
    taken_over.hold_machine()
    taken_over.provider.create(taken_over.namespace, "away", active=False)
    taken_over.wait_phase("ShuttingDown", "NodeDraining")
    assert "deletionTimestamp" in taken_over.machine()["metadata"]
    assert taken_over.machine()["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 300, "it did not say before"
    # Cluster API cleans up what it adopted, before it lets go.
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        taken_over.api.delete(*kind, taken_over.name, taken_over.namespace)
    taken_over.let_machine_go()
    taken_over.wait_gone()
    taken_over.wait_phase("Inactive", "ScheduleInactive")


def make_machine(api: Api, scenario: Scenario, annotations: dict[str, str] | None = None) -> None:
    """The three objects as the existing 5-Spot makes them (a label, an owner of the Machine), and annotations."""
    labels = {LABEL: scenario.name, "cluster.x-k8s.io/cluster-name": "prod"}
    notes = {"labels": labels, "annotations": annotations or {}}
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        api.create(foreign(kind, scenario.namespace, scenario.name, **notes))
    owner = {
        "apiVersion": MACHINE[0],
        "kind": MACHINE[1],
        "name": scenario.name,
        "uid": scenario.get()["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body = foreign(MACHINES, scenario.namespace, scenario.name, **notes, ownerReferences=[owner])
    bootstrap_ref, infrastructure_ref = (
        {"apiGroup": kind[0].partition("/")[0], "kind": kind[1], "name": scenario.name}
        for kind in (BOOTSTRAP, INFRASTRUCTURE)
    )
    body["spec"] |= {"bootstrap": {"configRef": bootstrap_ref}, "infrastructureRef": infrastructure_ref}
    api.create(body)


def as_5spot_writes(scenario: Scenario) -> None:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "ReconcileSucceeded",
        "message": "",
        "lastTransitionTime": CREATED,
    }
    status: Json = {
        "phase": "Active",
        "message": "Machine created",
        "inSchedule": True,
        "ready": True,
        "conditions": [ready],
        "observedGeneration": 1,
        "lastScheduledTime": CREATED,
        "spotSchedule": {"resolved": True, "active": True, "reason": "Resolved"},
        "machineRef": {
            "apiVersion": MACHINES[0],
            "kind": MACHINES[1],
            "name": scenario.name,
            "namespace": scenario.namespace,
        },
    }
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, status)


def references(scenario: Scenario) -> list[str]:
    return [scenario.status[field]["uid"] for field in ("machineRef", "bootstrapRef", "infrastructureRef")]


def uids(scenario: Scenario) -> list[str]:
    found = [scenario.child(kind) for kind in CHILDREN]
    return [
        child["metadata"]["uid"] if child and "deletionTimestamp" not in child["metadata"] else "" for child in found
    ]


def judged(api: Api, namespace: str) -> bool:
    try:
        api.create(machine("bad", namespace, priority=256), dry_run=True)
    except ApiError as error:
        return error.status == 422
    return False
