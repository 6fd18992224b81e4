"""Builds the ScheduledMachine controller: its inputs, its reconciler and its metrics, ready for a manager."""

from __future__ import annotations

from collections.abc import Iterator

from fivespot.runtime import Controller, Key, ManagerContext

from .holds import Holds
from .informers import MachineInformers
from .metrics import MachineMetrics
from .reconciler import MachineReconciler
from .settings import MachineSettings
from .sources import CONTROLLER, phase_of
from .timings import RETRIES, Timings

__all__ = ["build"]


def build(
    context: ManagerContext,
    timings: Timings | None = None,
    settings: MachineSettings | None = None,
    holds: Holds | None = None,
) -> Controller:
    """Return the controller of ScheduledMachines.

    :param holds: what administrators hold back; None for nothing.
    """
    timings, settings, holds = timings or Timings(), settings or MachineSettings(), holds or Holds()

    def enqueue(key: Key, after: float = 0.0) -> None:
        controller.enqueue(key, after=after)

    def phases() -> Iterator[str]:
        return (phase_of(obj) for obj in inputs.scheduled_machines.list())

    inputs = MachineInformers(context.cache, settings.capi_version, enqueue)
    metrics = MachineMetrics(context.metrics, phases)
    reconciler = MachineReconciler(context, inputs, metrics, timings, settings, enqueue, holds)
    # After a takeover, machines are judged once the providers of this process have made a pass (contract B5.6).
    controller = context.controller(
        CONTROLLER,
        reconciler,
        workers=16,
        backoff=RETRIES,
        priority=reconciler.priority,
        order=1,
        start_within=timings.start_limit,
    )
    inputs.add_sources(controller)
    controller.at_start(reconciler.begin_term)
    holds.subscribe(inputs.enqueue_all)
    return controller
