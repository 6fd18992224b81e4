"""From nothing to a running manager: connection, client, cache, metrics, events and signals in one call.

For programs that want the usual parts. Everything here can be put together by hand from the public classes, and has to
be where a part is to be another one: a transport of one's own, a virtual clock, several clusters in one process.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from fivespot.runtime.client import connect
from fivespot.runtime.clock import SystemClock, ThreadOffload, system_chance
from fivespot.runtime.errors import ConfigError, StopError
from fivespot.runtime.telemetry import LogFormat, Tracer, configure, tracer_from

from .assembling import assemble
from .context import ControllerSettings
from .manager import Manager, ManagerSettings

__all__ = ["open_manager", "run"]

_EXIT_FAILED = 1
_EXIT_CONFIG = 2
"""A file, a flag or a credential cannot be used: starting again will not help."""

_log = structlog.get_logger(__name__)


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
    clock, chance, offload = SystemClock(), system_chance(), ThreadOffload()
    connection = await connect(
        kubeconfig=kubeconfig, context=context, user_agent=name, clock=clock, chance=chance, offload=offload
    )
    try:
        chosen = tuple(namespaces) if namespaces is not None else None
        yield assemble(
            connection,
            name=name,
            clock=clock,
            chance=chance,
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
) -> None:
    """The main function of a program: run a manager until SIGTERM or SIGINT, and stop it in order.

    Logs go to standard error. A second signal ends the process at once. To be called in the main thread, once.

    :param setup: adds controllers and runnables; called once, before anything runs.
    :param name: see :func:`open_manager`, and the other parameters there.
    :param log_format: ``json``, or ``text`` for people.
    :param verbosity: 1 and more for debugging.
    :raises SystemExit: with code 2 and one line on standard error where a file or credential cannot be used, or a
        port is taken.
    :raises Exception: what ended something that had to run on; everything else is stopped first.
    """
    configure(log_format, verbosity)

    async def main() -> None:
        stop = asyncio.Event()
        stop_on_signals(stop)
        async with open_manager(
            name, kubeconfig=kubeconfig, context=context, namespaces=namespaces, settings=settings, tracer=tracer
        ) as manager:
            setup(manager)
            await manager.run(stop)

    with asyncio.Runner() as runner:
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
    sys.stderr.write(f"{name}: {error}\n")
    sys.stderr.flush()


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
