"""The manager: starts controllers and everything they need in order, supervises them, and stops them in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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
from .leader_gate import LeaderGate
from .runnable_group import RunnableGroup

if TYPE_CHECKING:
    from fivespot.runtime.objects import Object
    from fivespot.runtime.reconcile import Controller

    from .access_review import AccessReview

__all__ = ["Manager", "ManagerSettings"]

Run = Callable[[], Coroutine[Any, Any, None]]

_FIRST_LOOK = 0.25
"""Seconds between two readiness checks until the manager is ready for the first time."""

_REMINDER = 60.0
"""Seconds after which an unchanged reason for not being ready is logged again."""

_FIRST_PASS_POLL = 0.1
"""Seconds between two checks of the first pass of other controllers."""

_FLUSH = 2.0
"""Seconds for which a stop waits for pending events to be written."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Settings of a manager.

    :param grace: seconds that stopping may take in total.
    :param stale_after: seconds of failure after which an informer that a controller depends on makes it not ready.
    :param look_interval: seconds between two readiness checks for the log, once the manager was ready.
    :param first_pass_limit: seconds for which a controller waits for the first pass of those of lower orders.
    :param serving: addresses of the HTTP endpoints; None for none.
    :param election: the Lease to stand for; None for no leader election.
    :param tune_collector: whether to tune Python's cycle collector, for a process that does nothing else.
    """

    grace: float = 30.0
    stale_after: float = 60.0
    look_interval: float = 15.0
    first_pass_limit: float = 10.0
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
    """Owns everything that runs in a process, from start to stop.

    Order of start: endpoints, caches, events and runnables, then controllers and leader-only runnables, which run
    while the process holds the lease where there is an election. Stopping uses the reverse order, within the grace
    period.

    Guaranteed: factories are called once the cache is running; nothing that is leader-only runs without the lease, and
    its writes through the context's client are sent only while the lease is held; controllers of a higher order start
    after those of lower orders have made their first pass, or after ``first_pass_limit``; when anything that has to run
    ends, everything else is stopped and its error is raised; and the error names what does not stop in time.

    Not guaranteed: that the API server is reachable (a manager starts without it, waits, and reports it in
    ``/readyz``); that factories run on the leader only (a standby calls them as well, to keep its caches warm); and
    that work which swallows its cancellation has stopped: after :class:`~fivespot.runtime.errors.StopError` the process
    has to exit.

    :param connectivity: fed with the outcome of every request, for readiness and ``/health/status``.
    :param gate: the gate that the context's client sends through. A manager that is put together by hand without one
        does not check single writes against the lease.
    :ivar health: accepts further checks.
    :ivar serving: the endpoints, or None; their ports are known once :meth:`run` has begun.
    :ivar debug_views: name -> function behind ``/debug/NAME``.
    """

    def __init__(
        self,
        context: ManagerContext,
        settings: ManagerSettings | None = None,
        *,
        connectivity: Connectivity | None = None,
        gate: LeaderGate | None = None,
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
        self._running = False
        self._stopped = False
        self._election: Election | None = None
        self._lease_observers: list[Callable[[Object], None]] = []
        if self.settings.election is not None:
            self._election = Election(
                context.ungated_client,
                self.settings.election,
                clock=context.clock,
                rng=context.rng,
                gate=gate,
                # Shorter than the manager's own, so that the error names what did not stop.
                grace=self.settings.grace * 0.8,
                on_lease=self._lease_observed,
                on_change=self._set_leading,
                on_silence=self._reconnect_watches,
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
                reviews=self._access_review(self.settings.serving),
            )
        self._register()

    def _access_review(self, serving: ServingSettings) -> AccessReview | None:
        if not serving.metrics_secure:
            return None
        from .access_review import AccessReview  # noqa: PLC0415 - few managers serve by TLS

        return AccessReview(self.context.ungated_client, self.context.clock)

    def add(self, factory: ControllerFactory) -> None:
        """Add a controller. It is built once the cache is running: at once if the manager is running already.

        :raises ValueError: while running: a controller of that name exists.
        :raises RuntimeError: the manager has stopped.
        """
        self._check_not_stopped()
        if self._running:
            controller = factory(self.context)
            self._adopt(controller)
            self._start_controller(controller)
        else:
            self._factories.append(factory)

    async def remove(self, name: str) -> None:
        """Stop the controller of that name and remove its metrics; unknown names are ignored.

        Informers that its factory opened stay open; whoever opened them releases them.

        :raises StopError: it did not stop within the grace period.
        """
        for controller in [controller for controller in self.controllers if controller.name == name]:
            member = f"controller {name}"
            if self._election is not None:
                await self._election.remove(member)
            else:
                await self._lifetime.stop_member(member)
            self.controllers.remove(controller)
            self.health.remove_readiness(member)
            controller.close_sources()
            self.context.metrics.remove_controller(name)

    def add_runnable(self, name: str, run: Run, *, leader_only: bool = False, may_end: bool = False) -> None:
        """Add a coroutine function that runs beside the controllers until it is cancelled.

        :param leader_only: run only while this process leads. Other runnables write through
            :attr:`ManagerContext.ungated_client`.
        :param may_end: returning is not a failure; a leader-only runnable runs again in the next term.
        :raises ValueError: a runnable of that name exists.
        :raises RuntimeError: the manager has stopped.
        """
        self._check_not_stopped()
        if any(known.name == name for known in self._runnables) or name in self._controller_names():
            raise ValueError(f"runnable {name} exists already")
        runnable = _Runnable(name, run, leader_only, may_end)
        self._runnables.append(runnable)
        if self._running:
            self._start(name, run, leader_only=leader_only, may_end=may_end)

    def observe_lease(self, observer: Callable[[Object], None]) -> None:
        """Have a function called with the Lease of the election whenever this process has read or written it.

        A leader does so every few seconds, so annotations on the Lease can control it.
        """
        self._lease_observers.append(observer)

    @property
    def leading(self) -> bool:
        return self._election is None or self._election.leading

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set or something that has to run ends.

        :raises StopError: something did not stop within the grace period; the process should exit at once.
        :raises ConfigError: a port is taken, or the lease is shared by mistake.
        :raises ValueError: two controllers have the same name.
        :raises Exception: the error of a task that has to run; everything else is stopped first.
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
                    self._start(runnable.name, runnable.run, leader_only=False, may_end=runnable.may_end)
            lifetime.next_stage()
            self._running = True
            # Built before any of them starts, so that none runs if one cannot be built.
            for controller in [factory(context) for factory in self._factories]:
                self._adopt(controller)
            for controller in self.controllers:
                self._start_controller(controller)
            for runnable in self._runnables:
                if runnable.leader_only:
                    self._start(runnable.name, runnable.run, leader_only=True, may_end=runnable.may_end)
            if self._election is not None:
                lifetime.spawn("leader election", self._election.run)
            lifetime.next_stage()
            lifetime.spawn("readiness", self._follow_readiness)
            await lifetime.watch(stop)
            _log.info("stopping", grace_seconds=self.settings.grace)
        finally:
            self._running, self._stopped = False, True
            self.health.stopping = True
            try:
                await lifetime.close()
            finally:
                if self._collector is not None:
                    self._collector.stop()
        _log.info("stopped")

    def _check_not_stopped(self) -> None:
        if self._stopped:
            raise RuntimeError("the manager has stopped; nothing can be added")

    def _controller_names(self) -> set[str]:
        return {f"controller {controller.name}" for controller in self.controllers}

    def _adopt(self, controller: Controller) -> None:
        name = f"controller {controller.name}"
        if name in self._controller_names() or any(runnable.name == name for runnable in self._runnables):
            raise ValueError(f"{name} exists already; give every controller a name of its own")
        self.controllers.append(controller)
        self.health.add_readiness(name, partial(self._not_ready_reason, controller))

    def _start_controller(self, controller: Controller) -> None:
        self._start(f"controller {controller.name}", partial(self._run_in_order, controller), leader_only=True)

    def _start(self, name: str, run: Run, *, leader_only: bool, may_end: bool = False) -> None:
        if leader_only and self._election is not None:
            self._election.add(name, run, may_end=may_end)
        else:
            self._lifetime.spawn(name, run, may_end=may_end)

    async def _run_in_order(self, controller: Controller) -> None:
        """Run a controller once those of lower orders have made their first pass."""
        earlier = [other for other in self.controllers if other.order < controller.order]
        deadline = self.context.clock.monotonic() + self.settings.first_pass_limit
        while waiting := [other.name for other in earlier if not other.first_pass_done]:
            if self.context.clock.monotonic() >= deadline:
                _log.warning("starting before the first pass of others", controller=controller.name, others=waiting)
                break
            await asyncio.sleep(_FIRST_PASS_POLL)
        await controller.run()

    def _register(self) -> None:
        metrics = self.context.metrics
        self.health.add_liveness("owners", self._dead_owner)
        if self._connectivity.server:
            self.health.add_readiness("api server", self._connectivity.not_ready_reason)
        metrics.informers(self.context.cache.informers)
        metrics.reading("fivespot_is_leader", "Whether this process is the leader.", (), self._leader_reading)
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

    def _lease_observed(self, lease: Object) -> None:
        for observer in self._lease_observers:
            observer(lease)

    def _set_leading(self, leading: bool) -> None:
        self.context.metrics.leading = leading

    def _reconnect_watches(self) -> None:
        # A dead connection of a watch would be noticed at its idle limit only, and this process may lead again before.
        _log.warning("no answer from the API server, reopening all watches")
        self.context.cache.reconnect()

    async def _flush_events(self, limit: float) -> None:
        await self.context.events.flush(min(limit, _FLUSH))

    async def _follow_readiness(self) -> None:
        """Log the reasons for not being ready, and when the manager is ready."""
        clock = self.context.clock
        started = clock.monotonic()
        ever, known, logged_at = False, {"starting": ""}, started
        while True:
            problems, now = self.health.ready().problems, clock.monotonic()
            if problems and (problems != known or now - logged_at >= _REMINDER) and now - started > _FIRST_LOOK:
                _log.warning("not ready", waiting_for=problems)
                known, logged_at = problems, now
            elif not problems and known:
                _log.info("ready", after_seconds=round(now - started, 3))
                known = {}
                if not ever and self._collector is not None:
                    self._collector.settle()
                ever = True
            await asyncio.sleep(self.settings.look_interval if ever else _FIRST_LOOK)
