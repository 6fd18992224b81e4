"""The process of ``fivespot manager``: event loop, signals, connection, and assembly of the manager."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog

from fivespot import __version__
from fivespot.providers.registry import SHIPPED, shipped_controller
from fivespot.runtime import (
    NULL_TRACER,
    Clock,
    Connection,
    Manager,
    Object,
    ObjectRef,
    Offload,
    Random,
    SystemClock,
    Tracer,
    configure_logging,
    connect,
)
from fivespot.runtime.client import WATCH_LIMITS, Limits
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.runtime.errors import StopError
from fivespot.runtime.manager import ControllerFactory, ControllerSettings
from fivespot.runtime.manager import assemble as manager_on
from fivespot.runtime.manager.election import LEASES
from fivespot.runtime.manager.entrypoint import loop_factory, stop_on_signals, unless_stopped
from fivespot.runtime.telemetry import tracer_from
from fivespot.schedule.zones import TZDATA_RELEASE

from .main import complain
from .options import MACHINE_CONTROLLER, ManagerOptions

__all__ = ["assemble", "controller_factory", "machine_settings", "run_process"]

if TYPE_CHECKING:
    from fivespot.controllers.scheduledmachine import MachineSettings
    from fivespot.controllers.scheduledmachine.holds import Holds

FIELD_MANAGER = "5spot-controller"

_log = structlog.get_logger(__name__)


def run_process(options: ManagerOptions) -> None:
    """Run until a signal arrives or an error ends the manager.

    :raises FivespotError: the error, as one line.
    """
    configure_logging(options.log_format, options.verbose)
    with asyncio.Runner(loop_factory=loop_factory(options.event_loop)) as runner:
        try:
            runner.run(_main(options))
        except StopError as error:
            # A task that did not stop would keep the loop from closing and the interpreter from exiting.
            code = complain(error)
            sys.stderr.flush()
            os._exit(code)


async def _main(options: ManagerOptions) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    clock, rng, offload = SystemClock(), system_random(), ThreadOffload()
    connecting = connect(
        kubeconfig=options.kubeconfig,
        context=options.context,
        user_agent=f"fivespot/{__version__}",
        clock=clock,
        rng=rng,
        offload=offload,
    )
    connection = await unless_stopped(stop, connecting)
    if connection is None:
        return
    try:
        tracer = tracer_from(os.environ)
        manager = assemble(options, connection, clock=clock, rng=rng, offload=offload, tracer=tracer)
        if not connection.in_cluster:
            # In a cluster the manager waits for its API server instead, and reports that in /readyz.
            await unless_stopped(stop, connection.check())
        _log.info(
            "starting",
            version=__version__,
            tzdata=TZDATA_RELEASE,
            server=connection.server,
            controllers=options.reconcilers,
            namespaces=options.namespaces or "all",
            dry_run=options.dry_run,
            leader_election=manager.settings.election is not None,
        )
        await manager.run(stop)
    finally:
        await connection.close()


def assemble(
    options: ManagerOptions,
    connection: Connection,
    *,
    clock: Clock,
    rng: Random,
    offload: Offload,
    watch_limits: Limits = WATCH_LIMITS,
    tracer: Tracer = NULL_TRACER,
) -> Manager:
    """Assemble a manager from its options and a connection."""
    # A dry run writes nothing, not even a Lease, and works beside the process that holds it.
    # Its plans are what it is run for.
    chosen = replace(options, leader_election=False, debug=True) if options.dry_run else options
    settings = chosen.manager_settings(
        options.reconcilers,
        in_cluster=connection.in_cluster,
        # Outside a pod nothing promises that the host's name is ours alone.
        identity=f"{socket.gethostname()}_{int(rng.random() * 2**48):012x}",
    )
    manager = manager_on(
        connection,
        name=FIELD_MANAGER,
        clock=clock,
        rng=rng,
        offload=offload,
        controllers=ControllerSettings(
            namespaces=options.namespaces,
            dry_run=options.dry_run,
            instance=options.pod_name or socket.gethostname(),
        ),
        settings=settings,
        watch_limits=watch_limits,
        tracer=tracer,
    )
    metrics = manager.context.metrics
    metrics.info("fivespot_controller_info", "This process.", version=__version__, instance_id=str(options.instance_id))
    metrics.info("fivespot_tzdata_info", "The time zone data in use.", release=TZDATA_RELEASE)
    holds = _administrators_holds(options, manager) if MACHINE_CONTROLLER in options.controllers else None
    for name in options.controllers:
        manager.add(controller_factory(name, options, holds))
    if options.providers:
        from fivespot.providers.sdk import build_controller  # noqa: PLC0415 - only a run with providers needs it

        for provider in options.providers:
            manager.add(partial(build_controller, provider))
    return manager


def _administrators_holds(options: ManagerOptions, manager: Manager) -> Holds:
    """Make the holds by administrators, kept up to date and shown while the manager runs."""
    from fivespot.controllers.scheduledmachine.holds import Holds  # noqa: PLC0415 - only where it runs
    from fivespot.controllers.scheduledmachine.policy_check import PolicyCheck  # noqa: PLC0415

    holds = Holds(require_policy=options.require_admission_policy)
    context = manager.context
    check = PolicyCheck(context.ungated_client, context.clock, holds, whole_cluster=context.settings.namespaces is None)

    def observe_lease(lease: Object) -> None:
        note = holds.lease_observed(lease)
        if note is not None:
            context.events.note(ObjectRef.of(LEASES, lease), note)

    manager.observe_lease(observe_lease)
    manager.add_runnable("admission policies", check.run)
    manager.health.add_note("admission policy", holds.policy_note)
    manager.health.add_note("stop", holds.stop_note)
    context.metrics.reading(
        "fivespot_admission_policy_bound",
        "Whether the admission policy is in force.",
        ("policy",),
        holds.bound_readings,
    )
    context.metrics.reading(
        "fivespot_stopped",
        "Whether an administrator has stopped every creation and deletion.",
        (),
        lambda: [((), float(holds.stopped != ""))],
    )
    return holds


def controller_factory(name: str, options: ManagerOptions, holds: Holds | None = None) -> ControllerFactory:
    """The factory of a shipped controller; its modules are imported when it is chosen.

    :param name: one of :data:`~fivespot.cli.options.CONTROLLERS`.
    :param holds: the holds by administrators, for the machine controller.
    """
    for kind in SHIPPED:
        if kind.lower() == name:
            return shipped_controller(kind)
    from fivespot.controllers.scheduledmachine import build  # noqa: PLC0415

    return partial(build, settings=machine_settings(options), holds=holds)


def machine_settings(options: ManagerOptions) -> MachineSettings:
    """The settings of the machine controller that the command line chose."""
    from fivespot.controllers.scheduledmachine import MachineSettings  # noqa: PLC0415 - only where it runs
    from fivespot.controllers.scheduledmachine.activation_limiter import ActivationLimits  # noqa: PLC0415

    return MachineSettings(
        capi_version=options.capi_version,
        force_finalizer_on_timeout=options.force_finalizer_on_timeout,
        max_deletions_per_minute=options.max_deletions_per_minute,
        shortest_grace=timedelta(seconds=options.shortest_grace),
        activations=ActivationLimits(
            per_machine=options.max_activations_per_hour,
            per_namespace=options.max_namespace_activations_per_hour,
            machines=options.max_machines_per_namespace,
        ),
    )
