"""The process around a manager: event loop, signals, connection, and the parts put together."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from importlib import import_module

import structlog

from fivespot import __version__
from fivespot.runtime.cache import Cache
from fivespot.runtime.client import NO_RETRY, WATCH_LIMITS, Client, Connection, Limits, Transport, connect
from fivespot.runtime.clock import Chance, Clock, Offload, SystemClock, ThreadOffload, system_chance
from fivespot.runtime.errors import ApiError, ConfigError, StopError, TransportError, UnauthorizedError
from fivespot.runtime.manager import (
    Connectivity,
    ControllerFactory,
    ControllerSettings,
    ElectionSettings,
    ElectionTimings,
    Manager,
    ManagerContext,
    ManagerSettings,
    ReadOnlyTransport,
    ServingSettings,
)
from fivespot.runtime.manager.running import stop_on_signals
from fivespot.runtime.telemetry import EventRecorder, Metrics, configure
from fivespot.schedule.zones import TZDATA_RELEASE

from .main import complain
from .manager import ManagerOptions
from .options import CONTROLLERS

__all__ = ["RECONCILERS_ANNOTATION", "assemble", "run_process"]

FIELD_MANAGER = "5spot-controller"
RECONCILERS_ANNOTATION = "5spot.finos.org/reconcilers"
"""On the Lease: the holder's reconcilers, so that two deployments that share a Lease by mistake find out."""

_PROBE_LIMIT = 10.0
"""Seconds to wait for a server's first answer where a person waits for it."""

_log = structlog.get_logger(__name__)


def run_process(options: ManagerOptions) -> None:
    """Run until a signal arrives or something fails.

    :raises FivespotError: why it cannot go on, in one line.
    """
    configure(options.log_format, options.verbose)
    with asyncio.Runner(loop_factory=_loop_factory(options.event_loop)) as runner:
        try:
            runner.run(_main(options))
        except StopError as error:
            # What did not stop would keep the loop from closing, and the interpreter from ending.
            code = complain(error)
            sys.stderr.flush()
            os._exit(code)


async def _main(options: ManagerOptions) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    clock, chance, offload = SystemClock(), system_chance(), ThreadOffload()
    connection = await connect(
        kubeconfig=options.kubeconfig,
        context=options.context,
        user_agent=f"fivespot/{__version__}",
        clock=clock,
        chance=chance,
        offload=offload,
    )
    try:
        manager = assemble(options, connection, clock=clock, chance=chance, offload=offload)
        if not connection.in_cluster:
            # In a cluster the manager waits for its server instead, and says so in /readyz.
            await _probe(connection, clock, chance)
        _log.info(
            "starting",
            version=__version__,
            tzdata=TZDATA_RELEASE,
            server=connection.server,
            controllers=options.controllers,
            namespaces=options.namespaces or "all",
            dry_run=options.dry_run,
            leader_election=manager.settings.election is not None,
        )
        await manager.run(stop)
    finally:
        await connection.client.close()


def assemble(
    options: ManagerOptions,
    connection: Connection,
    *,
    clock: Clock,
    chance: Chance,
    offload: Offload,
    watch_limits: Limits = WATCH_LIMITS,
) -> Manager:
    """Put a manager together from its command line and a connection."""
    metrics = Metrics()
    instance = options.pod_name or socket.gethostname()
    metrics.info("fivespot_controller_info", "This process.", version=__version__, instance_id=str(options.instance_id))
    metrics.info("fivespot_tzdata_info", "The time zone data in use.", release=TZDATA_RELEASE)
    connectivity = Connectivity(connection.server)

    def observe(verb: str, status: int) -> None:
        metrics.requests(verb, status)
        connectivity.observed(verb, status)

    transport: Transport = connection.transport
    if options.dry_run:
        transport = ReadOnlyTransport(transport)
    client = Client(
        transport,
        field_manager=FIELD_MANAGER,
        clock=clock,
        chance=chance,
        watch_limits=watch_limits,
        observe_request=observe,
    )
    context = ManagerContext(
        client=client,
        cache=Cache(client, clock=clock, chance=chance, namespaces=options.namespaces),
        clock=clock,
        chance=chance,
        offload=offload,
        metrics=metrics,
        events=EventRecorder(
            None if options.dry_run else client,
            controller=FIELD_MANAGER,
            instance=instance,
            clock=clock,
            chance=chance,
            metrics=metrics,
        ),
        settings=ControllerSettings(
            namespaces=options.namespaces,
            dry_run=options.dry_run,
            force_finalizer_on_timeout=options.force_finalizer_on_timeout,
            capi_version=options.capi_version,
            max_deletions_per_minute=options.max_deletions_per_minute,
            instance=instance,
        ),
    )
    settings = ManagerSettings(
        serving=ServingSettings(
            bind_address=options.bind_address or ("0.0.0.0" if connection.in_cluster else "127.0.0.1"),  # noqa: S104
            metrics_port=options.metrics_port,
            health_port=options.health_port,
        ),
        election=_election(options, chance),
        tune_collector=True,
    )
    manager = Manager(context, settings, connectivity=connectivity)
    for kind in options.controllers:
        manager.add(_factory(kind))
    return manager


def _election(options: ManagerOptions, chance: Chance) -> ElectionSettings | None:
    """The Lease to stand for. A dry run writes nothing, not even a Lease, and works next to whoever holds it."""
    try:
        timings = ElectionTimings(options.lease_duration, options.lease_renew_deadline, options.lease_retry_period)
    except ValueError as error:
        raise ConfigError(
            f"--lease-duration-secs, --lease-renew-deadline-secs, --lease-retry-period-secs: {error}"
        ) from error
    if not options.leader_election or options.dry_run:
        return None
    # Outside a pod nothing promises that the host's name is ours alone.
    identity = options.pod_name or f"{socket.gethostname()}_{int(chance.random() * 2**48):012x}"
    return ElectionSettings(
        namespace=options.lease_namespace,
        name=options.lease_name,
        identity=identity,
        annotation=RECONCILERS_ANNOTATION,
        members=options.controllers,
        timings=timings,
    )


def _factory(kind: str) -> ControllerFactory:
    module, _, name = CONTROLLERS[kind].partition(":")
    factory: ControllerFactory = getattr(import_module(module), name)
    return factory


async def _probe(connection: Connection, clock: Clock, chance: Chance) -> None:
    """One request, for a person who waits: is the server there, and does it know us?

    :raises ConfigError: no, and why.
    """
    client = Client(connection.transport, clock=clock, chance=chance, retry=NO_RETRY)
    source, server = connection.source, connection.server
    try:
        async with asyncio.timeout(_PROBE_LIMIT):
            await client.raw("GET", "/version")
    except UnauthorizedError as error:
        raise ConfigError(f"{source}: {server} does not accept the credentials: {error.message}") from error
    except TimeoutError as error:
        raise ConfigError(f"{source}: {server} did not answer within {_PROBE_LIMIT:g} s") from error
    except TransportError as error:
        raise ConfigError(f"{source}: {error}") from error
    except ApiError as error:
        # Not everybody may read the version; the server is there and answers, which is all that was asked.
        _log.debug("the API server does not tell its version", error=str(error))


def _loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name == "asyncio":
        return None
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError as error:
        raise ConfigError("--event-loop uvloop: uvloop is not installed; pip install 'fivespot[uvloop]'") from error
    return factory
