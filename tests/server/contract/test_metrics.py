"""Every metric that dashboards of 5-Spot and of controller-runtime read, as a manager at work exports it."""

from __future__ import annotations

from controlplane import Api
from harness import ManagerProcess
from support import eventually
from support.machines import SCHEDULE, schedule
from support.measurements import total
from support.scenario import Scenario

QUEUE = {"name": "scheduledmachine", "controller": "scheduledmachine"}
COUNTED = {
    "fivespot_reconciliations_total": {"phase": "Active", "result": "success"},
    "fivespot_reconciliation_duration_seconds_count": {"phase": "Active"},
    "fivespot_kill_switch_activations_total": {},
    "controller_runtime_reconcile_total": {"controller": "scheduledmachine", "result": "success"},
    "controller_runtime_reconcile_time_seconds_count": {"controller": "scheduledmachine"},
    "workqueue_adds_total": QUEUE,
    "workqueue_queue_duration_seconds_count": QUEUE,
    "workqueue_work_duration_seconds_count": QUEUE,
    "rest_client_requests_total": {"code": "201", "method": "POST"},
}
PRESENT = {
    "fivespot_errors_total": None,
    "fivespot_finalizer_cleanup_timeouts_total": None,
    "controller_runtime_reconcile_errors_total": None,
    "controller_runtime_active_workers": None,
    "controller_runtime_max_concurrent_reconciles": 16.0,
    "workqueue_depth": None,
    "workqueue_retries_total": None,
    "workqueue_unfinished_work_seconds": None,
    "workqueue_longest_running_processor_seconds": None,
    "fivespot_informer_synced": 1.0,
    "fivespot_is_leader": 1.0,
    "fivespot_controller_info": 1.0,
    "fivespot_tzdata_info": 1.0,
}
"""Shown by a manager whatever happens; the value of a series that belongs to this test, where it is certain."""


def test_a_machines_life_moves_the_metrics_that_tell_of_it(scenario: Scenario, manager: ManagerProcess) -> None:
    before = manager.metrics()
    scenario.create()
    scenario.wait_phase("Inactive")
    scenario.active(True)
    scenario.wait_made()
    scenario.wait_phase("Active")
    up = eventually(lambda: showing(manager, "Active"), what="the manager has seen what it wrote")
    kills = "fivespot_kill_switch_activations_total"
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated")

    def killed() -> dict[str, float]:
        samples = showing(manager, "Terminated")
        assert total(samples, kills) > total(up, kills)
        return samples

    after = eventually(killed, what="the manager has seen what it wrote")

    moved = {name: total(after, name, **labels) - total(before, name, **labels) for name, labels in COUNTED.items()}
    assert {name for name, by in moved.items() if by < 1} == set()
    assert total(after, kills) - total(up, kills) == 1, "once, however often it is reported"
    for result in ("active", "inactive"):
        evaluated = {"fivespot_schedule_evaluations_total": {"result": result}}
        evaluated["fivespot_spot_schedule_resolutions_total"] = {"namespace": scenario.namespace, "result": result}
        for name, labels in evaluated.items():
            assert total(up, name, **labels) > total(before, name, **labels), (name, labels)
    assert total(after, "fivespot_spot_schedule_transitions_total", namespace=scenario.namespace) == 1

    assert total(up, "fivespot_machines_active") == total(up, "fivespot_machines_by_phase", phase="Active") >= 1
    assert total(after, "fivespot_machines_by_phase", phase="Terminated") >= 1
    shown = {name: [value for series, value in after.items() if series.partition("{")[0] == name] for name in PRESENT}
    assert {name for name, values in shown.items() if not values and PRESENT[name] is not None} == set()
    assert all(set(values) >= {wanted} for name, values in shown.items() if (wanted := PRESENT[name]) is not None)
    assert not [series for series in after if "_created" in series or f'name="{scenario.name}"' in series]


def showing(manager: ManagerProcess, phase: str) -> dict[str, float]:
    """All samples, once they show a machine of that phase: the server shows a status before its writer knows of it."""
    samples = manager.metrics()
    assert total(samples, "fivespot_machines_by_phase", phase=phase) >= 1
    return samples


def test_a_schedules_gauge_follows_it_and_goes_with_it(api: Api, namespace: str, manager: ManagerProcess) -> None:
    mine = {"namespace": namespace, "name": "always"}
    gauge, changes = "fivespot_time_based_active", "fivespot_time_based_transitions_total"
    api.create(schedule("always", namespace, {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}))
    eventually(lambda: total(manager.metrics(), gauge, **mine) == 1, what="the window is open")
    before = total(manager.metrics(), changes, **mine)
    api.patch(*SCHEDULE, "always", namespace, {"spec": {"enabled": False}})
    eventually(lambda: total(manager.metrics(), changes, **mine) == before + 1, what="the change is counted")
    assert total(manager.metrics(), gauge, **mine) == 0
    api.delete(*SCHEDULE, "always", namespace)
    eventually(
        lambda: not [series for series in manager.metrics() if f'namespace="{namespace}"' in series], what="gone"
    )
