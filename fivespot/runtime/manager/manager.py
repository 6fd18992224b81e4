"""Runs controllers: starts what they need in order, keeps watch over it, and stops it in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from . import debug
from .context import ControllerFactory, ManagerContext
from .election import Election, ElectionSettings
from .endpoints import DebugView, Serving, ServingSettings
from .gc_policy import CollectorPolicy
from .health import Connectivity, Health
from .runnable_group import RunnableGroup

if TYPE_CHECKING:
    from fivespot.runtime.reconcile import Controller

__all__ = ["Manager", "ManagerSettings"]

Run = Callable[[], Coroutine[Any, Any, None]]

_FIRST_LOOK = 0.25
"""Seconds between two looks at readiness until it is reached for the first time."""

_REMINDER = 60.0
"""Seconds after which an unchanged reason for not being ready is logged again."""

_FLUSH = 2.0
"""Seconds that stopping waits for events to be written."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """How a manager runs.

    :param grace: seconds that stopping may take in all.
    :param stale_after: seconds of failure after which an informer that a controller depends on makes it not ready.
    :param look_interval: seconds between two looks at readiness, for the log, once it was reached.
    :param serving: where to listen; None for no endpoints.
    :param election: the Lease to stand for; None when this process is to work without asking.
    :param tune_collector: whether to set up Python's cycle collector; for a process of its own.
    """

    grace: float = 30.0
    stale_after: float = 60.0
    look_interval: float = 15.0
    serving: ServingSettings | None = None
    election: ElectionSettings | None = None
    tune_collector: bool = False


@dataclass(frozen=True, slots=True)
class _Runnable:
    name: str
    run: Run
    leader_only: bool
    may_end: bool


class Manager:
    """Owns everything that runs, from start to stop.

    Order of start: endpoints, caches, events and runnables, then controllers and leader-only runnables, which run
    inside the lease's lifetime where there is an election. Stopping goes the other way round within the grace period.

    Guaranteed: factories are called once the cache runs; nothing that is leader-only runs outside the lease; when
    anything that has to run on ends, everything else is stopped and its error is raised; and what does not stop in time
    is named.

    Not guaranteed: that the API server is there (a manager starts without it, waits, and says so in ``/readyz``); that
    factories run on leaders only (a standby calls them too, to keep its caches warm); and that work which swallows its
    cancellation has stopped: after :class:`~fivespot.runtime.errors.StopError` the process has to end.

    :param connectivity: fed with the outcome of every request, for readiness and ``/health/status``.
    :ivar health: for checks of one's own.
    :ivar serving: the endpoints, or None; their ports are known once :meth:`run` has begun.
    :ivar debug_views: name -> function behind ``/debug/NAME``.
    """

    def __init__(
        self,
        context: ManagerContext,
        settings: ManagerSettings | None = None,
        *,
        connectivity: Connectivity | None = None,
    ) -> None:
        self.context = context
        self.settings = settings or ManagerSettings()
        self.health = Health()
        self.controllers: list[Controller] = []
        self._factories: list[ControllerFactory] = []
        self._runnables: list[_Runnable] = []
        self._connectivity = connectivity or Connectivity("")
        self._lifetime = RunnableGroup(clock=context.clock, grace=self.settings.grace)
        self._collector: CollectorPolicy | None = None
        self._election: Election | None = None
        if self.settings.election is not None:
            self._election = Election(
                context.client,
                self.settings.election,
                clock=context.clock,
                rng=context.rng,
                # Before the manager's own grace is over, so that the error names what did not stop.
                grace=self.settings.grace * 0.8,
                on_change=self._leads,
                on_silence=self._open_watches_anew,
            )
        context.metrics.leading = self._election is None
        self.debug_views: dict[str, DebugView] = {
            "queues": lambda: debug.queues(self.controllers),
            "informers": lambda: debug.informers(context.cache, context.clock),
            "tasks": debug.tasks,
            "plans": context.plans.snapshot,
        }
        self.serving: Serving | None = None
        if self.settings.serving is not None:
            self.serving = Serving(
                self.settings.serving,
                health=self.health,
                metrics=context.metrics,
                connectivity=self._connectivity,
                offload=context.offload,
                debug=self.debug_views,
            )
        self._register()

    def add(self, factory: ControllerFactory) -> None:
        """Have a controller built, once the cache runs, and run."""
        self._factories.append(factory)

    def add_runnable(self, name: str, run: Run, *, leader_only: bool = False, may_end: bool = False) -> None:
        """Have a coroutine function run next to the controllers until it is cancelled.

        :param leader_only: only while this process leads.
        :param may_end: returning is not a failure; a leader-only one has to run on.
        """
        self._runnables.append(_Runnable(name, run, leader_only, may_end))

    @property
    def leading(self) -> bool:
        return self._election is None or self._election.leading

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set or something that must not end ends.

        :raises StopError: what did not stop within the grace period; the process should end at once.
        :raises ConfigError: a port is taken, or the lease is shared by mistake.
        :raises Exception: what ended a task that had to run on; everything else is stopped first.
        """
        lifetime, context = self._lifetime, self.context
        try:
            if self.settings.tune_collector:
                self._collector = CollectorPolicy(context.metrics, asyncio.get_running_loop().time)
                self._collector.start()
            if self.serving is not None:
                await lifetime.enter("endpoints", self.serving)
            lifetime.next_stage()
            await lifetime.enter("cache", context.cache)
            lifetime.next_stage()
            lifetime.spawn("events", context.events.run, before_stop=self._flush_events)
            for runnable in self._runnables:
                if not runnable.leader_only:
                    lifetime.spawn(runnable.name, runnable.run, may_end=runnable.may_end)
            lifetime.next_stage()
            self.controllers.extend(factory(context) for factory in self._factories)
            for controller in self.controllers:
                self.health.add_readiness(f"controller {controller.name}", partial(self._not_ready_reason, controller))
            if self._election is not None:
                lifetime.spawn("leader election", partial(self._election.run, self._leader_work()))
            else:
                for name, run in self._leader_work().items():
                    lifetime.spawn(name, run)
            lifetime.next_stage()
            lifetime.spawn("readiness", self._follow_readiness)
            await lifetime.watch(stop)
            _log.info("stopping", grace_seconds=self.settings.grace)
        finally:
            self.health.stopping = True
            try:
                await lifetime.close()
            finally:
                if self._collector is not None:
                    self._collector.stop()
        _log.info("stopped")

    def _leader_work(self) -> Mapping[str, Run]:
        work: dict[str, Run] = {f"controller {controller.name}": controller.run for controller in self.controllers}
        return work | {runnable.name: runnable.run for runnable in self._runnables if runnable.leader_only}

    def _register(self) -> None:
        metrics = self.context.metrics
        self.health.add_liveness("owners", self._dead_owner)
        if self._connectivity.server:
            self.health.add_readiness("api server", self._connectivity.not_ready_reason)
        metrics.informers(self.context.cache.informers)
        metrics.reading("fivespot_is_leader", "Whether this process does the work.", (), self._leader_reading)
        if self._election is not None and self.settings.election is not None:
            name = self.settings.election.name
            self.health.add_readiness("leader election", self._election.not_ready_reason)
            metrics.reading(
                "leader_election_master_status",
                "Whether this process holds the lease.",
                ("name",),
                lambda: [((name,), float(self.leading))],
            )

    def _leader_reading(self) -> list[tuple[tuple[str, ...], float]]:
        return [((), float(self.leading))]

    def _dead_owner(self) -> str:
        dead = self._lifetime.dead
        return f"ended: {dead}" if dead else ""

    def _not_ready_reason(self, controller: Controller) -> str:
        if not controller.ready:
            return controller.not_ready_reason or "not ready"
        return controller.stale_reason(self.settings.stale_after)

    def _leads(self, leading: bool) -> None:
        self.context.metrics.leading = leading

    def _open_watches_anew(self) -> None:
        # A connection that is swallowed and acknowledged would be noticed at the idle limit of a watch only, and the
        # next leader may be this process.
        _log.warning("no answer from the API server, watches are opened anew")
        self.context.cache.reconnect()

    async def _flush_events(self, limit: float) -> None:
        await self.context.events.flush(min(limit, _FLUSH))

    async def _follow_readiness(self) -> None:
        """Tell the log what is being waited for, and when the wait is over."""
        clock = self.context.clock
        started = clock.monotonic()
        ever, known, told = False, {"starting": ""}, started
        while True:
            problems, now = self.health.ready().problems, clock.monotonic()
            if problems and (problems != known or now - told >= _REMINDER) and now - started > _FIRST_LOOK:
                _log.warning("not ready", waiting_for=problems)
                known, told = problems, now
            elif not problems and known:
                _log.info("ready", after_seconds=round(now - started, 3))
                known = {}
                if not ever and self._collector is not None:
                    self._collector.settle()
                ever = True
            await asyncio.sleep(self.settings.look_interval if ever else _FIRST_LOOK)
