"""A connection that looks open and carries nothing any more."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from controlplane import ControlPlane, free_ports
from fivespot.controllers.scheduledmachine import Timings
from fivespot.runtime.client import WATCH_LIMITS, Limits
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.manager import manager_in_process
from support.measurements import scrape, total
from support.proxy import Proxy, Seen
from support.scenario import Scenario

IDLE_LIMIT = 4.0
"""Instead of the 90 seconds by default."""
BUSY_SECONDS = 6.0
"""What a machine that has much else to do may take longer."""

ACTIVE = "controller_runtime_active_workers"

MEASURED = logging.getLogger("measured")

pytestmark = pytest.mark.server


def test_an_event_that_a_dead_connection_swallowed_is_delivered_within_the_idle_limit(
    plane: ControlPlane, played: ProviderKind, tmp_path: Path
) -> None:
    """Nothing is closed and nothing fails; only the silence tells (kopf#585, kubernetes-client/python#2462)."""
    namespace = make_namespace(plane.api, "half-open")
    played.create(namespace, active=False)
    scenario = Scenario(plane.api, namespace, played)
    limits = Limits(WATCH_LIMITS.connect, IDLE_LIMIT, WATCH_LIMITS.total)
    [port] = free_ports(1)
    with (
        Proxy(plane) as proxy,
        manager_in_process(
            plane,
            Timings(),
            kubeconfig=proxy.kubeconfig(tmp_path / "kubeconfig"),
            namespaces=[namespace],
            watch_limits=limits,
            metrics_port=port,
        ),
    ):
        scenario.create()
        scenario.wait_phase("Inactive", "ScheduleInactive")
        # What is seen here may be on its way to the manager still, and a write whose answer is lost waits for longer.
        eventually(lambda: total(scrape(port), ACTIVE, controller="scheduledmachine") == 0, what="no run is under way")
        # From here on all that was open is dead, and what is opened lives.
        proxy.blackhole()
        proxy.heal()
        # Before the request: its answer may come here after the manager has acted on it.
        missed = time.monotonic()
        scenario.active(True)

        def acted() -> list[Seen]:
            return [seen for seen in list(proxy.seen) if seen.at > missed and _acts(seen, namespace)]

        delay = eventually(acted, IDLE_LIMIT + BUSY_SECONDS, what="it acts on what it missed")[0].at - missed
        MEASURED.info("delivered after: %.2f s with a limit of %.0f s", delay, IDLE_LIMIT)
        scenario.wait_made(90)
        MEASURED.info("machine made after: %.2f s", time.monotonic() - missed)


def _acts(seen: Seen, namespace: str) -> bool:
    return seen.method != "GET" and f"/namespaces/{namespace}/" in seen.path and "/events" not in seen.path
