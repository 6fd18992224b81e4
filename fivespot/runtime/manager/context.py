"""The context that a manager passes to the factories of its controllers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fivespot.runtime.clock import Clock, Offload, Random
from fivespot.runtime.telemetry import NULL_TRACER, Tracer

from .debug import PlanBook

if TYPE_CHECKING:
    from fivespot.runtime.cache import Cache
    from fivespot.runtime.client import Client
    from fivespot.runtime.objects import Key
    from fivespot.runtime.reconcile import Controller, Reconciler
    from fivespot.runtime.telemetry import EventRecorder, Metrics
    from fivespot.runtime.workqueue import Backoff

__all__ = ["ControllerFactory", "ControllerSettings", "ManagerContext"]


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of a manager that apply to all of its controllers.

    :param namespaces: the namespaces to work in, at least one; None for all.
    :param dry_run: decide, but write nothing.
    :param instance: name of this process in events and metrics.
    """

    namespaces: tuple[str, ...] | None = None
    dry_run: bool = False
    instance: str = ""

    def __post_init__(self) -> None:
        if self.namespaces is not None and not self.namespaces:
            raise ValueError("namespaces is empty; name at least one, or None for all")


@dataclass(frozen=True, slots=True)
class ManagerContext:
    """Everything a controller may use. The cache is running when a factory is called.

    :param client: with leader election, its writes are sent only while this process holds the lease.
    """

    client: Client
    cache: Cache
    clock: Clock
    rng: Random
    offload: Offload
    metrics: Metrics
    events: EventRecorder
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    plans: PlanBook = field(default_factory=PlanBook)
    tracer: Tracer = NULL_TRACER
    ungated: Client | None = None

    @property
    def ungated_client(self) -> Client:
        """The client for work that every replica does; :attr:`client` writes only while this process leads."""
        return self.ungated if self.ungated is not None else self.client

    def controller(
        self,
        name: str,
        reconciler: Reconciler,
        *,
        workers: int = 8,
        timeout: float = 120.0,
        backoff: Backoff | None = None,
        priority: Callable[[Key], int] | None = None,
        order: int = 0,
        start_within: float = math.inf,
    ) -> Controller:
        """Make a controller with this context's clock, tracer and metrics, and without sources.

        The parameters are those of :class:`~fivespot.runtime.reconcile.Controller`. The manager runs the controller
        that a factory *returns*; calling this alone starts nothing.
        """
        from fivespot.runtime.reconcile import Controller  # noqa: PLC0415 - contexts are also made without controllers

        return Controller(
            name,
            reconciler,
            clock=self.clock,
            rng=self.rng,
            workers=workers,
            timeout=timeout,
            backoff=backoff,
            priority=priority,
            order=order,
            start_within=start_within,
            metrics=self.metrics.controller(name),
            queue_metrics=self.metrics.queue(name),
            tracer=self.tracer,
        )


ControllerFactory: TypeAlias = "Callable[[ManagerContext], Controller]"
"""Builds one controller with its sources; must not block."""
