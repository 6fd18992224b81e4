"""A manager in the test's own process, put together from a command line as `fivespot manager` does it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar
from unittest.mock import patch

import msgspec

import support.manager
from fivespot.cli.manager import manager as command
from fivespot.cli.options import ManagerOptions
from fivespot.cli.process import assemble, machine_settings
from fivespot.controllers import scheduledmachine
from fivespot.controllers.scheduledmachine import Timings
from fivespot.runtime import Clock, SystemClock
from fivespot.runtime.clock import InlineOffload
from fivespot.testing.cluster import RunningManager

from .loop import EnteredContext
from .plane import AGENT, EmbeddedControlPlane, RealOnly

__all__ = ["EmbeddedManager", "free_ports", "manager_in_process", "scrape"]

T = TypeVar("T")

READY_SECONDS = 30.0
LOOK_SECONDS = 15.0
"""Between two looks at a readiness that is nobody's concern here."""

_PORTS = itertools.count(1)
_listening: dict[int, EmbeddedManager] = {}


class EmbeddedManager:
    """The part of a manager's process that tests use; anything else raises :class:`RealOnly`.

    :param arguments: of `fivespot manager`.
    :param environment: further variables that the command line reads.
    :param timings: shorter waiting times.
    :param changes: fields of the parsed command line.
    """

    def __init__(
        self,
        plane: EmbeddedControlPlane,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timings: Timings | None = None,
        clock: Clock | None = None,
        **changes: Any,
    ) -> None:
        self._plane = plane
        self._options = replace(_parsed(arguments, environment or {}), **changes)
        self._timings = timings
        self._clock = clock or plane.cluster.clock
        self._held: EnteredContext[RunningManager] | None = None
        plane.managers.append(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self._held is not None

    @property
    def exit_code(self) -> int | None:
        return None if self.running else 0

    @property
    def pid(self) -> int:
        return os.getpid()

    def start(self, *, wait: bool = True) -> None:
        self._held = self._plane.hold(self._run())
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        until = self._plane.monotonic() + READY_SECONDS
        while not (self._controllers and all(controller.ready for controller in self._controllers)):
            assert self._plane.monotonic() < until, "the manager did not become ready"
            self._plane.sleep(0.05)

    def stop(self) -> int:
        held, self._held = self._held, None
        if held is not None:
            held.close()
        return 0

    def kill(self) -> None:
        """End it without warning."""
        held, self._held = self._held, None
        if held is not None:
            self._plane.run(held.value.kill())
            held.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def metrics(self) -> dict[str, float]:
        text = self._on_loop(self._manager.context.metrics.render).decode()
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def health(self, path: str) -> tuple[int, str]:
        health = self._manager.health
        report = self._on_loop({"/healthz": health.live, "/readyz": health.ready}[path.partition("?")[0]])
        return (200 if report.ok else 503), report.text(verbose="verbose" in path)

    def debug(self, name: str) -> Any:
        view = self._on_loop(self._manager.debug_views[name])
        return json.loads(msgspec.json.encode(view, enc_hook=str))

    def __getattr__(self, name: str) -> Any:
        raise RealOnly(f"the manager in memory has no {name}")

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[RunningManager]:
        cluster, timings = self._plane.cluster, self._timings
        others = tuple(kind for kind in self._options.controllers if timings is None or kind != "scheduledmachine")
        manager = assemble(
            replace(self._options, controllers=others),
            cluster.connect(AGENT),
            clock=self._clock,
            rng=cluster.rng,
            offload=InlineOffload(),
        )
        if others != self._options.controllers:
            manager.add(partial(scheduledmachine.build, timings=timings, settings=machine_settings(self._options)))
        # No ports: nobody could ask while the test's own thread waits for the answer. And the collector is the test's.
        manager.serving = None
        manager.settings = replace(manager.settings, tune_collector=False, look_interval=LOOK_SECONDS)
        async with RunningManager(manager) as running:
            yield running

    def _on_loop(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return self._plane.run(call())

    @property
    def _manager(self) -> Any:
        assert self._held is not None, "the manager does not run"
        return self._held.value.manager

    @property
    def _controllers(self) -> Any:
        return self._manager.controllers


def _parsed(arguments: Sequence[str], environment: Mapping[str, str]) -> ManagerOptions:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "POD_", "LEASE_"))}
    with patch.dict(os.environ, {**kept, **environment}, clear=True):
        context = command.make_context("manager", list(arguments))
    return ManagerOptions.parse(dict(context.params))


@contextmanager
def manager_in_process(
    plane: EmbeddedControlPlane,
    timings: Timings,
    *,
    namespaces: Sequence[str] | None = None,
    metrics_port: int = 0,
    **changes: Any,
) -> Iterator[None]:
    """As :func:`support.manager.manager_in_process`; :func:`scrape` knows the port."""
    chosen = tuple(namespaces) if namespaces is not None else None
    made: Clock = vars(support.manager)["SystemClock"]()
    # A test may have given managers a clock that starts at another date.
    clock = None if isinstance(made, SystemClock) else made
    with EmbeddedManager(
        plane, timings=timings, clock=clock, namespaces=chosen, pod_name="in-process", **changes
    ) as manager:
        _listening[metrics_port] = manager
        yield


def free_ports(count: int) -> list[int]:
    """Numbers that stand for ports."""
    return list(itertools.islice(_PORTS, count))


def scrape(port: int) -> dict[str, float]:
    """The metrics of the last manager that was given this port."""
    return _listening[port].metrics()
