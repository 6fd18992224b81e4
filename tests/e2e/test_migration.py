"""A cluster with the state that 5-Spot leaves: a dry run, then the take-over, which keeps wanted machines unchanged.

Its ScheduledMachines were written for it, its Machines are adopted and run, its status is as it writes it: without a
reference in `spotSchedule`, with an Error that never ended and a Terminated whose switch was cleared long ago. Its
objects carry a label, and none of our annotations.
"""

from __future__ import annotations

from typing import Any

from controlplane import select
from harness import MANAGER_USER, ManagerProcess
from harness.wait import eventually
from support.environment import Environment, at_once
from support.live_scenario import LiveScenario
from support.machines import MACHINE

Json = dict[str, Any]

CREATED = "2026-06-01T06:00:00Z"
READS = {"get", "list", "watch"}
FINALIZER = "5spot.finos.org/scheduledmachine"
LABELS = {"cluster.x-k8s.io/cluster-name": "prod"}
KATA = {"kind": "ConfigMap", "name": "kata-settings"}


def leave(scenario: LiveScenario, phase: str, *, active: bool, running: bool, **spec: Any) -> None:
    """A ScheduledMachine with the finalizer, status and, if ``running``, the objects that 5-Spot leaves."""
    scenario.provider.create(scenario.namespace, scenario.name, active=active)
    body = scenario.body(**spec)
    body["metadata"]["finalizers"] = [FINALIZER]
    owner = scenario.api.create(body)["metadata"]
    ready = {"type": "Ready", "status": "True", "reason": "ReconcileSucceeded", "message": ""}
    status: Json = {
        "phase": phase,
        "message": "as it was",
        "inSchedule": active,
        "ready": running,
        "conditions": [{**ready, "lastTransitionTime": CREATED}],
        "observedGeneration": owner["generation"],
        "spotSchedule": {"resolved": True, "active": active, "reason": "Resolved"},
    }
    if running:
        make_children(scenario, owner)
        status["machineRef"] = {"apiVersion": scenario.machines[0], "kind": "Machine", "name": scenario.name}
        status["lastScheduledTime"] = CREATED
    scenario.api.patch_status(*MACHINE, scenario.name, scenario.namespace, status)


def make_children(scenario: LiveScenario, owner: Json) -> None:
    metadata = {
        "name": scenario.name,
        "namespace": scenario.namespace,
        "labels": {**LABELS, "5spot.finos.org/scheduled-machine": scenario.name},
    }
    for api_version, kind in (scenario.bootstraps, scenario.infrastructure):
        scenario.api.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}})
    reference = {"apiVersion": MACHINE[0], "kind": MACHINE[1], "name": scenario.name, "uid": owner["uid"]}
    owners = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    bootstrap, infrastructure = (_reference(scenario, kind) for kind in (scenario.bootstraps, scenario.infrastructure))
    scenario.api.create(
        {
            "apiVersion": scenario.machines[0],
            "kind": "Machine",
            "metadata": {**metadata, "ownerReferences": owners},
            "spec": {
                "clusterName": "prod",
                "bootstrap": {"configRef": bootstrap},
                "infrastructureRef": infrastructure,
            },
        }
    )


def _reference(scenario: LiveScenario, kind: tuple[str, str]) -> Json:
    if scenario.environment.core_version == "v1beta1":
        return {"apiVersion": kind[0], "kind": kind[1], "name": scenario.name, "namespace": scenario.namespace}
    return {"apiGroup": kind[0].partition("/")[0], "kind": kind[1], "name": scenario.name}


def runs(scenario: LiveScenario) -> bool:
    machine = scenario.machine()
    return bool(machine.get("status", {}).get("phase") == "Running")


def uids(scenario: LiveScenario) -> list[str]:
    found = (scenario.child(kind) for kind in scenario.children)
    return [child["metadata"]["uid"] for child in found if child and "deletionTimestamp" not in child["metadata"]]


