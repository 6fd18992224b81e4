"""Reading the world of one machine by single requests, and deciding as the controller would."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from fivespot.cli.why.explain import Explanation, Settled, explain
from fivespot.cli.why.judge import Evaluated, judge
from fivespot.runtime import ConfigError, Key
from unit.cli.why.server import NAME, NAMESPACE, PROVIDERS, Json, Server

KEY = Key(NAMESPACE, NAME)
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
OWN = "scheduledmachines.5spot.finos.org"
SCHEDULES = f"officehourss.{PROVIDERS}"
MACHINES, CLUSTERS = "machines.cluster.x-k8s.io", "clusters.cluster.x-k8s.io"
BOOTSTRAPS = "standinbootstraps.bootstrap.cluster.x-k8s.io"
CONTRACT = {"cluster.x-k8s.io/v1beta2": "v1beta1"}
LABEL = {"5spot.finos.org/scheduled-machine": NAME}


@pytest.fixture
def server() -> Server:
    """Cluster API with a Cluster, a schedule that is active, and a machine that the controller has seen."""
    server = Server()
    server.define("OfficeHours", PROVIDERS, {"v1": True})
    server.define("Machine", "cluster.x-k8s.io", {"v1beta2": True, "v1beta1": True})
    server.define("Cluster", "cluster.x-k8s.io", {"v1beta2": True})
    server.define("StandInBootstrap", "bootstrap.cluster.x-k8s.io", labels=CONTRACT)
    server.define("StandInMachine", "infrastructure.cluster.x-k8s.io", labels=CONTRACT)
    server.put(CLUSTERS, named("prod", spec={}))
    server.put(SCHEDULES, named("hours", spec={}, status={"active": True}))
    own(server)
    return server


def named(name: str, metadata: Json | None = None, **body: Any) -> Json:
    return {"metadata": {"name": name, "namespace": NAMESPACE, **(metadata or {})}, **body}


def own(server: Server, status: Json | None = None, metadata: Json | None = None, **spec: Any) -> Json:
    """The ScheduledMachine."""
    usual: Json = {
        "schedule": {"apiVersion": f"{PROVIDERS}/v1", "kind": "OfficeHours", "name": "hours"},
        "clusterName": "prod",
        "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "StandInBootstrap", "spec": {}},
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "StandInMachine",
            "spec": {},
        },
    }
    seen = {
        "phase": "Inactive",
        "spotSchedule": {"active": False, "reference": {"kind": "OfficeHours", "name": "hours"}},
    }
    meta = {"uid": "sm-uid", "finalizers": ["5spot.finos.org/scheduledmachine"], **(metadata or {})}
    return server.put(OWN, named(NAME, meta, spec={**usual, **spec}, status=seen if status is None else status))


def machine(server: Server, *, controller: str = "sm-uid", ready: bool = True) -> None:
    owner = {"apiVersion": "5spot.finos.org/v1beta1", "kind": "ScheduledMachine", "name": NAME, "uid": controller}
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "reason": "Known"}]
    server.put(
        MACHINES,
        named(
            NAME,
            {"uid": "m-1", "labels": LABEL, "ownerReferences": [{**owner, "controller": True}]},
            spec={"clusterName": "prod"},
            status={"nodeRef": {"name": "node-1"}, "conditions": conditions},
        ),
    )


def judged(server: Server) -> Evaluated:
    return asyncio.run(judge(server.client, server.clock, KEY))


def explained(server: Server) -> Explanation:
    return explain(judged(server))


def told(reason: str, message: str = "as told", *, stalled: bool = True, **status: Any) -> Json:
    """A status that the controller wrote, with what is in the way."""
    conditions = [
        {"type": "Ready", "status": "False", "reason": reason, "message": message},
        {"type": "Stalled" if stalled else "Reconciling", "status": "True", "reason": reason, "message": message},
    ]
    spot = {"active": True, "reference": {"kind": "OfficeHours", "name": "hours"}}
    return {
        "phase": "Error",
        "message": message,
        "observedGeneration": 1,
        "conditions": conditions,
        "spotSchedule": spot,
        "bootstrapRef": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "StandInBootstrap", "name": NAME},
        **status,
    }


def test_it_reads_what_the_controller_would_look_at_and_nothing_else(server: Server) -> None:
    machine(server)
    found = judged(server)
    assert found.plan.settled
    assert found.unread == ()
    objects = {(verb, what) for verb, what, _ in server.asked if what != CRDS}
    assert objects == {
        ("get", OWN),
        ("get", SCHEDULES),
        ("get", MACHINES),
        ("get", CLUSTERS),
        ("get", BOOTSTRAPS),
        ("get", "standinmachines.infrastructure.cluster.x-k8s.io"),
    }
    assert len(server.asked) == len(set(server.asked)), "nothing is asked twice"


def test_the_version_of_machines_is_the_one_that_is_stored_unless_another_was_asked_for(server: Server) -> None:
    assert judged(server).snapshot.world.capi.version == "v1beta2"
    found = asyncio.run(judge(server.client, server.clock, KEY, capi_version="v1beta1"))
    assert found.snapshot.world.capi.version == "v1beta1"


def test_a_machine_that_no_controller_has_seen_says_so(server: Server) -> None:
    own(server, status={}, metadata={"finalizers": []})
    found = explained(server)
    assert found.due == ("create the bootstrap object, the infrastructure object, the Machine",)
    assert found.reported is not None
    assert found.reported.message == "no controller has reported on it yet"
    assert "kubectl -n 5spot-system get deployments,pods,leases" in [remedy.command for remedy in found.remedies]
    assert found.settled is Settled.NOT_AS_WANTED


def test_a_machine_that_status_remembers_is_looked_for_before_it_counts_as_lost(server: Server) -> None:
    own(server, status={**told("x"), "phase": "Active", "machineRef": {"uid": "m-0"}, "conditions": []})
    found = judged(server)
    assert found.snapshot.answers.gone == {"m-0"}
    assert found.plan.reason == "ReplacementDelayed"


def test_leftovers_are_searched_for_where_status_names_none(server: Server) -> None:
    server.define("OldBootstrap", "bootstrap.cluster.x-k8s.io", labels=CONTRACT)
    marked = {"5spot.finos.org/scheduled-machine-uid": "sm-uid"}
    left = "oldbootstraps.bootstrap.cluster.x-k8s.io"
    server.put(left, named(NAME, {"labels": LABEL, "annotations": marked}))
    own(server, status={})
    found = explained(server)
    assert found.reason == "WaitingForDeletion"
    assert ("list", left, f"{NAMESPACE}/") in server.asked
    assert found.due == (f"delete OldBootstrap.bootstrap.cluster.x-k8s.io {NAME}",)


def test_a_question_that_may_not_be_asked_leaves_it_open(server: Server) -> None:
    server.define("OldBootstrap", "bootstrap.cluster.x-k8s.io", labels=CONTRACT)
    server.denied.add(("list", "oldbootstraps.bootstrap.cluster.x-k8s.io"))
    own(server, status={})
    found = explained(server)
    assert found.settled is Settled.CANNOT_TELL
    assert "whether anything is left of an earlier machine cannot be answered" in found.headline


def test_a_refusal_that_was_reported_stands_until_it_is_tried_again(server: Server) -> None:
    remedy = "grant the right to the controller's ServiceAccount (see manifests/rbac)"
    words = f"create {MACHINES} {NAMESPACE}/{NAME}: no; {remedy}"
    own(server, status=told("MachineCreationFailed", words))
    found = explained(server)
    assert (found.phase, found.message, found.due) == ("Error", words, ())
    assert found.reported is None
    assert found.next[0].what.startswith("will be retried within 5 min")
    account = "system:serviceaccount:5spot-system:5spot-controller"
    assert f"kubectl auth can-i create {MACHINES} -n {NAMESPACE} --as={account}" in [r.command for r in found.remedies]


def test_a_refusal_of_an_earlier_spec_does_not_stand(server: Server) -> None:
    words = f"create {MACHINES} {NAMESPACE}/{NAME}: no; correct the spec"
    own(server, status=told("MachineCreationFailed", words, observedGeneration=1), metadata={"generation": 2})
    found = explained(server)
    assert found.due
    assert found.reported is not None
    assert found.reported.message == words


def test_what_was_in_the_way_and_is_not_any_more_does_not_stand(server: Server) -> None:
    """The controller is behind, or does not run."""
    own(
        server,
        status=told(
            "MachineCreationFailed", f"Machine {NAMESPACE}/{NAME} exists and is not controlled by it: delete it"
        ),
    )
    found = explained(server)
    assert (found.phase, bool(found.due)) == ("Active", True)
    assert found.reported is not None
    assert found.reported.message.endswith("is not controlled by it: delete it")
    machine(server, controller="another")
    again = explained(server)
    assert (again.phase, again.due) == ("Error", ())
    assert f"kubectl -n {NAMESPACE} get {MACHINES} {NAME} -o yaml" in [remedy.command for remedy in again.remedies]


def test_the_brake_of_the_administrator_is_told(server: Server) -> None:
    machine(server)
    server.put(SCHEDULES, named("hours", spec={}, status={"active": False}))
    shutdown = {"phase": "ShuttingDown", "shutdownRequestedTime": "2026-11-30T08:00:00Z"}
    shutdown["nextCleanup"] = "2026-11-30T09:07:00Z"
    own(server, status={**told("DeletionRateLimited", stalled=False), **shutdown})
    found = explained(server)
    assert (found.reason, found.due) == ("DeletionRateLimited", ())
    assert found.next[0].what == "the deletion has its turn: only so many may begin in a minute"
    assert found.next[0].at == datetime(2026, 11, 30, 9, 7, tzinfo=UTC)
    own(server, status={**told("x"), **shutdown, "conditions": []})
    assert explained(server).due[-1] == f"delete Machine {NAME}"


def paused(message: str) -> Json:
    status = told("Stopped", message, stalled=False)
    stop = {"type": "Paused", "status": "True", "reason": "Stopped", "message": message}
    return {**status, "phase": "Pending", "conditions": [*status["conditions"], stop]}


def test_a_stop_of_everything_is_told_with_the_command_that_ends_it(server: Server) -> None:
    words = "stopped by annotation 5spot.finos.org/stop on Lease 5spot-system/5spot-leader: fire"
    own(server, status=paused(words))
    found = explained(server)
    assert (found.phase, found.reason, found.message, found.due) == ("Pending", "Stopped", words, ())
    command = "kubectl -n 5spot-system annotate lease 5spot-leader 5spot.finos.org/stop-"
    assert command in [remedy.command for remedy in found.remedies]
    own(server, status={**paused(words), "conditions": []})
    assert explained(server).due, "the stop has ended"


@pytest.mark.parametrize("reason", ["ActivationRateLimited", "NamespaceLimitReached", "AdmissionPolicyMissing"])
def test_what_an_administrator_holds_back_is_told(server: Server, reason: str) -> None:
    own(server, status={**told(reason, "later", stalled=False), "phase": "Pending"})
    found = explained(server)
    assert (found.phase, found.reason, found.message, found.due) == ("Pending", reason, "later", ())
    assert "created as soon as the administrator's limits allow it" in [each.what for each in found.next]
    own(server, status={**told("x"), "conditions": []})
    assert explained(server).due


# Kinds ---------------------------------------------------------------------------------------------------------------


def test_a_definition_that_is_not_established_or_serves_nothing_is_named(server: Server) -> None:
    server.define("OfficeHours", PROVIDERS, {"v1": True}, established=False)
    found = explained(server)
    assert f"CustomResourceDefinition {SCHEDULES}: is not established" in found.headline
    assert f"kubectl describe crd {SCHEDULES}" in [remedy.command for remedy in found.remedies]
    server.define("OfficeHours", PROVIDERS, {"v1": False})
    assert f"CustomResourceDefinition {SCHEDULES}: serves no version" in explained(server).headline


def test_without_the_right_to_read_definitions_what_is_served_counts(server: Server) -> None:
    machine(server)
    server.denied |= {("get", CRDS), ("list", CRDS)}
    found = judged(server)
    assert found.plan.settled
    assert found.snapshot.world.capi.version == "v1beta2"
    assert {unread.key.name for unread in found.unread} >= {SCHEDULES, MACHINES}
    assert all(unread.instead for unread in found.unread)
    # A kind that is not served is not installed, as far as such a person can see.
    own(server, schedule={"apiVersion": f"{PROVIDERS}/v1", "kind": "Gone", "name": "hours"})
    assert "no CustomResourceDefinition" in explained(server).headline


def test_without_cluster_api_there_is_nothing_to_make(server: Server) -> None:
    for kind in ("machines", "clusters"):
        del server.objects[CRDS, Key("", f"{kind}.cluster.x-k8s.io")]
    found = explained(server)
    assert "Cluster API is not installed" in found.headline
    assert found.remedies[0].command == "clusterctl init"


def test_a_template_without_a_contract_label_is_shown_with_its_definition(server: Server) -> None:
    server.define("StandInBootstrap", "bootstrap.cluster.x-k8s.io")
    found = explained(server)
    assert "carries no Cluster API contract label" in found.headline
    assert f"kubectl get crd {BOOTSTRAPS} --show-labels" in [remedy.command for remedy in found.remedies]


# What cannot be read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [SCHEDULES, MACHINES])
def test_what_decides_and_cannot_be_read_leaves_it_open(server: Server, what: str) -> None:
    machine(server)
    server.denied.add(("get", what))
    found = explained(server)
    assert found.settled is Settled.CANNOT_TELL
    assert f"kubectl auth can-i get {what} -n {NAMESPACE}" in [remedy.command for remedy in found.remedies]


def test_what_does_not_decide_need_not_be_read(server: Server) -> None:
    machine(server)
    server.denied |= {("get", BOOTSTRAPS), ("get", SCHEDULES)}
    own(server, killSwitch=True)
    found = explained(server)
    assert (found.up, found.decided_by) == (False, "KillSwitchActivated")
    assert found.due == (f"set annotations of Machine {NAME}", f"delete Machine {NAME}")
    server.denied -= {("get", SCHEDULES)}
    own(server)
    assert explained(server).settled is Settled.AS_WANTED, "a Machine that is up says enough"


def test_a_child_that_may_not_be_read_is_not_taken_for_the_controllers_trouble(server: Server) -> None:
    server.denied.add(("get", BOOTSTRAPS))
    found = explained(server)
    assert found.settled is Settled.CANNOT_TELL
    assert found.phase == ""


def test_no_machine_is_a_mistake_with_a_command(server: Server) -> None:
    del server.objects[OWN, KEY]
    with pytest.raises(ConfigError, match=f"kubectl -n {NAMESPACE} get scheduledmachines"):
        judged(server)
    server.denied.add(("get", OWN))
    with pytest.raises(ConfigError, match=f"kubectl auth can-i get {OWN} -n {NAMESPACE}"):
        judged(server)


# A controller or a provider that does not work -----------------------------------------------------------------------


def test_a_schedule_that_is_late_with_its_own_change_is_suspicious(server: Server) -> None:
    machine(server)
    late = {"active": True, "nextTransitionTime": "2026-11-30T08:00:00Z"}
    server.put(SCHEDULES, named("hours", spec={}, status=late))
    found = explained(server)
    assert "was to change at 2026-11-30T08:00:00Z and has not" in found.remedies[0].problem
    assert found.next == ()
    for garbage in ("soon", 7, None, "0001-01-01T00:00:00Z", {"a": 1}):
        server.put(SCHEDULES, named("hours", spec={}, status={"active": True, "nextTransitionTime": garbage}))
        assert explained(server).schedule.next_change is None


def test_a_controller_that_cannot_read_the_schedule_lacks_a_right(server: Server) -> None:
    machine(server)
    own(server, status=told("ProviderUnreadable"))
    found = explained(server)
    account = "system:serviceaccount:5spot-system:5spot-controller"
    wanted = f"kubectl auth can-i list {SCHEDULES} -n {NAMESPACE} --as={account}"
    assert wanted in [remedy.command for remedy in found.remedies]
