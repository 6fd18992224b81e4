"""The machine controller's metrics, with the names that 5-Spot uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from fivespot.contract import Resolved, Unreadable
from fivespot.runtime import Key, Metrics

from .plan import Plan
from .snapshot import Snapshot

__all__ = ["MachineMetrics"]

_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class MachineMetrics:
    """Counts what the controller does; the gauges of state are computed at scrape, by the leader only.

    Names of objects are not labels, since their number is unbounded.
    """

    def __init__(self, metrics: Metrics, phases: Callable[[], Iterable[str]]) -> None:
        self._runs = metrics.counter("fivespot_reconciliations_total", "Reconciles by phase.", ("phase", "result"))
        self._seconds = metrics.histogram(
            "fivespot_reconciliation_duration_seconds", "Length of reconciles by phase.", ("phase",), _SECONDS
        )
        self._evaluations = metrics.counter("fivespot_schedule_evaluations_total", "Schedule verdicts.", ("result",))
        self._kills = metrics.counter("fivespot_kill_switch_activations_total", "Activations of a kill switch.").child()
        self._errors = metrics.counter("fivespot_errors_total", "Errors by type.", ("error_type",))
        self._timeouts = metrics.counter(
            "fivespot_finalizer_cleanup_timeouts_total", "Deletions that outlasted their limit."
        ).child()
        labels = ("namespace", "kind")
        self._resolutions = metrics.counter(
            "fivespot_spot_schedule_resolutions_total", "Resolutions of schedule references.", (*labels, "result")
        )
        self._resolution_errors = metrics.counter(
            "fivespot_spot_schedule_resolution_errors_total", "Evaluations without a verdict.", (*labels, "reason")
        )
        self._transitions = metrics.counter(
            "fivespot_spot_schedule_transitions_total", "Changes of a schedule's verdict.", labels
        )
        self._replacements = metrics.counter(
            "fivespot_machine_replacements_total", "Machines replaced unasked.", ("namespace", "reason")
        )
        self._unresolved: dict[Key, tuple[str, str, str]] = {}
        metrics.reading(
            "fivespot_scheduled_machines_unresolved",
            "ScheduledMachines whose schedule gives no verdict.",
            (*labels, "reason"),
            lambda: [(found, float(count)) for found, count in Counter(self._unresolved.values()).items()],
            leader_only=True,
        )
        metrics.reading(
            "fivespot_machines_by_phase",
            "ScheduledMachines by phase.",
            ("phase",),
            lambda: [((phase,), float(count)) for phase, count in Counter(phases()).items()],
            leader_only=True,
        )
        metrics.reading(
            "fivespot_machines_active",
            "ScheduledMachines in phase Active.",
            (),
            lambda: [((), float(sum(phase == "Active" for phase in phases())))],
            leader_only=True,
        )

    def evaluated(self, s: Snapshot, plan: Plan) -> None:
        """Count one evaluation of the schedule (A8, A15)."""
        key, kind = Key(s.head.namespace, s.head.name), s.spec.schedule.kind
        resolution = s.world.resolution
        if isinstance(resolution, Unreadable):
            # As in status, a restart or a short outage is not an error.
            if s.unreadable_for >= s.timings.unreadable_limit:
                self._errors.child("provider_unreadable").inc()
            self._unresolved.pop(key, None)
            return
        self._evaluations.child("active" if plan.verdict.active else "inactive").inc()
        if isinstance(resolution, Resolved):
            self._resolutions.child(key.namespace, kind, "active" if resolution.active else "inactive").inc()
            self._unresolved.pop(key, None)
            return
        self._resolutions.child(key.namespace, kind, "unresolved").inc()
        self._resolution_errors.child(key.namespace, kind, resolution.reason).inc()
        self._unresolved[key] = (key.namespace, kind, resolution.reason)

    def status_written(self, s: Snapshot, plan: Plan) -> None:
        """Count the changes of a status that was written."""
        before = s.stored.schedule.active if s.stored.schedule is not None else None
        if isinstance(s.world.resolution, Resolved) and before is (not s.world.resolution.active):
            self._transitions.child(s.head.namespace, s.spec.schedule.kind).inc()
        if plan.want.value == "KillSwitchActivated" and s.stored.scheduled_reason != plan.want.value:
            self._kills.inc()
        if plan.replacement:
            self._replacements.child(s.head.namespace, plan.replacement).inc()

    def refused(self, reason: str) -> None:
        """Count a step that the API server refused."""
        self._errors.child(reason).inc()

    def overdue(self) -> None:
        self._timeouts.inc()

    def finished(self, phase: str, seconds: float, *, failed: bool = False, error: str = "") -> None:
        """Count one run of the reconciler."""
        self._runs.child(phase, "failure" if failed else "success").inc()
        self._seconds.child(phase).observe(seconds)
        if error:
            self._errors.child(error).inc()

    def status_failed(self) -> None:
        """Count a status that could not be written."""
        self._errors.child("status_not_written").inc()

    def forget(self, key: Key) -> None:
        self._unresolved.pop(key, None)

    def forget_namespace(self, namespace: str) -> None:
        """Remove the series of a namespace whose last ScheduledMachine is gone."""
        for family in (self._resolutions, self._resolution_errors, self._transitions, self._replacements):
            family.remove_matching(namespace)
