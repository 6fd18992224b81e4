"""A15 with the manager as shipped: a provider that cannot be read is no verdict, and a restart reports nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from harness import ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.measurements import total, writes
from support.rbac import may_read_definitions, may_read_providers
from support.scenario import MACHINES, Scenario

pytestmark = pytest.mark.first


def make_kind(api: Api, kind: str) -> ProviderKind:
    made = ProviderKind(api, kind)
    made.install()
    return made


def named(api: Api, namespace: str, provider: ProviderKind, name: str, *, active: bool, **spec: Any) -> Scenario:
    """A ScheduledMachine with a schedule object of the same name."""
    provider.create(namespace, name, active=active)
    scenario = Scenario(api, namespace, provider, name)
    scenario.create(schedule=provider.reference(name), **spec)
    return scenario


def runs(manager: ManagerProcess) -> float:
    return total(manager.metrics(), "fivespot_reconciliations_total")


@pytest.mark.long
@pytest.mark.contract("A15")
@pytest.mark.timeout(240)
def test_a_forbidden_list_begins_nothing_reports_nothing_at_first_and_delays_no_other_kind(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    denied, readable = make_kind(api, "Denied"), make_kind(api, "Readable")
    namespace = make_namespace(api, "a15")
    other = named(api, namespace, readable, "other", active=True)
    held = named(api, namespace, denied, "held", active=True)
    killed = named(api, namespace, denied, "killed", active=True)
    disabled = named(api, namespace, denied, "disabled", active=True)
    closing = named(api, namespace, denied, "closing", active=True, gracefulShutdownTimeout="1h")
    idle = named(api, namespace, denied, "idle", active=False)
    returning = named(api, namespace, denied, "returning", active=True, enabled=False)
    moved = named(api, namespace, readable, "moved", active=True)
    with ManagerProcess(plane) as manager:
        for scenario in (other, held, killed, disabled, closing, moved):
            scenario.wait_made()
            scenario.wait_phase("Active")
        idle.wait_phase("Inactive")
        returning.wait_phase("Disabled")
        denied.status(namespace, "closing", active=False)
        closing.wait_phase("ShuttingDown", "GracePeriodActive")
        manager.stop()
        # The verdicts change while nobody looks, and then nobody may look.
        may_read_providers(api, ["readables", "timebasedspotschedules"])
        denied.status(namespace, "held", active=False)
        denied.status(namespace, "idle", active=True)
        before = {scenario.name: scenario.get()["metadata"]["resourceVersion"] for scenario in (held, idle)}
        mark = plane.audit_log.mark()
        manager.start()
        readable.status(namespace, "other", active=False)
        eventually(lambda: other.child(MACHINES) is None, what="the other kind's machine goes at once")
        other.wait_phase("Inactive")
        eventually(lambda: runs(manager) >= 8, what="an evaluation of each")
        assert {scenario.name: scenario.get()["metadata"]["resourceVersion"] for scenario in (held, idle)} == before
        assert {event["objectRef"]["name"] for event in writes(plane, mark, namespace)} == {"other"}
        assert not [e for scenario in (held, idle) for e in scenario.events("ProviderUnreadable")]
        # Nothing is created on the word of a schedule that cannot be read, and no deletion begun for lack of it.
        returning.edit(enabled=True)
        counted = runs(manager)
        moved.edit(schedule=denied.reference("moved"))
        eventually(lambda: runs(manager) > counted, what="an evaluation of the new reference")
        # A6 applies as ever, and what had begun goes on.
        killed.edit(killSwitch=True)
        disabled.edit(enabled=False)
        closing.edit(gracefulShutdownTimeout="0s")
        for scenario, phase in ((killed, "Terminated"), (disabled, "Disabled"), (closing, "Inactive")):
            # The schedule gets half a minute to become readable before a shutdown that had begun goes on.
            eventually(lambda scenario=scenario: scenario.child(MACHINES) is None, 60, what=f"{scenario.name} is gone")  # type: ignore[misc]
            if scenario is not closing:
                scenario.wait_phase(phase)
        assert held.machine()["metadata"].get("deletionTimestamp") is None
        assert idle.child(MACHINES) is None
        assert returning.child(MACHINES) is None
        assert moved.machine()["metadata"].get("deletionTimestamp") is None
        assert "shutdownRequestedTime" not in moved.status
        kind = {"namespace": namespace, "kind": "Denied"}
        metrics = manager.metrics()
        assert total(metrics, "fivespot_spot_schedule_resolutions_total", **kind) == 0
        assert total(metrics, "fivespot_spot_schedule_resolution_errors_total", **kind) == 0
        assert manager.exit_code is None


@pytest.mark.long
@pytest.mark.contract("A15")
@pytest.mark.timeout(240)
def test_a_restart_without_definitions_or_rights_leaves_every_machine_as_it_is(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    provider = make_kind(api, "Plain")
    namespace = make_namespace(api, "a15")
    up = named(api, namespace, provider, "up", active=True)
    down = named(api, namespace, provider, "down", active=False)
    lost = named(api, namespace, provider, "lost", active=True)
    with ManagerProcess(plane) as manager:
        for scenario in (up, lost):
            scenario.wait_made()
            scenario.wait_phase("Active")
        down.wait_phase("Inactive")
        provider.delete(namespace, "lost")
        lost.wait_condition("SpotScheduleResolved", "False", "ProviderNotFound")
        everything = (up, down, lost)
        settled = {scenario.name: scenario.get() for scenario in everything}
        # An ordinary restart: no verdict is lost, and nothing is written.
        mark = plane.audit_log.mark()
        manager.stop()
        manager.start()
        kind = {"namespace": namespace, "kind": "Plain"}
        eventually(
            lambda: total(manager.metrics(), "fivespot_spot_schedule_resolutions_total", **kind) >= len(everything),
            what="all are evaluated",
        )
        assert {scenario.name: scenario.get() for scenario in everything} == settled
        assert writes(plane, mark, namespace) == []
        assert "deletionTimestamp" not in lost.machine()["metadata"]
        # Definitions cannot be read: nothing is known of any kind, which is no verdict either.
        manager.stop()
        may_read_definitions(api, allowed=False)
        provider.status(namespace, "up", active=False)
        provider.status(namespace, "down", active=True)
        mark = plane.audit_log.mark()
        manager.start(wait=False)

        def says_so() -> bool:
            try:
                code, text = manager.health("/readyz")
            except (OSError, LookupError) as error:
                raise AssertionError(str(error)) from None
            return code == 503 and "customresourcedefinitions" in text.lower()

        eventually(says_so, 30, what="/readyz names what cannot be read")
        assert manager.health("/healthz")[0] == 200
        assert writes(plane, mark, namespace) == []
        assert {scenario.name: scenario.get() for scenario in everything} == settled
        may_read_definitions(api, allowed=True)
        up.wait_gone(60)
        down.wait_made(60)
        assert "deletionTimestamp" not in lost.machine()["metadata"]
