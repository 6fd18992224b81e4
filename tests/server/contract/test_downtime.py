"""B5.3: after downtime the world is brought to what is true now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from harness import ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import SCHEDULE, schedule
from support.measurements import (
    DELETE_BOOTSTRAP,
    DELETE_INFRASTRUCTURE,
    DELETE_MACHINE,
    MAKE_BOOTSTRAP,
    MAKE_INFRASTRUCTURE,
    MAKE_MACHINE,
    STATUS,
    settle_bill,
    spent,
    total,
)
from support.scenario import Scenario

LET_GO = "patch 5spot.finos.org/scheduledmachines"
REPORT = "patch spotschedules.5spot.finos.org/timebasedspotschedules/status"
MADE = {MAKE_BOOTSTRAP: 1, MAKE_INFRASTRUCTURE: 1, MAKE_MACHINE: 1}
TAKEN = {DELETE_MACHINE: 1, DELETE_BOOTSTRAP: 1, DELETE_INFRASTRUCTURE: 1}
ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
RUNS = "controller_runtime_reconcile_total"


@pytest.mark.long
@pytest.mark.contract("B5.3")
@pytest.mark.timeout(240)
def test_missed_changes_are_made_up_for_once_and_missed_boundaries_not_replayed(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    provider = ProviderKind(api, "Played")
    provider.install()
    # Name -> the verdict before the downtime, and those during it.
    stories: dict[str, tuple[bool, list[bool]]] = {
        "opened": (False, [True]),
        "closed": (True, [False]),
        "flipped-and-back": (True, [False, True, False, True]),
        "opened-and-closed": (False, [True, False]),
        "deleted": (True, []),
        "edited": (False, []),
    }
    scenarios = {}
    with ManagerProcess(plane) as manager:
        for name, (active, _) in stories.items():
            namespace = make_namespace(api, name)
            provider.create(namespace, active=active)
            scenarios[name] = Scenario(api, namespace, provider)
            scenarios[name].create()
        steady = make_namespace(api, "steady")
        api.create(schedule("always", steady, ALWAYS))
        for name, (active, _) in stories.items():
            # With the reason: a machine whose schedule is not resolved yet is shown as inactive too.
            scenarios[name].wait_phase(*(("Active", "MachineCreated") if active else ("Inactive", "ScheduleInactive")))
        eventually(lambda: verdict(api, steady)["active"], what="its verdict")
        before = verdict(api, steady)
        manager.stop()

        for name, (_, verdicts) in stories.items():
            for active in verdicts:
                scenarios[name].active(active)
        scenarios["deleted"].delete()
        scenarios["edited"].edit(enabled=False)
        # A boundary that passed in the meantime, or so its status says.
        stale = {"nextTransitionTime": "2026-01-01T00:00:00Z"}
        api.patch_status(*SCHEDULE, "always", steady, stale)
        kept = scenarios["flipped-and-back"].machine()["metadata"]["uid"]
        made_before = scenarios["flipped-and-back"].get()
        mark = plane.audit_log.mark()

        manager.start()
        scenarios["opened"].wait_phase("Active", "MachineCreated")
        scenarios["closed"].wait_phase("Inactive", "ScheduleInactive")
        scenarios["edited"].wait_phase("Disabled")
        eventually(lambda: scenarios["deleted"].find() is None, what="the deleted one is gone")
        scenarios["deleted"].wait_gone()
        eventually(
            lambda: api.get(*SCHEDULE, "always", steady)["status"] == before, what="the next change is put right"
        )
        counted = 'controller="scheduledmachine"'
        eventually(lambda: total(manager.metrics(), RUNS, controller="scheduledmachine") >= len(stories), what=counted)

        assert scenarios["flipped-and-back"].get() == made_before
        assert scenarios["flipped-and-back"].machine()["metadata"]["uid"] == kept
        bills: dict[str, dict[str, int]] = {
            "opened": {**MADE, STATUS: 1},
            "flipped-and-back": {},
            "opened-and-closed": {},
            "edited": {STATUS: 1},
        }
        for name, expected in bills.items():
            settle_bill(plane, mark, scenarios[name].namespace, expected)
        eventually(
            lambda: LET_GO in spent(plane, mark, scenarios["deleted"].namespace), what="the last of it is logged"
        )
        for name, expected in {"closed": TAKEN, "deleted": {**TAKEN, LET_GO: 1}}.items():
            taken = spent(plane, mark, scenarios[name].namespace)
            assert taken.pop(STATUS, 0) <= 2
            assert taken == expected
        settle_bill(plane, mark, steady, {REPORT: 1})


def verdict(api: Api, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(*SCHEDULE, "always", namespace)["status"]
    return found


def runs(manager: ManagerProcess) -> float:
    return total(manager.metrics(), RUNS, controller="scheduledmachine")
