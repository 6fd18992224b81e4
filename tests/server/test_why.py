"""`fivespot why` on a real server, beside the manager whose reasoning it tells."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from controlplane import Api, ControlPlane
from fivespot.cli.why.ask import ask
from fivespot.cli.why.explain import Explanation, Settled
from fivespot.cli.why.render import render, to_json
from fivespot.runtime import ConfigError
from harness import ManagerProcess
from harness.providers import PROVIDER_GROUP, ProviderKind
from support import eventually
from support.machines import MACHINE
from support.measurements import caught_up
from support.refusals import foreign, machine_quota
from support.scenario import BOOTSTRAP, MACHINES, Scenario

Json = dict[str, Any]
Why = Callable[..., Explanation]
SECRET = "Pr1v4te"


@pytest.fixture(scope="module")
def provider(control_plane: ControlPlane) -> Iterator[ProviderKind]:
    kind = ProviderKind(control_plane.api, "WhyPlayed")
    kind.install()
    yield kind
    kind.remove(wait=False)


@pytest.fixture(scope="module")
def administrator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return control_plane.kubeconfig(tmp_path_factory.mktemp("why") / "kubeconfig")


@pytest.fixture
def scenario(api: Api, namespace: str, provider: ProviderKind, manager: ManagerProcess) -> Scenario:
    """A namespace with a Cluster, an inactive schedule ``hours``, and the manager running."""
    provider.create(namespace, active=False)
    # Otherwise it may be known without its verdict when the first machine comes, which would be reported.
    caught_up(manager, api.get(provider.api_version, provider.kind, "hours", namespace))
    return Scenario(api, namespace, provider)


@pytest.fixture
def why(scenario: Scenario, administrator: Path) -> Why:
    """Run `fivespot why` for the scenario's machine, by default as the administrator."""

    def look(kubeconfig: Path | None = None) -> Explanation:
        found = asyncio.run(ask(f"{scenario.namespace}/{scenario.name}", str(kubeconfig or administrator)))
        text = click.unstyle(render(found))
        assert text.splitlines()[0]
        assert SECRET not in text
        return found

    return look


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def decider(found: Explanation) -> str:
    [name] = [rung.name for rung in found.precedence if rung.decides]
    return name


def commands(found: Explanation) -> str:
    return "\n".join(remedy.command for remedy in found.remedies)


def agrees(scenario: Scenario, found: Explanation) -> None:
    """Check that its answer equals the controller's report: the same code evaluates the same state."""
    status = scenario.status
    [ready] = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
    assert (found.phase, found.reason, found.message) == (status["phase"], ready["reason"], status["message"])
    assert (found.settled is Settled.AS_WANTED) is (ready["status"] == "True")
    assert found.reported is None


def test_a_machine_from_down_over_up_to_the_end_of_its_grace(scenario: Scenario, why: Why) -> None:
    ends = in_hours(2)
    scenario.provider.status(scenario.namespace, nextTransitionTime=ends)
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.wait_phase("Inactive", "ScheduleInactive")
    found = why()
    agrees(scenario, found)
    assert found.headline == f"{scenario.namespace}/web is as wanted: down, outside the schedule"
    assert (found.up, found.decided_by, decider(found)) == (False, "ScheduleInactive", "WhyPlayed/hours")
    [begins] = found.next
    assert begins.at == datetime.fromisoformat(ends)
    assert begins.what == "WhyPlayed/hours begins: the machine is created"

    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    found = why()
    agrees(scenario, found)
    assert found.headline == f"{scenario.namespace}/web is on the way up: waiting for the machine's node to be ready"
    assert f"kubectl -n {scenario.namespace} describe machines.cluster.x-k8s.io web" in commands(found)

    scenario.node_ready()
    scenario.wait_phase("Active", "MachineReady")
    found = why()
    agrees(scenario, found)
    assert found.headline == f"{scenario.namespace}/web is as wanted: up, and its node node-1 is ready"
    assert (found.up, found.due, found.remedies) == (True, (), ())
    assert [entry.what for entry in found.next] == [
        "WhyPlayed/hours ends: the machine is kept for 3600 s (gracefulShutdownTimeout), then drained and deleted"
    ]

    scenario.active(False)
    status = scenario.wait_phase("ShuttingDown", "GracePeriodActive")
    found = why()
    agrees(scenario, found)
    assert f"is kept until {status['nextCleanup']}" in found.headline
    assert found.next[0].at == datetime.fromisoformat(status["nextCleanup"])
    scenario.provider.status(scenario.namespace, nextTransitionTime=in_hours(0.5))
    assert "begins again before the grace period ends: the machine then stays as it is" in why().next[1].what


