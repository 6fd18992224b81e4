"""The lifecycle of a machine with the real Cluster API: created, adopted, running, ready, deleted in order."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from controlplane import select, tally
from fivespot.testing.clusterapi import SIMULATED, SIMULATED_EARLIER, KindFamily
from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario

pytestmark = pytest.mark.together

CORE_USER = "cluster-api-core"


@pytest.mark.contract("B1.1", "B4.2")
@pytest.mark.parametrize("family", [SIMULATED, SIMULATED_EARLIER], ids=lambda family: family.contract)
def test_a_wanted_machine_is_adopted_runs_and_is_mirrored(environment: Environment, family: KindFamily) -> None:
    """Under either contract of the providers, whatever the version of Machines."""
    if family is SIMULATED and environment.family is not SIMULATED:
        pytest.skip("this release of Cluster API does not know the contract v1beta2")
    scenario = LiveScenario(environment, environment.namespace("life", family=family), family=family)
    scenario.run()
    # Cluster API writes the conditions of a Machine before its spec.
    scenario.until(
        lambda: {"providerID", "nodeRef"} <= scenario.status.keys(), what="status has the machine and its node"
    )
    status, machine = scenario.status, scenario.machine()
    infrastructure = scenario.child(scenario.infrastructure)
    assert infrastructure is not None
    assert status["providerID"] == machine["spec"]["providerID"] == infrastructure["spec"]["providerID"]
    assert status["nodeRef"]["name"] == machine["status"]["nodeRef"]["name"]
    assert status["machineRef"]["uid"] == machine["metadata"]["uid"]
    assert scenario.condition("MachineReady")["status"] == "True"
    assert scenario.condition("Ready")["reason"] == "MachineReady"
    for kind in (scenario.bootstraps, scenario.infrastructure):
        child = scenario.child(kind)
        assert child is not None
        [owner] = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Machine", machine["metadata"]["uid"], True)
    node = scenario.node_name
    scenario.active(False)
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.wait_gone()
    assert scenario.node(node) is None


@pytest.mark.contract("B4.2")
def test_running_needs_a_registered_node_and_ready_a_ready_one(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("ready"))
    scenario.create(script={"node": {"ready": False}})
    scenario.until(lambda: scenario.status.get("nodeRef"), what="a node registered")
    assert scenario.machine()["status"]["phase"] in {"Provisioned", "Running"}
    assert scenario.status["ready"] is False
    assert scenario.condition("MachineReady")["status"] == "False"
    assert scenario.condition("Ready")["reason"] == "MachineCreated"
    scenario.rescript(node={"ready": True})
    scenario.wait_condition("MachineReady", "True", "MachineReady")
    scenario.rescript(node={"ready": False})
    scenario.wait_condition("MachineReady", "False")
    assert scenario.status["phase"] == "Active", "a node that is not ready is no reason to do anything"


@pytest.mark.contract("B4.1")
def test_the_message_includes_the_failure_that_the_provider_reports(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("fails"))
    scenario.create(script={"create": "Fail", "failure": "the region has no more of them"})
    scenario.wait_message("the region has no more of them")
    assert scenario.condition("Ready")["status"] == "False"
    scenario.active(False)
    scenario.wait_phase("Inactive")
    scenario.wait_gone()


@pytest.mark.contract("B1.10", "B2.1")
def test_cluster_api_deletes_the_others_after_the_machine(environment: Environment) -> None:
    """B5.2 as well: the manager requests one deletion."""
    scenario = LiveScenario(environment, environment.namespace("order"))
    scenario.run()
    mark = environment.plane.audit_log.mark()
    scenario.active(False)
    scenario.wait_phase("Inactive")
    events = environment.plane.audit(since=mark)
    asked = select(events, user=MANAGER_USER, verbs="delete", namespace=scenario.namespace)
    # What Cluster API has deleted may be seen a moment longer than the Machine, and is asked for in vain.
    ours = [event for event in asked if event["responseStatus"]["code"] not in {404, 409}]
    # A deletion is refused only if Cluster API has changed the Machine since it was judged, and then once for a change.
    changes = select(
        events, user=CORE_USER, verbs=("patch", "update"), resource="machines", namespace=scenario.namespace
    )
    for number, refused in enumerate((event for event in asked if event["responseStatus"]["code"] == 409), 1):
        before = [c for c in changes if c["requestReceivedTimestamp"] < refused["stageTimestamp"]]
        assert len(before) >= number, refused
    assert tally(ours) == {"delete cluster.x-k8s.io/machines": 1}
    theirs = select(events, user=CORE_USER, verbs="delete", namespace=scenario.namespace)
    assert [event["objectRef"]["resource"] for event in _first_of_each(theirs)] == [
        scenario.family.machine.plural,
        scenario.family.bootstrap.plural,
    ]
    assert ours[0]["requestReceivedTimestamp"] < theirs[0]["requestReceivedTimestamp"]


@pytest.mark.contract("B1.10")
def test_slow_infrastructure_keeps_the_other_objects_until_it_is_deleted(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("slow"))
    scenario.run(script={"delete": "Never", "node": {"remove": False}})
    node = scenario.node_name
    scenario.active(False)
    scenario.wait_deleting("WaitingForInfrastructureDeletion")
    scenario.wait_message(scenario.family.machine.kind)
    infrastructure, bootstrap = (scenario.child(kind) for kind in (scenario.infrastructure, scenario.bootstraps))
    assert infrastructure is not None
    assert bootstrap is not None
    assert "deletionTimestamp" in infrastructure["metadata"]
    assert "deletionTimestamp" not in bootstrap["metadata"]
    assert scenario.node(node) is not None
    assert scenario.status["phase"] == "ShuttingDown"
    scenario.rescript(delete="Succeed")
    scenario.wait_phase("Inactive")
    scenario.wait_gone()
    assert scenario.node(node) is None, "Cluster API deletes it last"


@pytest.mark.contract("B1.3", "B1.21")
def test_flips_in_quick_succession_converge_with_one_machine_at_a_time(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("flips"))
    mark = environment.plane.audit_log.mark()
    machine = scenario.run()
    for _ in range(3):
        scenario.active(False)
        # A controller that goes by the state may well not see a verdict that is taken back within milliseconds.
        scenario.until(partial(scenario.begun, machine), what="the Machine goes")
        for active in (True, False, True):
            scenario.active(active)
        # Cluster API takes longer to unmake a machine than this, and the name is free only then. Where it takes the
        # objects of the next one along, that is replaced under a brake, which doubles each time.
        machine = scenario.wait_ready(120, after=machine)
        assert len(scenario.present()) == 3
    for active in (False, True, False):
        scenario.active(active)
    scenario.wait_phase("Inactive")
    scenario.wait_gone()
    ours = select(environment.plane.audit(since=mark), user=MANAGER_USER, namespace=scenario.namespace)
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
