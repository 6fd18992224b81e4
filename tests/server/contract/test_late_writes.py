"""B2.8: writes that arrive late. The gate holds a request of the manager while the world changes under it."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fivespot
from controlplane import ControlPlane
from controlplane.audit import select
from fivespot.runtime import Client
from harness import MANAGER_USER
from support import eventually
from support.children import wait_absent
from support.gate import Gate
from support.refusals import foreign
from support.scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]

PLURALS = {MACHINES: "machines", BOOTSTRAP: "standinbootstraps", INFRASTRUCTURE: "standinmachines"}


def gate(plane: ControlPlane, scenario: Scenario, kind: tuple[str, str], operation: str) -> Gate:
    return Gate(plane, scenario.namespace, [(kind[0].partition("/")[0], PLURALS[kind])], [operation])


def codes(plane: ControlPlane, mark: int, scenario: Scenario, kind: tuple[str, str], verb: str) -> list[int]:
    """Return the status codes of the manager's requests. While its cache lags, it may repeat one without effect."""
    found = select(plane.audit(since=mark), user=MANAGER_USER, verbs=verb, namespace=scenario.namespace)
    return [event["responseStatus"]["code"] for event in select(found, resource=PLURALS[kind])]


def exchange(scenario: Scenario, kind: tuple[str, str]) -> Json:
    """Another object takes the place of ours."""
    scenario.api.delete(*kind, scenario.name, scenario.namespace)
    eventually(lambda: scenario.child(kind) is None, what="ours is gone")
    return scenario.api.create(foreign(kind, scenario.namespace, labels={"whose": "another"}))