def test_a_dry_run_lists_the_steps_and_the_take_over_keeps_wanted_machines(
    environment: Environment,
) -> None:
    namespace = environment.namespace("takeover")
    environment.manager.stop()
    up, sticky, kata, over, wanted, cleared = (
        LiveScenario(environment, namespace, name) for name in ("up", "sticky", "kata", "over", "wanted", "cleared")
    )
    leave(up, "Active", active=True, running=True)
    leave(sticky, "Error", active=True, running=True)
    leave(kata, "Active", active=True, running=True, kata=KATA, killIfCommands=["java"])
    leave(over, "Active", active=False, running=True, nodeDrainTimeout="2m")
    leave(wanted, "Error", active=True, running=False)
    leave(cleared, "Terminated", active=False, running=False)
    for scenario in (up, sticky, kata, over):
        scenario.until(lambda scenario=scenario: runs(scenario), what=f"{scenario.name} runs")  # type: ignore[misc]
    staying = {scenario.name: uids(scenario) for scenario in (up, sticky, kata)}
    before = {scenario.name: scenario.get() for scenario in (up, sticky, kata, over, wanted, cleared)}

    mark = environment.plane.audit_log.mark()
    # The usual manager starts when the dry run is over.
    with environment.other_manager("--dry-run") as manager:
        assert planned(manager, namespace) == {
            "up": [],
            "sticky": [],
            "kata": [],
            # The Machine has no drain timeout, which is set before it is deleted.
            "over": ["PatchMachine", "DeleteMachine"],
            "wanted": ["CreateChildren"],
            "cleared": [],
        }
        assert [event for event in requests(environment, mark) if event["verb"] not in READS] == []
        assert {name: environment.api.get(*MACHINE, name, namespace) for name in before} == before

    at_once(
        lambda: up.wait_phase("Active", "MachineReady"),
        lambda: sticky.wait_phase("Active", "MachineReady"),
        lambda: kata.wait_phase("Active", "MachineReady"),
        lambda: over.wait_phase("Inactive", "ScheduleInactive", 60),
        wanted.wait_ready,
        lambda: cleared.wait_phase("Inactive", "ScheduleInactive"),
    )
    assert {scenario.name: uids(scenario) for scenario in (up, sticky, kata)} == staying
    for scenario in (up, sticky, kata):
        assert scenario.condition("UpToDate")["reason"] == "NoTemplateHash"
        assert scenario.status["machineRef"]["uid"] == scenario.machine()["metadata"]["uid"]
        assert scenario.status["spotSchedule"]["reference"] == {"kind": scenario.provider.kind, "name": scenario.name}
    unsupported = kata.condition("UnsupportedFields")
    assert unsupported["status"] == "True"
    assert {"kata", "killIfCommands"} <= set(unsupported["message"].replace(",", " ").replace("spec.", " ").split())
    over.wait_gone()
    touched = {
        (event["verb"], event["objectRef"]["name"])
        for event in requests(environment, mark)
        if event["verb"] in {"patch", "delete"}
        # What other tests left behind in their namespaces goes on meanwhile.
        and (event["objectRef"]["resource"], event["objectRef"].get("namespace")) == ("machines", namespace)
    }
    assert touched == {("patch", "over"), ("delete", "over")}


def planned(manager: ManagerProcess, namespace: str) -> dict[str, list[str]]:
    """Return the steps that a dry run plans, by object, once it waits for nothing."""

    def check() -> dict[str, list[str]]:
        plans = {
            entry["object"].partition("/")[2]: entry["plan"]
            for entry in manager.debug("plans")
            if entry["controller"] == "scheduledmachine" and entry["object"].startswith(f"{namespace}/")
        }
        unread = ("cannot be read", "not read yet")
        assert not any(words in plan["message"] for words in unread for plan in plans.values()), plans
        assert len(plans) == 6, plans
        return {name: plan["steps"] for name, plan in plans.items()}

    return eventually(check, 30, what="all plans are made")


def requests(environment: Environment, mark: int) -> list[Json]:
    """Return the manager's requests in all namespaces."""
    found: list[Json] = select(environment.plane.audit(since=mark), user=MANAGER_USER)
    return found
