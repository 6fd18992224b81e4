"""Machines with nothing to do cost nothing, also when the manager starts again (contract B4.6)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from controlplane import ControlPlane
from controlplane.audit import WRITES, select, tally
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import machine
from support.measurements import total, written
from support.scenario import Scenario

SPACES = 8
MINUTE = 60.0
RUNS = "controller_runtime_reconcile_total"


@dataclass(frozen=True)
class Fleet:
    """Numbers of machines.

    :param down: at rest.
    :param up: with a ready node.
    :param lost: whose schedule does not exist; they are looked at every minute.
    """

    down: int
    up: int
    lost: int


@pytest.mark.slow
@pytest.mark.first
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "fleet",
    [
        pytest.param(Fleet(160, 20, 20), id="two hundred"),
        pytest.param(Fleet(1680, 200, 120), id="two thousand", marks=pytest.mark.long),
    ],
)
def test_steady_machines_cause_no_write_in_a_minute_and_none_after_a_restart(
    own_control_plane: Callable[..., ControlPlane], fleet: Fleet
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    provider = ProviderKind(api, "Played")
    provider.install()
    resting = [make_namespace(api, f"rest-{number}") for number in range(SPACES)]
    busy, lost = make_namespace(api, "up"), make_namespace(api, "lost")
    for namespace in resting:
        provider.create(namespace, active=False)
    provider.create(busy, active=True)
    reference = provider.reference()
    api.create_many(
        machine(f"m{number}", namespace, schedule=reference)
        for number, namespace in [
            *((number, resting[number % SPACES]) for number in range(fleet.down)),
            *((number, busy) for number in range(fleet.up)),
            *((number, lost) for number in range(fleet.lost)),
        ]
    )
    with ManagerProcess(plane, "--enable-leader-election") as manager:
        eventually(
            lambda: phases(manager) == {"Inactive": fleet.down + fleet.lost, "Active": fleet.up},
            300,
            what="all settled",
            poll=0.5,
        )
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(
                    Scenario.node_ready, (Scenario(api, busy, provider, f"m{number}") for number in range(fleet.up))
                )
            )
        eventually(
            lambda: ready(api.list("5spot.finos.org/v1beta1", "ScheduledMachine", busy)) == fleet.up, 60, poll=0.5
        )
        calm(plane)

        mark, runs = plane.audit_log.mark(), evaluations(manager)
        time.sleep(MINUTE)
        assert counted(plane, mark) == {}
        # They were looked at all the same, and the log would have shown a write: the Lease is renewed.
        assert evaluations(manager) - runs >= fleet.lost / 2
        leases = select(plane.audit(since=mark), user=MANAGER_USER, verbs=WRITES, resource="leases")
        assert len(leases) > MINUTE / 10

        manager.stop()
        mark = plane.audit_log.mark()
        manager.start()
        eventually(
            lambda: evaluations(manager) >= fleet.down + fleet.up + fleet.lost, 60, what="all are evaluated again"
        )
        # Once this one has come, all that the start led to has been done, events included.
        api.create(machine("sentinel", busy, schedule=reference))
        sentinel = Scenario(api, busy, provider, "sentinel")
        sentinel.wait_made(30)
        eventually(lambda: sentinel.events("MachineCreated"), 30, what="its event")
        others = [e for e in written(plane, mark) if not about_sentinel(e)]
        assert dict(tally(others)) == {}


def phases(manager: ManagerProcess) -> dict[str, float]:
    """Count machines by phase, without those that have none."""
    name = "fivespot_machines_by_phase"
    found = {series.split('"')[1]: count for series, count in manager.metrics().items() if series.startswith(name)}
    return {phase: count for phase, count in found.items() if count}


def ready(machines: Iterable[dict[str, object]]) -> int:
    return sum(1 for found in machines if isinstance(status := found.get("status"), dict) and status.get("ready"))


def evaluations(manager: ManagerProcess) -> float:
    return total(manager.metrics(), RUNS, controller="scheduledmachine")


def counted(plane: ControlPlane, mark: int) -> dict[str, int]:
    return dict(tally(written(plane, mark)))


def calm(plane: ControlPlane) -> None:
    """Return once nothing has been written for two seconds: the last event of the start is out."""
    for _ in range(60):
        mark = plane.audit_log.mark()
        time.sleep(2)
        if not written(plane, mark):
            return
    raise AssertionError("the manager keeps writing")


def about_sentinel(event: dict[str, object]) -> bool:
    """A creation names its object in the body alone; nothing but the sentinel is to be created."""
    reference = event["objectRef"]
    assert isinstance(reference, dict)
    return str(reference.get("name", "sentinel")).startswith("sentinel")
