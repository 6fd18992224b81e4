"""The usual parts of a manager, put together on a connection."""

from __future__ import annotations

from fivespot.runtime.cache import Cache, ReflectorSettings
from fivespot.runtime.client import WATCH_LIMITS, Client, Connection, Limits, Transport
from fivespot.runtime.clock import Chance, Clock, Offload
from fivespot.runtime.telemetry import NULL_TRACER, EventRecorder, Metrics, Tracer

from .context import ControllerSettings, ManagerContext
from .health import Connectivity
from .manager import Manager, ManagerSettings
from .readonly import ReadOnlyTransport

__all__ = ["assemble"]


def assemble(
    connection: Connection,
    *,
    name: str,
    clock: Clock,
    chance: Chance,
    offload: Offload,
    controllers: ControllerSettings,
    settings: ManagerSettings | None = None,
    watch_limits: Limits = WATCH_LIMITS,
    reflector: ReflectorSettings = ReflectorSettings(),  # noqa: B008 - frozen
    tracer: Tracer = NULL_TRACER,
) -> Manager:
    """A manager without controllers. The connection stays the caller's, who closes it after the manager has ended.

    :param name: field manager (at most 128 characters) and ``reportingController`` of events.
    :param controllers: ``dry_run`` in it also keeps every write, those of events included, from being sent.
    :param watch_limits: of the watches; ``read`` is how long a silent one is trusted.
    :param reflector: of every informer.
    :param tracer: of every run and request.
    """
    metrics = Metrics()
    connectivity = Connectivity(connection.server)

    def observe(verb: str, status: int) -> None:
        metrics.requests(verb, status)
        connectivity.observed(verb, status)

    transport: Transport = connection.transport
    if controllers.dry_run:
        transport = ReadOnlyTransport(transport)
    client = Client(
        transport,
        field_manager=name,
        clock=clock,
        chance=chance,
        watch_limits=watch_limits,
        observe_request=observe,
        tracer=tracer,
        server=connection.server,
    )
    context = ManagerContext(
        client=client,
        cache=Cache(client, clock=clock, chance=chance, namespaces=controllers.namespaces, settings=reflector),
        clock=clock,
        chance=chance,
        offload=offload,
        metrics=metrics,
        events=EventRecorder(
            None if controllers.dry_run else client,
            controller=name,
            instance=controllers.instance,
            clock=clock,
            chance=chance,
            metrics=metrics,
        ),
        settings=controllers,
        tracer=tracer,
    )
    return Manager(context, settings, connectivity=connectivity)