def test_a_schedule_without_a_verdict_in_each_of_its_four_ways(scenario: Scenario, why: Why) -> None:
    scenario.create(gracefulShutdownTimeout="1h")
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.node_ready()
    scenario.wait_phase("Active", "MachineReady")

    scenario.provider.ready(scenario.namespace, ready="False", reason="Odd", message="the source is away")
    scenario.wait_condition("Ready", "False", "ProviderNotReady")
    found = why()
    agrees(scenario, found)
    assert "is up, and its schedule gives no verdict; the last verdict is held (up)" in found.headline
    assert "Odd: the source is away" in found.headline
    assert (found.schedule.resolved, found.up) == (False, True)
    assert f"kubectl -n {scenario.namespace} describe whyplayeds.{PROVIDER_GROUP} hours" in commands(found)

    scenario.provider.status(scenario.namespace, active=None, conditions=None)
    scenario.wait_condition("Ready", "False", "StatusActiveMissing")
    found = why()
    agrees(scenario, found)
    assert "has no verdict: its controller does not run, or fails" in found.remedies[0].problem

    scenario.edit(schedule={"name": "gone"})
    scenario.wait_condition("Ready", "False", "ProviderNotFound")
    found = why()
    agrees(scenario, found)
    assert "there has never been a verdict" in found.headline
    assert [entry.state for entry in found.precedence][-1] == "no verdict, and never was one: not active"
    assert f"kubectl -n {scenario.namespace} get whyplayeds.{PROVIDER_GROUP}" in commands(found)

    scenario.edit(schedule={"kind": "NotInstalled"})
    scenario.wait_condition("Ready", "False", "ProviderCRDNotInstalled")
    found = why()
    agrees(scenario, found)
    assert "install the provider, or correct spec.schedule.kind" in found.headline
    assert f"kubectl api-resources --api-group={PROVIDER_GROUP}" in commands(found)


def test_who_decides_before_the_schedule(scenario: Scenario, why: Why) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.edit(enabled=False)
    scenario.wait_phase("Disabled", "ScheduleDisabled")
    found = why()
    agrees(scenario, found)
    assert (decider(found), found.settled, found.because) == (
        "spec.enabled",
        Settled.AS_WANTED,
        "spec.enabled is false",
    )
    [remedy] = found.remedies
    assert remedy.command == (
        f'kubectl -n {scenario.namespace} patch scheduledmachines web --type=merge -p \'{{"spec":{{"enabled":true}}}}\''
    )
    scenario.edit(enabled=True, killSwitch=True)
    scenario.wait_phase("Terminated", "KillSwitchActivated")
    found = why()
    agrees(scenario, found)
    assert decider(found) == "spec.killSwitch"
    assert found.headline == (
        f"{scenario.namespace}/web is as wanted: down, the kill switch is on; clear it to let the schedule decide again"
    )
    assert '{"spec":{"killSwitch":false}}' in commands(found)
    # The schedule's next change would change nothing.
    scenario.provider.status(scenario.namespace, nextTransitionTime=in_hours(1))
    assert why().next == ()


