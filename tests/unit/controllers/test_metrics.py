"""The machine controller's own metrics: each moves when what it counts happens, and at no other time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fivespot.controllers.scheduledmachine.decide import decide
from fivespot.controllers.scheduledmachine.metrics import MachineMetrics
from fivespot.controllers.scheduledmachine.snapshot import Snapshot
from fivespot.runtime import Key, Metrics
from unit.controllers.build import (
    BLIND,
    DOWN,
    LOST,
    NAME,
    NAMESPACE,
    UP,
    entries,
    ready_machine,
    snapshot,
    spec,
    status,
    stored_status,
)

KIND = f'kind="TimeBasedSpotSchedule",namespace="{NAMESPACE}"'


class Shown:
    """A registry with the controller's metrics, and what of it has changed since the last look."""

    def __init__(self) -> None:
        self.registry = Metrics(process=False)
        self.phases = ["Active", "Active", "Error"]
        self.metrics = MachineMetrics(self.registry, lambda: self.phases)
        self._before = self._samples()

    def moved(self) -> dict[str, float]:
        """Series that differ from the last look -> by how much; buckets left out."""
        before, self._before = self._before, self._samples()
        return {
            name: value - before.get(name, 0)
            for name, value in self._before.items()
            if value != before.get(name, 0) and "_bucket" not in name
        }

    def _samples(self) -> dict[str, float]:
        lines = (line.rpartition(" ") for line in self.registry.render().decode().splitlines() if line[0] != "#")
        return {name.removeprefix("fivespot_"): float(value) for name, _, value in lines}


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.mark.parametrize(
    ("resolution", "evaluated", "resolved"), [(UP, "active", "active"), (DOWN, "inactive", "inactive")]
)
def test_a_verdict_is_counted_by_what_it_says(shown: Shown, resolution: object, evaluated: str, resolved: str) -> None:
    judged = snapshot(resolution)  # type: ignore[arg-type]
    shown.metrics.evaluated(judged, decide(judged))
    assert shown.moved() == {
        f'schedule_evaluations_total{{result="{evaluated}"}}': 1,
        f'spot_schedule_resolutions_total{{{KIND},result="{resolved}"}}': 1,
    }


def test_a_schedule_without_a_verdict_is_counted_by_its_reason_and_shown_until_it_has_one(shown: Shown) -> None:
    lost, found = snapshot(LOST), snapshot(UP)
    unresolved = f'scheduled_machines_unresolved{{{KIND},reason="ProviderNotFound"}}'
    for _ in range(2):
        shown.metrics.evaluated(lost, decide(lost))
    assert shown.moved() == {
        'schedule_evaluations_total{result="active"}': 2,  # held
        f'spot_schedule_resolutions_total{{{KIND},result="unresolved"}}': 2,
        f'spot_schedule_resolution_errors_total{{{KIND},reason="ProviderNotFound"}}': 2,
        unresolved: 1,
    }
    shown.metrics.evaluated(found, decide(found))
    assert unresolved not in shown.registry.render().decode()
    shown.metrics.evaluated(lost, decide(lost))
    shown.metrics.forget(Key(NAMESPACE, NAME))
    assert unresolved not in shown.registry.render().decode(), "it goes with the object"


def test_a_schedule_that_cannot_be_read_is_an_error_and_no_verdict(shown: Shown) -> None:
    blind = snapshot(BLIND, unreadable_for=29.0)
    shown.metrics.evaluated(blind, decide(blind))
    assert shown.moved() == {}, "as long as status does not tell of it"
    blind = snapshot(BLIND, unreadable_for=30.0)
    shown.metrics.evaluated(blind, decide(blind))
    assert shown.moved() == {'errors_total{error_type="provider_unreadable"}': 1}


@pytest.mark.parametrize(("known", "count"), [(False, 1), (True, 0), (None, 0)])
def test_a_verdict_that_differs_from_the_one_remembered_is_a_transition(
    shown: Shown, known: bool | None, count: int
) -> None:
    turned = snapshot(UP, stored=stored_status(status(active=known)))
    shown.metrics.status_written(turned, decide(turned))
    assert shown.moved() == ({f"spot_schedule_transitions_total{{{KIND}}}": 1} if count else {})


def test_a_kill_switch_counts_once_however_often_its_machine_is_reported(shown: Shown) -> None:
    killed = snapshot(UP, spec=spec(kill_switch=True), machine=ready_machine())
    shown.metrics.status_written(killed, decide(killed))
    assert shown.moved() == {"kill_switch_activations_total": 1}
    told = status() | {"conditions": entries(("Scheduled", "False", "KillSwitchActivated"))}
    again = replace(killed, stored=stored_status(told))
    shown.metrics.status_written(again, decide(again))
    assert shown.moved() == {}


def test_a_replacement_counts_by_its_reason(shown: Shown) -> None:
    quiet: Snapshot = snapshot(UP, machine=ready_machine())
    shown.metrics.status_written(quiet, decide(quiet))
    assert shown.moved() == {}
    shown.metrics.status_written(quiet, replace(decide(quiet), replacement="Lost"))
    assert shown.moved() == {f'machine_replacements_total{{namespace="{NAMESPACE}",reason="Lost"}}': 1}


def test_runs_are_counted_and_timed_by_phase_and_failures_by_type_too(shown: Shown) -> None:
    shown.metrics.finished("Active", 0.25)
    shown.metrics.finished("Active", 0.5, failed=True, error="Timeout")
    shown.metrics.refused("MachineCreationFailed")
    assert shown.moved() == {
        'reconciliations_total{phase="Active",result="success"}': 1,
        'reconciliations_total{phase="Active",result="failure"}': 1,
        'reconciliation_duration_seconds_count{phase="Active"}': 2,
        'reconciliation_duration_seconds_sum{phase="Active"}': 0.75,
        'errors_total{error_type="Timeout"}': 1,
        'errors_total{error_type="MachineCreationFailed"}': 1,
    }
    assert b'duration_seconds_bucket{le="0.25",phase="Active"} 1.0' in shown.registry.render()


def test_a_deletion_that_takes_too_long_is_counted(shown: Shown) -> None:
    shown.metrics.overdue()
    assert shown.moved() == {"finalizer_cleanup_timeouts_total": 1}


def test_machines_by_phase_are_counted_at_each_look_and_by_the_leader_only(shown: Shown) -> None:
    text = shown.registry.render().decode()
    assert 'fivespot_machines_by_phase{phase="Active"} 2.0' in text
    assert 'fivespot_machines_by_phase{phase="Error"} 1.0' in text
    assert "fivespot_machines_active 2.0" in text
    shown.phases = ["Inactive"]
    assert shown.moved()["machines_active"] == -2
    shown.registry.leading = False
    text = shown.registry.render().decode()
    assert "machines_by_phase{" not in text
    assert "machines_active " not in text
