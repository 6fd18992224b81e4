"""Entry points: a manager on a connection, and the main function of a program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypeVar

import structlog

from fivespot.runtime.cache import Cache, ReflectorSettings
from fivespot.runtime.client import WATCH_LIMITS, Client, Connection, Limits, Transport, connect
from fivespot.runtime.client.dry_run import DryRunTransport
from fivespot.runtime.clock import Clock, Offload, Random, SystemClock, ThreadOffload, system_random
from fivespot.runtime.errors import ConfigError, StopError
from fivespot.runtime.telemetry import (
    NULL_TRACER,
    EventRecorder,
    LogFormat,
    Metrics,
    Tracer,
    configure_logging,
    tracer_from,
)

from .clock_skew import ClockSkew, DatedTransport
from .context import ControllerSettings, ManagerContext
from .health import Connectivity
from .leader_gate import LeaderGate
from .manager import Manager, ManagerSettings

__all__ = ["EventLoop", "assemble", "loop_factory", "open_manager", "run", "stop_on_signals", "unless_stopped"]

EventLoop: TypeAlias = Literal["asyncio", "uvloop", "auto"]

T = TypeVar("T")

_EXIT_FAILED = 1
_EXIT_CONFIG = 2
"""A file, a flag or a credential cannot be used: starting again will not help."""
_log = structlog.get_logger(__name__)


def assemble(
    connection: Connection,
    *,
    name: str,
    clock: Clock,
    rng: Random,
    offload: Offload,
    controllers: ControllerSettings,
    settings: ManagerSettings | None = None,
    watch_limits: Limits = WATCH_LIMITS,
    reflector: ReflectorSettings = ReflectorSettings(),  # noqa: B008 - frozen
    tracer: Tracer = NULL_TRACER,
) -> Manager:
    """Make a manager without controllers. The caller closes the connection after the manager has ended.

    :param name: field manager (at most 128 characters) and ``reportingController`` of events.
    :param controllers: with ``dry_run`` no write is sent, events included.
    :param watch_limits: of the watches; ``read`` is the idle limit of a watch.
    :param reflector: of every informer.
    :param tracer: of every run and request.
    """
    metrics = Metrics()
    connectivity = Connectivity(connection.server)

    def observe(verb: str, status: int) -> None:
        metrics.requests(verb, status)
        connectivity.observed(verb, status)

    skew = ClockSkew(clock)
    transport: Transport = DatedTransport(connection.transport, clock, skew)
    if controllers.dry_run:
        transport = DryRunTransport(transport)

    def client_on(transport: Transport) -> Client:
        return Client(
            transport,
            field_manager=name,
            clock=clock,
            rng=rng,
            watch_limits=watch_limits,
            observe_request=observe,
            tracer=tracer,
            server=connection.server,
        )

    gate = LeaderGate(transport, clock) if settings is not None and settings.election is not None else None
    ungated = client_on(transport)
    client = client_on(gate) if gate is not None else ungated
    context = ManagerContext(
        client=client,
        cache=Cache(client, clock=clock, rng=rng, namespaces=controllers.namespaces, settings=reflector),
        clock=clock,
        rng=rng,
        offload=offload,
        metrics=metrics,
        events=EventRecorder(
            None if controllers.dry_run else ungated,
            controller=name,
            instance=controllers.instance,
            clock=clock,
            rng=rng,
            metrics=metrics,
        ),
        settings=controllers,
        tracer=tracer,
        ungated=ungated,
    )
    manager = Manager(context, settings, connectivity=connectivity, gate=gate)
    manager.health.add_note("clock", lambda: skew.note)
    metrics.reading(
        "fivespot_clock_skew_seconds",
        "Seconds by which this process's clock is ahead of the API server's, as far as its responses can tell.",
        (),
        skew.reading,
    )
    return manager


@asynccontextmanager
async def open_manager(
    name: str,
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespaces: Sequence[str] | None = None,
    settings: ManagerSettings | None = None,
    tracer: Tracer | None = None,
) -> AsyncIterator[Manager]:
    """A manager with a connection of its own, which is closed on exit::

        async with open_manager("week-provider") as manager:
            manager.add(build)
            await manager.run(stop)

    Nothing is sent to the server before :meth:`Manager.run`, except what a kubeconfig's plugins send.

    :param name: what this program is called: user agent, field manager (at most 128 characters) and
        ``reportingController`` of events.
    :param kubeconfig: a file; None finds one as :func:`~fivespot.runtime.client.connect` says.
    :param context: of the kubeconfig.
    :param namespaces: the namespaces to work in; None for all.
    :param tracer: gets a span for every run, request and watch; None: as the environment's ``OTEL_*`` variables say
        (:func:`~fivespot.runtime.telemetry.tracer_from`).
    :raises ConfigError: in one line, which file or credential cannot be used and why.
    """
    clock, rng, offload = SystemClock(), system_random(), ThreadOffload()
    connection = await connect(
        kubeconfig=kubeconfig, context=context, user_agent=name, clock=clock, rng=rng, offload=offload
    )
    try:
        chosen = tuple(namespaces) if namespaces is not None else None
        yield assemble(
            connection,
            name=name,
            clock=clock,
            rng=rng,
            offload=offload,
            controllers=ControllerSettings(namespaces=chosen, instance=platform.node()),
            settings=settings,
            tracer=tracer if tracer is not None else tracer_from(os.environ),
        )
    finally:
        await connection.close()


def run(
    setup: Callable[[Manager], None],
    *,
    name: str,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespaces: Sequence[str] | None = None,
    settings: ManagerSettings | None = None,
    log_format: LogFormat = "json",
    verbosity: int = 0,
    tracer: Tracer | None = None,
    event_loop: EventLoop = "asyncio",
) -> None:
    """The main function of a program: run a manager until SIGTERM or SIGINT, and stop it in order.

    Logs go to standard error. A second signal ends the process at once. To be called in the main thread, once.

    :param setup: adds controllers and runnables; called once, before anything runs.
    :param name: see :func:`open_manager`, and the other parameters there.
    :param log_format: ``json``, or ``text`` for people.
    :param verbosity: 1 and more for debugging.
    :param event_loop: see :func:`loop_factory`.
    :raises SystemExit: with code 2 and one line on standard error where a file or credential cannot be used, or a
        port is taken.
    :raises Exception: what ended something that had to run on; everything else is stopped first.
    """
    configure_logging(log_format, verbosity)
    try:
        factory = loop_factory(event_loop)
    except ConfigError as error:
        _complain(name, error)
        raise SystemExit(_EXIT_CONFIG) from None

    async def main() -> None:
        stop = asyncio.Event()
        stop_on_signals(stop)
        opening = open_manager(
            name, kubeconfig=kubeconfig, context=context, namespaces=namespaces, settings=settings, tracer=tracer
        )
        async with AsyncExitStack() as stack:
            manager = await unless_stopped(stop, stack.enter_async_context(opening))
            if manager is not None:
                setup(manager)
                await manager.run(stop)

    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(main())
        except ConfigError as error:
            _complain(name, error)
            raise SystemExit(_EXIT_CONFIG) from None
        except StopError as error:
            # What did not stop would keep the loop from closing, and the interpreter from ending.
            _complain(name, error)
            os._exit(_EXIT_FAILED)


def _complain(name: str, error: Exception) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{name}: {error}\n")
        sys.stderr.flush()


def loop_factory(event_loop: EventLoop) -> Callable[[], asyncio.AbstractEventLoop]:
    """The constructor of an event loop, for :class:`asyncio.Runner`.

    ``uvloop`` is faster and needs the package of that name; ``auto`` uses it if it is installed. On asyncio's loop, a
    leader-only write is checked against the Lease at the system call that sends it; on uvloop, when it is written to
    the loop, which sends it at the end of its turn.

    :raises ConfigError: uvloop is not installed.
    """
    if event_loop == "asyncio":
        return asyncio.new_event_loop
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError as error:
        if event_loop == "auto":
            return asyncio.new_event_loop
        raise ConfigError("event loop uvloop: uvloop is not installed; pip install 'fivespot[uvloop]'") from error
    return factory


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Await ``work``, but cancel it and return None when ``stop`` is set first.

    A signal while connecting ends the process at once, whatever a credential plugin does.
    """
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(_outcome(work))
        stopped = tasks.create_task(stop.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        stopped.cancel()
    if running.cancelled():
        return None
    result, error = running.result()
    if error is not None:
        raise error
    return result


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[T | None, Exception | None]:
    # A task group would wrap the error in a group.
    try:
        return await work, None
    except Exception as error:
        return None, error


def stop_on_signals(stop: asyncio.Event) -> None:
    """Set ``stop`` at SIGTERM or SIGINT; a second signal ends the process at once."""

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        _log.info("signal received", signal=number.name)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
