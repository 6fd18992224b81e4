"""The output of kubectl for users, with the manager running."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane import Api, ControlPlane
from controlplane.server import KubectlFailed
from harness import MANIFESTS, ManagerProcess
from harness.providers import ProviderKind
from support import eventually
from support.machines import SCHEDULE, machine, schedule
from support.scenario import MACHINES, Scenario

EXISTING = MANIFESTS / "examples" / "existing-5spot.yaml"
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": "Europe/Berlin"}

Kubectl = Callable[..., str]


@pytest.fixture
def scenario(api: Api, namespace: str, manager: ManagerProcess) -> Scenario:
    """A namespace with a Cluster, a TimeBasedSpotSchedule ``hours`` that is always active, and the manager running."""
    api.create(schedule("hours", namespace, ALWAYS))
    return Scenario(api, namespace, ProviderKind(api, SCHEDULE[1]))


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> Kubectl:
    """kubectl in the test's namespace."""

    def run(*arguments: str, **options: str) -> str:
        return control_plane.kubectl("-n", namespace, *arguments, **options)  # type: ignore[arg-type]

    return run


def columns(table: str) -> dict[str, str]:
    """The one row of a table, by column; columns are at least three spaces apart."""
    header, row = table.rstrip().splitlines()
    titles = [(found.group().strip(), found.start()) for found in re.finditer(r"\S+(?: \S+)*\s*", header)]
    ends = [start for _, start in titles[1:]] + [len(row)]
    return {title: row[start:end].strip() for (title, start), end in zip(titles, ends, strict=True)}


def test_get_shows_the_columns_of_the_existing_5_spot_and_more_when_wide(scenario: Scenario, kubectl: Kubectl) -> None:
    scenario.create()
    scenario.wait_phase("Active", "MachineCreated")
    shown = columns(kubectl("get", "sm"))
    assert list(shown) == ["NAME", "PHASE", "READY", "INSCHEDULE", "ENABLED", "SCHEDULE", "KILLSWITCH", "AGE"]
    assert re.fullmatch(r"\d+s", shown.pop("AGE"))
    assert list(shown.values()) == ["web", "Active", "false", "true", "true", "TimeBasedSpotSchedule", "false"]
    scenario.node_ready()
    scenario.wait_condition("Ready", "True")
    assert columns(kubectl("get", "scheduledmachine"))["READY"] == "true"
    wide = columns(kubectl("get", "scheduledmachines", "web", "-o", "wide"))
    assert wide["REASON"] == "MachineReady"
    assert wide["NEXTCLEANUP"] == ""
    assert wide["MESSAGE"] == scenario.status["message"]
    plan = columns(kubectl("get", "tbss"))
    assert list(plan) == ["NAME", "ACTIVE", "ENABLED", "TIMEZONE", "NEXTTRANSITION", "AGE"]
    assert (plan["NAME"], plan["ACTIVE"], plan["ENABLED"], plan["TIMEZONE"]) == (
        "hours",
        "true",
        "true",
        "Europe/Berlin",
    )
    assert columns(kubectl("get", "tbss", "-o", "wide"))["REASON"] == "WindowOpen"


def test_describe_tells_what_is_and_what_happened(scenario: Scenario, kubectl: Kubectl) -> None:
    scenario.create()
    scenario.wait_phase("Active", "MachineCreated")
    eventually(lambda: scenario.events("MachineCreated"), what="the event")
    text = kubectl("describe", "sm", "web")
    for line in (
        r"Phase: +Active",
        r"In Schedule: +true",
        r"Message: +waiting for the machine's node to be ready",
        r"Reason: +Resolved",
        r"Type: +MachineReady",
        r"Last Scheduled Time: +20",
        r"Normal +MachineCreated +.* +5spot-controller.* +waiting for the machine's node",
    ):
        assert re.search(line, text), f"{line} in\n{text}"
    assert re.search(r"Reason: +WindowOpen", kubectl("describe", "tbss", "hours"))


def test_explain_describes_every_field_of_spec(kubectl: Kubectl, manager: ManagerProcess) -> None:
    text = eventually(lambda: _explained(kubectl), 30, what="the server publishes its schema")
    fields = re.findall(r"^  (\w+)\t<(\S+)>(.*)\n((?:    .*\n)*)", text, re.MULTILINE)
    described = {name: (type_, flags.strip(), words.strip()) for name, type_, flags, words in fields}
    assert set(described) >= {
        "schedule",
        "enabled",
        "clusterName",
        "bootstrapSpec",
        "infrastructureSpec",
        "machineTemplate",
        "priority",
        "gracefulShutdownTimeout",
        "nodeDrainTimeout",
        "killSwitch",
        "nodeTaints",
        "killIfCommands",
        "kubeconfigSecretRef",
        "kata",
    }
    required = {name for name, (_, flags, _) in described.items() if "-required-" in flags}
    assert required == {"schedule", "clusterName", "bootstrapSpec", "infrastructureSpec"}
    assert [name for name, (_, _, words) in described.items() if not words or "<no description>" in words] == []


def _explained(kubectl: Kubectl) -> str:
    try:
        return kubectl("explain", "scheduledmachine.spec")
    except KubectlFailed as error:
        raise AssertionError(str(error)) from None


