"""Hosts a provider written with the SDK in this process while it is checked, so that no setup is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fivespot.providers.sdk import Provider, build_controller
from fivespot.runtime import (
    Client,
    Clock,
    ConfigError,
    Controller,
    ForbiddenError,
    InvalidError,
    ManagerContext,
    open_manager,
)
from fivespot.runtime.crd import SchemaError

from .harness import single_error
from .installation import apply_definition, remove_definition
from .subject import Restart

__all__ = ["with_provider"]

T = TypeVar("T")

_LIMIT = 30.0
_POLL = 0.1


async def with_provider(
    provider: Provider[Any],
    client: Client,
    work: Callable[[Restart], Awaitable[T]],
    *,
    clock: Clock,
    kubeconfig: str | None = None,
    context: str | None = None,
) -> T:
    """Run ``work`` while a provider's kind is installed and its controller runs; returns the result of ``work``.

    The definition is applied over an existing one. If there was none, it is removed afterwards.

    :param work: receives a function that restarts the controller without its in-memory state.
    :param kubeconfig: kubeconfig for the controller, which has its own connection.
    :raises ConfigError: the definition is refused, or the controller does not start.
    """
    before = await _install(provider, client, clock)
    try:
        async with asyncio.TaskGroup() as group:
            host = _Host(provider, group, kubeconfig, context)
            await host.start()
            try:
                return await work(host.restart)
            finally:
                await host.stop()
    except BaseExceptionGroup as errors:
        error = single_error(errors)
        if error is None:
            raise
        raise error from errors
    finally:
        if not before:
            await remove_definition(client, provider.resource)


class _Host:
    """The controller of a provider, in a new manager for each start."""

    def __init__(
        self, provider: Provider[Any], group: asyncio.TaskGroup, kubeconfig: str | None, context: str | None
    ) -> None:
        self._provider = provider
        self._group = group
        self._kubeconfig = kubeconfig
        self._context = context
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._controllers: list[Controller] = []

    async def start(self) -> None:
        """Start the controller and wait until it is ready.

        :raises ConfigError: it does not start in time.
        """
        self._stop = asyncio.Event()
        started = asyncio.Event()
        self._task = self._group.create_task(self._run(self._stop, started))
        try:
            async with asyncio.timeout(_LIMIT):
                await started.wait()
                while not all(controller.ready for controller in self._controllers):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(_POLL)
        except TimeoutError as error:
            raise ConfigError(f"{self._provider.kind}: its controller did not start within {_LIMIT:g} s") from error

    async def stop(self) -> None:
        if self._task is not None:
            self._stop.set()
            await asyncio.wait([self._task])
            self._task = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _run(self, stop: asyncio.Event, started: asyncio.Event) -> None:
        name = f"{self._provider.name}-under-test"
        async with open_manager(name, kubeconfig=self._kubeconfig, context=self._context) as manager:

            def build(context: ManagerContext) -> Controller:
                controller = build_controller(self._provider, context)
                self._controllers = [controller]
                started.set()
                return controller

            manager.add(build)
            await manager.run(stop)


async def _install(provider: Provider[Any], client: Client, clock: Clock) -> bool:
    """Install the definition and wait until the kind is served; returns whether it existed before."""
    try:
        return await apply_definition(client, clock, provider.resource, provider.definition())
    except (ForbiddenError, InvalidError, SchemaError) as error:
        raise ConfigError(f"the definition of {provider.kind} cannot be installed: {error}") from error