def test_what_is_in_the_way_of_a_machine(scenario: Scenario, why: Why) -> None:
    theirs = scenario.api.create(foreign(BOOTSTRAP, scenario.namespace))
    scenario.create(clusterName="nowhere")
    scenario.active(True)
    scenario.wait_phase("Pending", "ClusterNotFound")
    found = why()
    agrees(scenario, found)
    assert f"Cluster {scenario.namespace}/nowhere does not exist" in found.headline
    assert f"kubectl -n {scenario.namespace} get clusters.cluster.x-k8s.io" in commands(found)
    scenario.delete()
    eventually(lambda: scenario.find() is None, what="it is gone")

    scenario.create()
    scenario.wait_phase("Error", "MachineCreationFailed")
    found = why()
    agrees(scenario, found)
    assert "is stuck on the way up: StandInBootstrap" in found.headline
    assert f"kubectl -n {scenario.namespace} get standinbootstraps.bootstrap.cluster.x-k8s.io web -o yaml" in commands(
        found
    )
    assert theirs["metadata"]["name"] == "web"

    machine_quota(scenario.api, scenario.namespace, 0)
    scenario.api.delete(*BOOTSTRAP, "web", scenario.namespace)
    eventually(lambda: "exceeded quota" in scenario.status["message"], what="the quota is in the way now")
    found = why()
    agrees(scenario, found)
    assert "exceeded quota: machines" in found.headline
    assert f"kubectl -n {scenario.namespace} describe resourcequota" in commands(found)
    assert found.next[0].what.startswith("will be retried within 5 min")


def test_a_pause_holds_what_is_due(scenario: Scenario, why: Why) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    scenario.api.patch("cluster.x-k8s.io/v1beta2", "Cluster", "prod", scenario.namespace, {"spec": {"paused": True}})
    # Should the manager hear of the schedule first, there would be a machine.
    scenario.wait_condition("Paused", "True")
    scenario.active(True)
    scenario.wait_phase("Pending", "Paused")
    found = why()
    agrees(scenario, found)
    assert "paused: acting waits until it is resumed" in found.headline
    assert ("Paused", "Cluster prod is paused") in [(said.type, said.message) for said in found.also]
    assert f"kubectl -n {scenario.namespace} patch clusters.cluster.x-k8s.io prod" in commands(found)
    assert [rung.state for rung in found.precedence if rung.name == "Cluster prod"] == ["is paused"]


def test_a_lost_machine_waits_for_its_replacement(scenario: Scenario, why: Why) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    # As if others had been lost: the wait then is 80 s, long enough to be looked at on a busy machine.
    earlier = {"count": 3, "lastTime": in_hours(0), "uid": "of-an-earlier-machine"}
    scenario.api.patch_status(*MACHINE, "web", scenario.namespace, {"replacements": earlier})
    scenario.api.delete(*MACHINES, "web", scenario.namespace)
    scenario.wait_phase("Pending", "ReplacementDelayed")
    found = why()
    agrees(scenario, found)
    assert "replacement 4 is created at" in found.headline
    [due] = [entry.at for entry in found.next if entry.what == "replacement 4 is created"]
    assert due is not None
    assert timedelta(0) < due - found.at <= timedelta(seconds=81)
    assert f"kubectl -n {scenario.namespace} events --for ScheduledMachine/web" in commands(found)


def test_a_deletion_tells_what_it_waits_for(scenario: Scenario, why: Why) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.hold_machine()
    scenario.delete()
    scenario.wait_phase("ShuttingDown", "NodeDraining")
    found = why()
    assert found.headline.startswith(f"{scenario.namespace}/web is being deleted: the machine is drained and deleted")
    assert (found.decided_by, decider(found)) == ("Deletion", "deletion of the ScheduledMachine")
    assert found.settled is Settled.NOT_AS_WANTED
    scenario.let_machine_go()
    eventually(lambda: scenario.find() is None, what="it is gone")
    with pytest.raises(ConfigError, match=f"there is no ScheduledMachine web in namespace {scenario.namespace}"):
        why()


# Rights --------------------------------------------------------------------------------------------------------------