@pytest.fixture
def waiter(control_plane: ControlPlane, namespace: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a kubectl that waits for something."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [str(control_plane.binaries.kubectl), "-n", namespace, "wait", *arguments]
        environment = {"HOME": str(control_plane.folder), "KUBECONFIG": str(control_plane.admin_kubeconfig)}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_wait_for_machine_ready_returns_when_the_node_is_ready_and_not_before(
    scenario: Scenario, kubectl: Kubectl, waiter: Callable[..., subprocess.Popen[str]]
) -> None:
    scenario.create()
    scenario.wait_made()
    scenario.node_ready(ready=False)
    scenario.wait_condition("MachineReady", "False", "NodeNotReady")
    with pytest.raises(KubectlFailed, match="timed out waiting for the condition"):
        kubectl("wait", "--for=condition=MachineReady", "sm/web", "--timeout=1s")
    waiting = waiter("--for=condition=MachineReady", "sm/web", "--timeout=60s")
    scenario.node_ready()
    text, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, text
    assert "scheduledmachine.5spot.finos.org/web condition met" in text
    kubectl("wait", "--for=condition=Ready", "sm", "--all", "--timeout=10s")
    kubectl("patch", "tbss", "hours", "--type=merge", "-p", '{"spec":{"enabled":false}}')
    kubectl("wait", "--for=jsonpath={.status.phase}=Inactive", "sm/web", "--timeout=30s")
    kubectl("wait", "--for=condition=Ready", "sm/web", "--timeout=10s")
    kubectl("wait", "--for=condition=MachineReady=False", "sm/web", "--timeout=10s")


def test_apply_on_the_server_as_a_dry_run_judges_and_stores_nothing(
    scenario: Scenario, kubectl: Kubectl, namespace: str
) -> None:
    good = json.dumps(machine("web", namespace))
    options = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    assert "scheduledmachine.5spot.finos.org/web serverside-applied (server dry run)" in kubectl(*options, stdin=good)
    assert scenario.find() is None
    bad = json.dumps(machine("web", namespace, clusterName="-no-", gracefulShutdownTimeout="5 minutes"))
    with pytest.raises(KubectlFailed, match=r"spec\.gracefulShutdownTimeout"):
        kubectl(*options, stdin=bad)
    misspelt = machine("web", namespace)
    misspelt["spec"]["gracefulShutdownTimout"] = "5m"
    with pytest.raises(KubectlFailed, match="gracefulShutdownTimout"):
        kubectl(*options, stdin=json.dumps(misspelt))


def test_what_is_applied_again_changes_nothing_that_the_manager_wrote(
    scenario: Scenario, kubectl: Kubectl, namespace: str
) -> None:
    """Neither kind of apply takes away finalizer or status, conflicts with them, or sees a difference afterwards."""
    body = json.dumps(machine("web", namespace, gracefulShutdownTimeout="0s"))
    for options in (("--server-side",), ()):
        kubectl("apply", *options, "-f", "-", stdin=body)
        scenario.wait_made()
        scenario.wait_phase("Active", "MachineCreated")
        before = scenario.get()
        assert before["metadata"]["finalizers"] == ["5spot.finos.org/scheduledmachine"]
        if options:
            kubectl("apply", *options, "-f", "-", stdin=body)
        else:
            assert "unchanged" in kubectl("apply", *options, "-f", "-", stdin=body)
        assert kubectl("diff", *options, "-f", "-", stdin=body) == ""
        after = scenario.get()
        assert after["status"] == before["status"]
        assert after["metadata"]["finalizers"] == before["metadata"]["finalizers"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        # Returns once it is gone, machine and all.
        kubectl("delete", "sm", "web", "--timeout=30s")
        assert scenario.child(MACHINES) is None


def test_manifests_of_the_existing_5_spot_apply_strictly_and_work(
    kubectl: Kubectl, api: Api, namespace: str, manager: ManagerProcess, tmp_path: Path
) -> None:
    moved = tmp_path / "existing.yaml"
    moved.write_text(EXISTING.read_text().replace("namespace: default", f"namespace: {namespace}"))
    kubectl("apply", "--validate=strict", "-f", str(moved))
    trading = Scenario(api, namespace, ProviderKind(api, SCHEDULE[1]), "trading-worker")
    trading.wait_condition("SpotScheduleResolved", "True", "Resolved")
    # Whichever hour it is: outside its schedule it rests, inside it says that its kinds are not installed here.
    kubectl("patch", "tbss", "trading-day", "--type=merge", "-p", '{"spec":{"enabled":false}}')
    trading.wait_phase("Inactive", "ScheduleInactive")
    listed = trading.condition("UnsupportedFields")["message"]
    assert all(field in listed for field in ("killIfCommands", "kubeconfigSecretRef", "kata"))
    assert columns(kubectl("get", "sm"))["PHASE"] == "Inactive"
    kubectl("apply", "--validate=strict", "-f", str(moved))
    spec = api.get(*SCHEDULE, "trading-day", namespace)["spec"]
    assert spec["enabled"] is True
    assert spec["hoursOfDay"] == ["08-11", "13-17", "22-1"]
    kubectl("patch", "sm", "trading-worker", "--type=merge", "-p", '{"spec":{"killSwitch":true}}')
    trading.wait_phase("Terminated", "KillSwitchActivated")
    kubectl("delete", "-f", str(moved), "--timeout=30s")
