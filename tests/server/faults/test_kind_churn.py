"""Provider kinds that come, change and go while machines run leave nothing behind."""

from __future__ import annotations

import copy
import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from harness import ManagerProcess
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import MACHINE, machine
from support.measurements import resident_bytes
from support.scenario import MACHINES

EACH = 3
"""Machines per kind that comes and goes."""
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MIB = 1024 * 1024
GROWTH_MIB = 12.0
"""What a second round may add to resident memory: an allocator keeps some pages, a leak would keep adding them."""

MEASURED = logging.getLogger("measured")

Json = dict[str, Any]


def informers(process: ManagerProcess) -> list[tuple[str, str | None, str]]:
    return sorted((each["resource"], each["namespace"], each["projection"]) for each in process.debug("informers"))


def tasks(process: ManagerProcess) -> Counter[str]:
    # Unnamed ones belong to the request for this list and to others that just arrive.
    return Counter(each["name"] for each in process.debug("tasks") if not each["name"].startswith("Task-"))


def phases(api: Api, namespace: str, phase: str, count: int, reason: str | None = None) -> bool:
    found: Counter[str] = Counter()
    for each in api.list(*MACHINE, namespace):
        status = each.get("status", {})
        ready = [c["reason"] for c in status.get("conditions", []) if c["type"] in {"Ready", "SpotScheduleResolved"}]
        found[status.get("phase", "") if reason is None or reason in ready else f"{status.get('phase')} {ready}"] += 1
    assert found == {phase: count}, dict(found)
    return True


def soon(act: Callable[[], object]) -> None:
    """Do it once the server serves what was installed a moment ago."""

    def done() -> bool:
        try:
            act()
        except ApiError as error:
            raise AssertionError(str(error)) from error
        return True

    eventually(done, 30)


def kind(api: Api, number: int) -> ProviderKind:
    return ProviderKind(api, f"Passing{number}", versions=("v1alpha1", "v1beta1"), served=["v1alpha1"])


def changed(definition: Json) -> Json:
    """The patch after which only the other version is served."""
    versions = copy.deepcopy(definition["spec"]["versions"])
    for version in versions:
        version["served"] = not version["served"]
    return {"spec": {"versions": versions}}


def one_round(
    api: Api, process: ManagerProcess, namespace: str, standing: list[tuple[str, str | None, str]], count: int
) -> None:
    """Kinds and their machines come, work, are served at another version only, work on, and go."""
    kinds = [kind(api, number) for number in range(count)]
    api.create_many(each.definition for each in kinds)
    for each in kinds:
        soon(partial(each.create, namespace, each.kind.lower(), active=True))
    machines = [
        machine(
            f"{each.kind.lower()}-{number}",
            namespace,
            schedule=each.reference(each.kind.lower()),
            gracefulShutdownTimeout="0s",
        )
        for each in kinds
        for number in range(EACH)
    ]
    api.create_many(machines)
    eventually(partial(phases, api, namespace, "Active", count * EACH), 60, poll=0.5)
    assert len(informers(process)) >= len(standing) + count

    for each in kinds:
        each.change(changed(each.definition))
        each.version = "v1beta1"
    for each in kinds:
        soon(partial(each.status, namespace, each.kind.lower(), active=False))
    eventually(partial(phases, api, namespace, "Inactive", count * EACH), 60, poll=0.5)
    assert not api.list(*MACHINES, namespace)

    for each in kinds:
        each.remove(wait=False)
    eventually(partial(phases, api, namespace, "Inactive", count * EACH, "ProviderCRDNotInstalled"), 60, poll=0.5)
    for body in machines:
        api.delete(*MACHINE, body["metadata"]["name"], namespace)
    eventually(lambda: not api.list(*MACHINE, namespace), 60, poll=0.5, what="the machines are gone")
    names = {each.definition["metadata"]["name"] for each in kinds}
    eventually(lambda: not names & {each["metadata"]["name"] for each in api.list(*CRD)}, 60, poll=0.5)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("count", "machines"),
    [pytest.param(4, 40, id="four"), pytest.param(20, 440, id="twenty", marks=pytest.mark.long)],
)
def test_kinds_that_come_change_and_go_leave_informers_tasks_and_memory_as_they_were(
    plane: ControlPlane, played: ProviderKind, count: int, machines: int
) -> None:
    """Beside those of the kinds that pass there are machines of one that stays; every second is active."""
    api = plane.api
    stays, passes = make_namespace(api, "stays"), make_namespace(api, "passes")
    for name in ("on", "off"):
        played.create(stays, name, active=name == "on")
    with ManagerProcess(plane) as process:
        api.create_many(
            machine(f"m{number}", stays, schedule=played.reference(("off", "on")[number % 2]))
            for number in range(machines)
        )
        eventually(lambda: len(api.list(*MACHINES, stays)) == machines // 2, 60, poll=0.5)
        standing = {each["metadata"]["name"]: each["metadata"]["uid"] for each in api.list(*MACHINES, stays)}
        informers_before, tasks_before = informers(process), tasks(process)
        memory = [resident_bytes(process.pid)]
        for _ in range(2):
            began = time.monotonic()
            one_round(api, process, passes, informers_before, count)
            worked = time.monotonic()

            def back() -> bool:
                assert informers(process) == informers_before
                assert tasks(process) == tasks_before
                return True

            eventually(back, 30, what="informers and tasks are as before")
            memory.append(resident_bytes(process.pid))
            MEASURED.info("round %.1f s, back after %.1f s", worked - began, time.monotonic() - worked)
        MEASURED.info("memory in MiB: %s", ", ".join(f"{size / MIB:.1f}" for size in memory))
        assert memory[2] - memory[1] < GROWTH_MIB * MIB
        assert {each["metadata"]["name"]: each["metadata"]["uid"] for each in api.list(*MACHINES, stays)} == standing