def person(plane: ControlPlane, namespace: str, folder: Path, name: str, *resources: tuple[str, str]) -> Path:
    """A kubeconfig of somebody who may get these resources (group, plural) in the namespace, and nothing else."""
    api, rbac = plane.api, "rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [group], "resources": [plural], "verbs": ["get"]} for group, plural in resources]
    metadata = {"name": name, "namespace": namespace}
    user = user_of(namespace, name)
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    api.create({"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": rules})
    binding = {"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata}
    api.create({**binding, "subjects": [subject], "roleRef": role})
    group, plural = resources[-1]
    attributes = {"verb": "get", "group": group, "resource": plural, "namespace": namespace}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    eventually(lambda: api.request("POST", reviews, review)["status"]["allowed"], what="the role counts")
    return plane.user_kubeconfig(folder / name, user, namespace=namespace)


def user_of(namespace: str, name: str) -> str:
    # It stands in a certificate, which limits its length.
    return f"{name}-of-{namespace[-12:]}"


OWN = ("5spot.finos.org", "scheduledmachines")
SCHEDULES = (PROVIDER_GROUP, "whyplayeds")
CAPI = ("cluster.x-k8s.io", "*")
CHILDREN = (("bootstrap.cluster.x-k8s.io", "*"), ("infrastructure.cluster.x-k8s.io", "*"))


def test_the_rights_of_a_person_in_one_namespace_are_enough(
    scenario: Scenario, why: Why, control_plane: ControlPlane, tmp_path: Path
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_phase("Active", "MachineCreated")
    scenario.node_ready()
    scenario.wait_phase("Active", "MachineReady")
    mark = control_plane.audit_log.mark()
    reader = person(control_plane, scenario.namespace, tmp_path, "whole", OWN, CAPI, *CHILDREN, SCHEDULES)
    found = why(reader)
    agrees(scenario, found)
    assert found.settled is Settled.AS_WANTED
    # Definitions of kinds belong to no namespace: what is served is known all the same.
    assert {unread.resource for unread in found.unread} == {"customresourcedefinitions.apiextensions.k8s.io"}
    assert all(unread.instead for unread in found.unread)
    verbs = {
        event["verb"]
        for event in control_plane.audit(since=mark)
        if event["user"]["username"] == user_of(scenario.namespace, "whole")
    }
    assert verbs == {"get"}, "it reads, and nothing else"

    reader = person(control_plane, scenario.namespace, tmp_path, "blind", OWN, CAPI)
    found = why(reader)
    assert found.settled is Settled.CANNOT_TELL
    assert found.headline.startswith(f"cannot tell whether {scenario.namespace}/web is as wanted: ")
    assert (found.up, found.schedule.resolved) == (None, None)
    assert f"kubectl auth can-i get whyplayeds.{PROVIDER_GROUP} -n {scenario.namespace}" in commands(found)
    assert found.reported is not None
    assert "the machine is up and its node is ready" in found.reported.message, "what the controller last said helps"

    reader = person(control_plane, scenario.namespace, tmp_path, "narrow", OWN, SCHEDULES)
    assert why(reader).settled is Settled.CANNOT_TELL
    reader = person(control_plane, scenario.namespace, tmp_path, "stranger", SCHEDULES)
    with pytest.raises(
        ConfigError, match=r"you may not read ScheduledMachine .*kubectl auth can-i get scheduledmachines"
    ):
        why(reader)


@pytest.mark.contract("B4.8")
def test_nothing_of_an_embedded_spec_is_told(scenario: Scenario, why: Why) -> None:
    secret = {"token": f"{SECRET}-token", "files": [{"content": f"password={SECRET}"}]}
    scenario.create(
        bootstrapSpec={
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "StandInBootstrap",
            "spec": secret,
        },
        infrastructureSpec={
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "NotInstalledMachine",
            "spec": {"userData": SECRET},
        },
    )
    scenario.active(True)
    scenario.wait_phase("Error", "MachineCreationFailed")
    found = why()
    agrees(scenario, found)
    assert "kubectl api-resources --api-group=infrastructure.cluster.x-k8s.io" in commands(found)
    assert SECRET not in json.dumps(to_json(found))


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_connects_by_the_context_and_tells_by_its_exit_code(
    scenario: Scenario, control_plane: ControlPlane, tmp_path: Path
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    kubeconfig = control_plane.kubeconfig(tmp_path / "local", namespace=scenario.namespace)
    done = subprocess.run(
        [sys.executable, "-m", "fivespot.cli", "why", "web"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"{scenario.namespace}/web is as wanted: down, outside the schedule", ""]
    labels = [line.split("  ")[0] for line in lines[2:] if line[0] != " "]
    assert labels == ["Wanted", "Decided by", "Schedule", "State"]
    assert "\x1b" not in done.stdout
