"""A machine's life with the real Cluster API: made, adopted, running, ready, and gone in the right order."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from controlplane import select, tally
from fivespot.testing.clusterapi import SIMULATED, SIMULATED_EARLIER, KindFamily
from support.clusterapi import World
from support.live import LiveScene
from support.manager import MANAGER_USER

pytestmark = pytest.mark.together

CORE_USER = "cluster-api-core"


@pytest.mark.contract("B1.1", "B4.2")
@pytest.mark.parametrize("family", [SIMULATED, SIMULATED_EARLIER], ids=lambda family: family.contract)
def test_a_wanted_machine_is_adopted_runs_and_is_mirrored(world: World, family: KindFamily) -> None:
    """Under either contract of the providers, whatever the version of Machines."""
    if family is SIMULATED and world.family is not SIMULATED:
        pytest.skip("this release of Cluster API does not know the contract v1beta2")
    scene = LiveScene(world, world.namespace("life", family=family), family=family)
    scene.run()
    # Cluster API writes the conditions of a Machine before its spec.
    scene.until(lambda: "providerID" in scene.status, what="it is told where the machine is")
    status, machine = scene.status, scene.machine()
    infrastructure = scene.child(scene.infrastructure)
    assert infrastructure is not None
    assert status["providerID"] == machine["spec"]["providerID"] == infrastructure["spec"]["providerID"]
    assert status["nodeRef"]["name"] == machine["status"]["nodeRef"]["name"]
    assert status["machineRef"]["uid"] == machine["metadata"]["uid"]
    assert scene.condition("MachineReady")["status"] == "True"
    assert scene.condition("Ready")["reason"] == "MachineReady"
    for kind in (scene.bootstraps, scene.infrastructure):
        child = scene.child(kind)
        assert child is not None
        [owner] = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Machine", machine["metadata"]["uid"], True)
    node = scene.node_name
    scene.active(False)
    scene.wait_phase("Inactive", "ScheduleInactive")
    scene.wait_gone()
    assert scene.node(node) is None


@pytest.mark.contract("B4.2")
def test_running_means_that_a_node_registered_and_ready_that_it_takes_work(world: World) -> None:
    scene = LiveScene(world, world.namespace("ready"))
    scene.create(script={"node": {"ready": False}})
    scene.until(lambda: scene.status.get("nodeRef"), what="a node registered")
    assert scene.machine()["status"]["phase"] in {"Provisioned", "Running"}
    assert scene.status["ready"] is False
    assert scene.condition("MachineReady")["status"] == "False"
    assert scene.condition("Ready")["reason"] == "MachineCreated"
    scene.rescript(node={"ready": True})
    scene.wait_condition("MachineReady", "True", "MachineReady")
    scene.rescript(node={"ready": False})
    scene.wait_condition("MachineReady", "False")
    assert scene.status["phase"] == "Active", "a node that is not ready is no reason to do anything"


@pytest.mark.contract("B4.1")
def test_what_a_provider_says_of_its_failure_is_in_the_message(world: World) -> None:
    scene = LiveScene(world, world.namespace("fails"))
    scene.create(script={"create": "Fail", "failure": "the region has no more of them"})
    scene.wait_message("the region has no more of them")
    assert scene.condition("Ready")["status"] == "False"
    scene.active(False)
    scene.wait_phase("Inactive")
    scene.wait_gone()


@pytest.mark.contract("B1.10", "B2.1")
def test_cluster_api_deletes_the_others_after_the_machine(world: World) -> None:
    """B5.2 as well: one deletion is all that the manager asks for."""
    scene = LiveScene(world, world.namespace("order"))
    scene.run()
    mark = world.plane.audit_log.mark()
    scene.active(False)
    scene.wait_phase("Inactive")
    events = world.plane.audit(since=mark)
    asked = select(events, user=MANAGER_USER, verbs="delete", namespace=scene.namespace)
    # What Cluster API has deleted may be seen a moment longer than the Machine, and is asked for in vain.
    ours = [event for event in asked if event["responseStatus"]["code"] != 404]
    assert tally(ours) == {"delete cluster.x-k8s.io/machines": 1}
    theirs = select(events, user=CORE_USER, verbs="delete", namespace=scene.namespace)
    assert [event["objectRef"]["resource"] for event in _first_of_each(theirs)] == [
        scene.family.machine.plural,
        scene.family.bootstrap.plural,
    ]
    assert ours[0]["requestReceivedTimestamp"] < theirs[0]["requestReceivedTimestamp"]


@pytest.mark.contract("B1.10")
def test_an_infrastructure_that_takes_its_time_keeps_everything_until_it_is_gone(world: World) -> None:
    scene = LiveScene(world, world.namespace("slow"))
    scene.run(script={"delete": "Never", "node": {"remove": False}})
    node = scene.node_name
    scene.active(False)
    scene.wait_deleting("WaitingForInfrastructureDeletion")
    scene.wait_message(scene.family.machine.kind)
    infrastructure, bootstrap = (scene.child(kind) for kind in (scene.infrastructure, scene.bootstraps))
    assert infrastructure is not None
    assert bootstrap is not None
    assert "deletionTimestamp" in infrastructure["metadata"]
    assert "deletionTimestamp" not in bootstrap["metadata"]
    assert scene.node(node) is not None
    assert scene.status["phase"] == "ShuttingDown"
    scene.rescript(delete="Succeed")
    scene.wait_phase("Inactive")
    scene.wait_gone()
    assert scene.node(node) is None, "Cluster API deletes it last"


@pytest.mark.contract("B1.3", "B1.21")
def test_flips_in_quick_succession_converge_with_one_machine_at_a_time(world: World) -> None:
    scene = LiveScene(world, world.namespace("flips"))
    mark = world.plane.audit_log.mark()
    machine = scene.run()
    for _ in range(3):
        scene.active(False)
        # A controller that goes by the state may well not see a verdict that is taken back within milliseconds.
        scene.until(partial(scene.begun, machine), what="the Machine goes")
        for active in (True, False, True):
            scene.active(active)
        # Cluster API takes longer to unmake a machine than this, and the name is free only then. Where it takes the
        # objects of the next one along, that is replaced under a brake, which doubles each time.
        machine = scene.wait_ready(120, after=machine)
        assert len(scene.present()) == 3
    for active in (False, True, False):
        scene.active(active)
    scene.wait_phase("Inactive")
    scene.wait_gone()
    ours = select(world.plane.audit(since=mark), user=MANAGER_USER, namespace=scene.namespace)
    made = [(event["requestReceivedTimestamp"], "+") for event in _done(ours, "create", 201)]
    unmade = [(event["requestReceivedTimestamp"], "-") for event in _done(ours, "delete", 200)]
    # Cluster API, slow to see a Machine go, may take the next one's objects with it; then there is one more.
    assert len(made) >= 4
    assert "".join(what for _, what in sorted(made + unmade)) == "+-" * len(made), "never one beside another"


def _done(events: list[dict[str, Any]], verb: str, code: int) -> list[dict[str, Any]]:
    return select(events, verbs=verb, resource="machines", code=code)


def _first_of_each(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests are repeated while their effect is not seen; the first of each kind tells the order."""
    seen: dict[str, dict[str, Any]] = {}
    for event in events:
        seen.setdefault(event["objectRef"]["resource"], event)
    return list(seen.values())
