"""A3, A8 and A15 where they wait: the manager runs in this process with shorter waiting times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest

from controlplane import ControlPlane, free_ports
from fivespot.controllers.scheduledmachine import Timings
from harness import install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.manager import manager_in_process
from support.measurements import received, scrape, total, writes
from support.rbac import may_read_providers
from support.refusals import conversion_dies
from support.scenario import MACHINES, Scenario

INTERVAL = 3.0
RESOLUTIONS = "fivespot_spot_schedule_resolutions_total"
RESOLUTION_ERRORS = "fivespot_spot_schedule_resolution_errors_total"


@pytest.mark.long
@pytest.mark.contract("A3", "A8")
@pytest.mark.timeout(240)
def test_shown_values_are_written_once_in_a_while_and_the_unresolved_counted_without_a_write(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    talking = make_namespace(plane.api, "a3")
    provider.create(talking, active=False)
    scenario = Scenario(plane.api, talking, provider)
    missing = make_namespace(plane.api, "a8")
    lost = Scenario(plane.api, missing, provider)
    [port] = free_ports(1)
    timings = Timings(display_interval=INTERVAL, unresolved_recheck=0.5)
    with manager_in_process(plane, timings, metrics_port=port):
        lost.create()
        scenario.create()
        lost.wait_phase("Inactive", "ProviderNotFound")
        scenario.wait_phase("Inactive", "ScheduleInactive")

        # A8
        kind = {"namespace": missing, "kind": "Played", "reason": "ProviderNotFound"}
        mark, counted = plane.audit_log.mark(), total(scrape(port), RESOLUTION_ERRORS, **kind)
        assert counted >= 1
        eventually(lambda: total(scrape(port), RESOLUTION_ERRORS, **kind) >= counted + 4, what="four more evaluations")
        assert writes(plane, mark, missing) == []
        assert total(scrape(port), "fivespot_scheduled_machines_unresolved", **kind) == 1

        # A3: many changes of words within the interval are one write, of the newest; then the interval begins anew.
        mark = plane.audit_log.mark()
        provider.ready(talking, ready="True", reason="Words", message="the first")
        eventually(lambda: shown(scenario) == "Words: the first", what="the first words are shown in the end")
        evaluated = total(scrape(port), RESOLUTIONS, namespace=talking)
        for number in range(6):
            provider.ready(talking, ready="True", reason="Words", message=f"number {number}")
            eventually(
                lambda before=evaluated + number: total(scrape(port), RESOLUTIONS, namespace=talking) > before,  # type: ignore[misc]
                what="an evaluation",
            )
        eventually(lambda: shown(scenario) == "Words: number 5", what="the newest words win")
        written = writes(plane, mark, talking)
        assert {event["verb"] for event in written} == {"patch"}
        # By the server's clock: on a busy machine the talking itself may go on for longer than an interval.
        gaps = [later - earlier for earlier, later in pairwise(sorted(map(received, written)))]
        assert gaps
        # The wall clock may be slewed a little meanwhile.
        assert min(gaps) > timedelta(seconds=INTERVAL, milliseconds=-10), gaps


def shown(scenario: Scenario) -> str:
    found: str = scenario.status["spotSchedule"].get("message", "")
    return found


@pytest.mark.long
@pytest.mark.contract("A15")
@pytest.mark.timeout(240)
def test_a_failure_to_read_that_lasts_is_reported_as_unknown_and_holds_until_it_ends(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    readable = ProviderKind(api, "Readable")
    denied = ProviderKind(api, "Denied")
    dying = ProviderKind(api, "Dying", ("v1", "v2"), storage="v1")
    for kind in (readable, denied, dying):
        kind.install()
    namespace = make_namespace(api, "a15")
    for kind, active in ((readable, False), (denied, True), (dying, True)):
        kind.create(namespace, active=active)
    may_read_providers(api, ["readables", "dyings", "timebasedspotschedules"])
    well, never, held = (Scenario(api, namespace, kind, kind.kind.lower()) for kind in (readable, denied, dying))
    all_versions = dying.definition["spec"]["versions"]
    [port] = free_ports(1)
    with manager_in_process(plane, Timings(unreadable_limit=1.5, unresolved_recheck=0.5), metrics_port=port):
        for scenario in (well, never, held):
            scenario.create()
        held.wait_made()
        held.wait_phase("Active")
        well.wait_phase("Inactive", "ScheduleInactive")

        # A kind whose list is forbidden, and that never gave a verdict.
        condition = never.wait_condition("SpotScheduleResolved", "Unknown", "ProviderUnreadable")
        assert "Denied objects cannot be read" in condition["message"]
        assert "403" in condition["message"] or "forbidden" in condition["message"]
        never.wait_condition("Ready", "Unknown", "ProviderUnreadable")
        assert never.status["inSchedule"] is False
        assert never.child(MACHINES) is None

        # A kind that is upgraded, and then its objects cannot be converted; it had said yes.
        versions = [{**v, "storage": v["name"] == "v2", "served": v["name"] == "v2"} for v in all_versions]
        revive = conversion_dies(api, dying.definition["metadata"]["name"], versions=versions)
        held.wait_condition("SpotScheduleResolved", "Unknown", "ProviderUnreadable", timeout=40)
        held.wait_condition("Ready", "Unknown", "ProviderUnreadable")
        status = held.wait_phase("Active", "ProviderUnreadable")
        assert status["inSchedule"] is True
        assert status["spotSchedule"]["resolved"] is False
        assert status["spotSchedule"]["active"] is True
        assert "deletionTimestamp" not in held.machine()["metadata"]
        assert held.condition("Scheduled")["status"] == "True"

        # Counted as what it is, again and again, and written once.
        mark, counted = plane.audit_log.mark(), unreadable(port)
        eventually(lambda: unreadable(port) >= counted + 6, what="more evaluations")
        assert writes(plane, mark, namespace) == []
        samples = scrape(port)
        assert total(samples, RESOLUTION_ERRORS) == 0
        assert total(samples, RESOLUTIONS, kind="Denied") == 0
        assert total(samples, "fivespot_scheduled_machines_unresolved") == 0
        for scenario in (never, held):
            eventually(lambda scenario=scenario: told(scenario) == 1, what="one event")  # type: ignore[misc]

        # Machines of other kinds come and go meanwhile.
        well.active(True)
        well.wait_made()
        well.active(False)
        well.wait_gone()
        well.wait_condition("SpotScheduleResolved", "True", "Resolved")

        # It ends: what the providers say counts again.
        revive()
        may_read_providers(api, ["*"])
        held.wait_condition("SpotScheduleResolved", "True", "Resolved", timeout=60)
        never.wait_made(60)
        assert "deletionTimestamp" not in held.machine()["metadata"]
        dying.version = "v2"
        dying.status(namespace, active=False)
        held.wait_gone()


def told(scenario: Scenario) -> int:
    """Events of what status says of an unreadable provider: a first list that took long was told in other words."""
    words = scenario.condition("SpotScheduleResolved")["message"]
    return sum(event["note"] == words for event in scenario.events("ProviderUnreadable"))


def unreadable(port: int) -> float:
    return total(scrape(port), "fivespot_errors_total", error_type="provider_unreadable")
