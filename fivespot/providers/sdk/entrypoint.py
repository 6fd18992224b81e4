"""Run providers as a program of their own."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fivespot.runtime import ConfigError
from fivespot.runtime.clock import system_random
from fivespot.settings import EVENT_LOOP, in_pod, program_settings

from .controller import build_controller
from .definition import Provider

if TYPE_CHECKING:
    from fivespot.runtime import Manager, ManagerSettings
    from fivespot.runtime.telemetry import LogFormat

__all__ = ["run"]


def run(
    *providers: Provider[Any],
    name: str,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespaces: Sequence[str] | None = None,
    settings: ManagerSettings | None = None,
    log_format: LogFormat = "json",
    verbosity: int = 0,
) -> None:
    """Run providers until SIGTERM or SIGINT; the main function of a program.

    In a pod it serves metrics on port 8080 and health on 8081, and works only while it holds the Lease
    ``5spot-<kinds>-leader``, so that a second replica stands by. Elsewhere it does neither. The variables of ``fivespot
    manager`` are read: ``METRICS_PORT``, ``HEALTH_PORT``, ``ENABLE_LEADER_ELECTION``, ``LEASE_NAME``,
    ``POD_NAMESPACE``, ``POD_NAME``, the three of the Lease's times, ``EVENT_LOOP``, and those of OpenTelemetry that ask
    for traces.

    :param name: the name of the program: user agent and field manager. Events carry the kind, in lower case.
    :param settings: endpoints and leader election, instead of what the environment says.
    :raises SystemExit: with code 2 and one line on standard error, where a variable, a file or a credential cannot be
        used, or a port is taken.

    The other parameters, and what else is raised, are those of :func:`fivespot.runtime.run`.
    """
    # Importing a provider to look at its decision must not load an HTTP server.
    from fivespot.runtime import run  # noqa: PLC0415

    def setup(manager: Manager) -> None:
        for provider in providers:
            manager.add(partial(build_controller, provider))

    try:
        event_loop = EVENT_LOOP.read(os.environ)
        if settings is None:
            # Outside a pod nothing promises that the host's name is ours alone.
            identity = f"{platform.node()}_{int(system_random().random() * 2**48):012x}"
            pod = in_pod(os.environ, kubeconfig)
            names = [provider.name for provider in providers]
            settings = program_settings(os.environ, names, in_cluster=pod, identity=identity)
    except ConfigError as error:
        sys.stderr.write(f"{name}: {error}\n")
        raise SystemExit(2) from None
    run(
        setup,
        name=name,
        kubeconfig=kubeconfig,
        context=context,
        namespaces=namespaces,
        settings=settings,
        log_format=log_format,
        verbosity=verbosity,
        event_loop=event_loop,
    )