@pytest.mark.contract("B2.8")
def test_a_late_delete_of_the_machine_hits_no_other_of_that_name(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    with gate(control_plane, scenario, MACHINES, "DELETE") as held:
        mark = control_plane.audit_log.mark()
        scenario.active(False)
        assert held.held()["oldObject"]["metadata"]["name"] == "web"
        another = exchange(scenario, MACHINES)
        held.release()
        scenario.wait_phase("Inactive", "ScheduleInactive")
    assert set(codes(control_plane, mark, scenario, MACHINES, "delete")) == {409}
    assert scenario.child(MACHINES) == another
    wait_absent(scenario, BOOTSTRAP, INFRASTRUCTURE)


@pytest.mark.contract("B2.8")
@pytest.mark.parametrize("kind", [BOOTSTRAP, INFRASTRUCTURE], ids=["bootstrap", "infrastructure"])
def test_a_late_delete_of_a_leftover_hits_no_other_of_that_name(
    scenario: Scenario, control_plane: ControlPlane, kind: tuple[str, str]
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    with gate(control_plane, scenario, kind, "DELETE") as held:
        mark = control_plane.audit_log.mark()
        scenario.active(False)
        held.held()
        another = exchange(scenario, kind)
        held.release()
        scenario.wait_phase("Inactive", "ScheduleInactive")
    assert set(codes(control_plane, mark, scenario, kind, "delete")) == {409}
    assert scenario.child(kind) == another
    assert [scenario.child(other) for other in PLURALS if other != kind] == [None, None]


@pytest.mark.contract("B2.8")
@pytest.mark.parametrize("kind", list(PLURALS), ids=list(PLURALS.values()))
def test_a_late_create_finds_the_name_taken_and_says_so(
    scenario: Scenario, control_plane: ControlPlane, kind: tuple[str, str]
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    with gate(control_plane, scenario, kind, "CREATE") as held:
        mark = control_plane.audit_log.mark()
        scenario.active(True)
        assert held.held()["name"] == "web", "a name of the server's choice could come twice"
        another = scenario.api.create(foreign(kind, scenario.namespace))
        held.release()
        status = scenario.wait_phase("Error", "MachineCreationFailed")
    assert "not controlled by" in status["message"]
    assert codes(control_plane, mark, scenario, kind, "create") == [409]
    assert scenario.child(kind) == another
    assert kind == MACHINES or scenario.child(MACHINES) is None, "the Machine comes last"


@pytest.mark.contract("B2.8")
def test_a_create_that_was_overtaken_by_the_schedule_is_taken_back(
    scenario: Scenario, control_plane: ControlPlane
) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    with gate(control_plane, scenario, MACHINES, "CREATE") as held:
        scenario.active(True)
        held.held()
        scenario.active(False)
        scenario.edit(killSwitch=True)
        held.release()
        scenario.wait_phase("Terminated", "KillSwitchActivated")
    scenario.wait_gone()


@pytest.mark.contract("B2.8")
@pytest.mark.parametrize("change", ["exchanged", "edited"])
def test_a_late_patch_changes_neither_another_object_nor_a_later_state(
    scenario: Scenario, control_plane: ControlPlane, change: str
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    with gate(control_plane, scenario, MACHINES, "UPDATE") as held:
        mark = control_plane.audit_log.mark()
        scenario.edit(killSwitch=True)
        held.held()
        if change == "exchanged":
            another = exchange(scenario, MACHINES)
        else:
            metadata = {"annotations": {"example.com/theirs": "kept"}, "finalizers": ["machine.cluster.x-k8s.io"]}
            scenario.api.patch(*MACHINES, "web", scenario.namespace, {"metadata": metadata})
        held.release()
        if change == "exchanged":
            scenario.wait_phase("Terminated", "KillSwitchActivated")
            assert scenario.child(MACHINES) == another
            assert set(codes(control_plane, mark, scenario, MACHINES, "patch")) == {409}
        else:
            eventually(lambda: "deletionTimestamp" in scenario.machine()["metadata"], what="it was tried again")
            metadata = scenario.machine()["metadata"]
            assert metadata["annotations"]["example.com/theirs"] == "kept"
            assert "machine.cluster.x-k8s.io/exclude-node-draining" in metadata["annotations"]
            *late, last = codes(control_plane, mark, scenario, MACHINES, "patch")
            assert (set(late), last) == ({409}, 200)
            scenario.let_machine_go()
            scenario.wait_gone()


@pytest.mark.contract("B2.8")
def test_a_late_report_is_not_written_over_a_later_one(scenario: Scenario, control_plane: ControlPlane) -> None:
    scenario.create()
    scenario.wait_phase("Inactive", "ScheduleInactive")
    with Gate(control_plane, scenario.namespace, [("5spot.finos.org", "scheduledmachines/status")], ["UPDATE"]) as held:
        mark = control_plane.audit_log.mark()
        scenario.edit(enabled=False)
        held.held()
        theirs = [{"type": "Audited", "status": "True", "reason": "ByHand", "message": ""}]
        at = {"lastTransitionTime": "2026-11-01T00:00:00Z"}
        conditions = scenario.status["conditions"] + [{**each, **at} for each in theirs]
        scenario.api.patch_status(
            "5spot.finos.org/v1beta1", "ScheduledMachine", "web", scenario.namespace, {"conditions": conditions}
        )
        held.release()
        scenario.wait_phase("Disabled", "ScheduleDisabled")
        assert scenario.condition("Audited")["reason"] == "ByHand"
    sent = select(control_plane.audit(since=mark), user=MANAGER_USER, verbs="patch", namespace=scenario.namespace)
    *late, last = [event["responseStatus"]["code"] for event in select(sent, subresource="status")]
    assert (set(late), last) == ({409}, 200), "its cache may have been behind for more than one try"


# What the code can say at all --------------------------------------------------------------------------------------


@functools.cache
def nodes() -> list[tuple[str, ast.Call | ast.Constant]]:
    """Every call and every constant of what works in a cluster, with its file: no server, and nothing for tests."""
    root = Path(fivespot.__file__).parent
    return [
        (str(path.relative_to(root)), node)
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in {"apiserver", "testing"}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Constant)
    ]


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls of a function or method of that name anywhere in the product, with where."""
    for file, node in nodes():
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called == name:
                yield f"{file}:{node.lineno}", node


def constants(text: str) -> set[str]:
    """Files in which a string constant is this text."""
    return {file for file, node in nodes() if isinstance(node, ast.Constant) and node.value == text}


@pytest.mark.contract("B2.8")
def test_no_delete_without_a_uid_exists_in_the_code() -> None:
    found = list(calls("delete"))
    assert found, "the search would find one"
    for where, call in found:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert "uid" in given, f"{where}: {ast.unparse(call)}"
        assert given["uid"] not in {"''", "None"}, where
    # And there is no other way to the verb than the one that demands it.
    assert constants("DELETE") == {"runtime/client/requests.py"}
    assert not constants("deletecollection")
    uid = inspect.signature(Client.delete).parameters["uid"]
    assert uid.kind is inspect.Parameter.KEYWORD_ONLY
    assert uid.default is inspect.Parameter.empty


@pytest.mark.contract("B2.8")
def test_every_patch_of_an_object_that_others_write_names_uid_and_version() -> None:
    found = {where: call for where, call in calls("merge_patch") if not where.startswith("runtime/")}
    assert found, "the Machine's annotations, at least"
    # What writes a status takes the object that was read, and makes the same patch.
    ours = ("controllers/", "providers/")
    statuses = {where: call for where, call in calls("patch_status") if where.startswith(ours)}
    assert len(statuses) >= 2, "ScheduledMachine's status, provider's status"
    for where, call in statuses.items():
        assert len(call.args) == 3, where
    for where, call in found.items():
        assert len(call.args) == 2 or any(keyword.arg == "head" for keyword in call.keywords), where
    # JSON patches are for finalizers, and those test both first. A person's own command may apply.
    by_person = "cli/override/"
    json_patches = {where.partition(":")[0] for where, _ in calls("json_patch") if not where.startswith(by_person)}
    assert json_patches == {"runtime/objects/patch.py"}
    assert not [where for where, _ in calls("apply") if not where.startswith((by_person, "testing/"))]
    assert not constants("generateName")
