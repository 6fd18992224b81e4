"""A cluster as the existing 5-Spot leaves it: first only looked at, then taken over, without touching what should stay.

Its ScheduledMachines were written for it, its Machines are adopted and run, its status is as it writes it: without a
reference in `spotSchedule`, with an Error that never ended and a Terminated whose switch was cleared long ago. Its
objects carry a label, and none of our annotations.
"""

from __future__ import annotations

from typing import Any

from controlplane import select
from support.clusterapi import World, at_once
from support.live import LiveScene
from support.machines import MACHINE
from support.manager import MANAGER_USER, ManagerProcess
from support.waiting import eventually

Json = dict[str, Any]

CREATED = "2026-06-01T06:00:00Z"
READS = {"get", "list", "watch"}
FINALIZER = "5spot.finos.org/scheduledmachine"
LABELS = {"cluster.x-k8s.io/cluster-name": "prod"}
KATA = {"kind": "ConfigMap", "name": "kata-settings"}


def leave(scene: LiveScene, phase: str, *, active: bool, running: bool, **spec: Any) -> None:
    """A ScheduledMachine with the finalizer, status and, if ``running``, the objects that 5-Spot leaves."""
    scene.provider.create(scene.namespace, scene.name, active=active)
    body = scene.body(**spec)
    body["metadata"]["finalizers"] = [FINALIZER]
    owner = scene.api.create(body)["metadata"]
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
        make_children(scene, owner)
        status["machineRef"] = {"apiVersion": scene.machines[0], "kind": "Machine", "name": scene.name}
        status["lastScheduledTime"] = CREATED
    scene.api.patch_status(*MACHINE, scene.name, scene.namespace, status)


def make_children(scene: LiveScene, owner: Json) -> None:
    metadata = {
        "name": scene.name,
        "namespace": scene.namespace,
        "labels": {**LABELS, "5spot.finos.org/scheduled-machine": scene.name},
    }
    for api_version, kind in (scene.bootstraps, scene.infrastructure):
        scene.api.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}})
    reference = {"apiVersion": MACHINE[0], "kind": MACHINE[1], "name": scene.name, "uid": owner["uid"]}
    owners = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    bootstrap, infrastructure = (_reference(scene, kind) for kind in (scene.bootstraps, scene.infrastructure))
    scene.api.create(
        {
            "apiVersion": scene.machines[0],
            "kind": "Machine",
            "metadata": {**metadata, "ownerReferences": owners},
            "spec": {
                "clusterName": "prod",
                "bootstrap": {"configRef": bootstrap},
                "infrastructureRef": infrastructure,
            },
        }
    )


def _reference(scene: LiveScene, kind: tuple[str, str]) -> Json:
    if scene.world.core_version == "v1beta1":
        return {"apiVersion": kind[0], "kind": kind[1], "name": scene.name, "namespace": scene.namespace}
    return {"apiGroup": kind[0].partition("/")[0], "kind": kind[1], "name": scene.name}


def runs(scene: LiveScene) -> bool:
    machine = scene.machine()
    return bool(machine.get("status", {}).get("phase") == "Running")


def uids(scene: LiveScene) -> list[str]:
    found = (scene.child(kind) for kind in scene.children)
    return [child["metadata"]["uid"] for child in found if child and "deletionTimestamp" not in child["metadata"]]


def test_a_dry_run_lists_what_would_happen_and_the_take_over_touches_no_machine_that_should_stay(world: World) -> None:
    namespace = world.namespace("takeover")
    world.manager.stop()
    up, sticky, kata, over, wanted, cleared = (
        LiveScene(world, namespace, name) for name in ("up", "sticky", "kata", "over", "wanted", "cleared")
    )
    leave(up, "Active", active=True, running=True)
    leave(sticky, "Error", active=True, running=True)
    leave(kata, "Active", active=True, running=True, kata=KATA, killIfCommands=["java"])
    leave(over, "Active", active=False, running=True, nodeDrainTimeout="2m")
    leave(wanted, "Error", active=True, running=False)
    leave(cleared, "Terminated", active=False, running=False)
    for scene in (up, sticky, kata, over):
        scene.until(lambda scene=scene: runs(scene), what=f"{scene.name} runs")  # type: ignore[misc]
    staying = {scene.name: uids(scene) for scene in (up, sticky, kata)}
    before = {scene.name: scene.get() for scene in (up, sticky, kata, over, wanted, cleared)}

    mark = world.plane.audit_log.mark()
    # The usual manager starts when the dry run is over.
    with world.other_manager("--dry-run") as manager:
        assert planned(manager, namespace) == {
            "up": [],
            "sticky": [],
            "kata": [],
            # It says nothing about draining, which is made up for before it goes.
            "over": ["PatchMachine", "DeleteMachine"],
            "wanted": ["CreateChildren"],
            "cleared": [],
        }
        assert [event for event in requests(world, mark) if event["verb"] not in READS] == []
        assert {name: world.api.get(*MACHINE, name, namespace) for name in before} == before

    at_once(
        lambda: up.wait_phase("Active", "MachineReady"),
        lambda: sticky.wait_phase("Active", "MachineReady"),
        lambda: kata.wait_phase("Active", "MachineReady"),
        lambda: over.wait_phase("Inactive", "ScheduleInactive", 60),
        wanted.wait_ready,
        lambda: cleared.wait_phase("Inactive", "ScheduleInactive"),
    )
    assert {scene.name: uids(scene) for scene in (up, sticky, kata)} == staying
    for scene in (up, sticky, kata):
        assert scene.condition("UpToDate")["reason"] == "NoTemplateHash"
        assert scene.status["machineRef"]["uid"] == scene.machine()["metadata"]["uid"]
        assert scene.status["spotSchedule"]["reference"] == {"kind": scene.provider.kind, "name": scene.name}
    unsupported = kata.condition("UnsupportedFields")
    assert unsupported["status"] == "True"
    assert {"kata", "killIfCommands"} <= set(unsupported["message"].replace(",", " ").replace("spec.", " ").split())
    over.wait_gone()
    touched = {
        (event["verb"], event["objectRef"]["name"])
        for event in requests(world, mark)
        if event["verb"] in {"patch", "delete"}
        # What other tests left behind in their namespaces goes on meanwhile.
        and (event["objectRef"]["resource"], event["objectRef"].get("namespace")) == ("machines", namespace)
    }
    assert touched == {("patch", "over"), ("delete", "over")}


def planned(manager: ManagerProcess, namespace: str) -> dict[str, list[str]]:
    """The steps that a dry run would take, by object, once nothing is waited for any more."""

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


def requests(world: World, mark: int) -> list[Json]:
    """What the manager asked of the server in any namespace."""
    found: list[Json] = select(world.plane.audit(since=mark), user=MANAGER_USER)
    return found
