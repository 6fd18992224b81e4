"""The whole system in one process: API server in memory, simulated Cluster API, the manager's controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from fivespot.api import scheduledmachine
from fivespot.controllers import scheduledmachine as machine_controller
from fivespot.controllers.scheduledmachine import MachineSettings, Timings
from fivespot.controllers.scheduledmachine.holds import Holds
from fivespot.providers.registry import shipped_providers
from fivespot.providers.sdk import Provider, build_controller
from fivespot.runtime import Key, Manager, ManagerSettings, Object
from fivespot.runtime.manager import ControllerSettings

from .cluster import EmbeddedCluster, RunningManager
from .clusterapi import SIMULATED, KindFamily, add_providers, cluster_bodies, create_cluster, is_usable
from .clusterapi.core import CLUSTERS, CoreSettings, add_core, core_definitions

__all__ = ["EmbeddedSystem"]

_USABLE_SECONDS: Final = 120.0


class EmbeddedSystem:
    """fivespot's kinds and a simulated Cluster API in an embedded cluster; an async context manager.

    ::

        async with EmbeddedSystem() as system:
            await system.add_cluster("default")
            async with system.manager():
                await system.cluster.client.create(...)

    :param cluster: by default a new one.
    :param family: the simulated infrastructure and bootstrap kinds.
    :param more_families: further ones, such as stand-ins for the kinds of a real provider.
    :param core: timings of the simulated core.
    :param providers: providers beside the shipped ones.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster | None = None,
        *,
        family: KindFamily = SIMULATED,
        more_families: Sequence[KindFamily] = (),
        core: CoreSettings | None = None,
        providers: Sequence[Provider[Any]] = (),
    ) -> None:
        self._own = cluster is None
        self.cluster = cluster or EmbeddedCluster()
        self.family = family
        self._families = (family, *more_families)
        self._core = core
        self._providers = (*shipped_providers(), *providers)
        self._stack = AsyncExitStack()
        self.cluster_api: RunningManager
        """The manager of the simulated Cluster API."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._own:
                await stack.enter_async_context(self.cluster)
            own = [scheduledmachine.definition(), *(provider.definition() for provider in self._providers)]
            simulated = [each for family in self._families for each in family.definitions()]
            await self.cluster.install(*own, *core_definitions(), *simulated)
            self.cluster_api = await stack.enter_async_context(
                self.cluster.manager(name="cluster-api", setup=self._add_cluster_api)
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def _add_cluster_api(self, manager: Manager) -> None:
        add_core(manager, self._core)
        add_providers(manager, self._families)

    async def add_cluster(self, namespace: str, name: str = "prod") -> None:
        """Create a Cluster in an existing namespace and wait until its Machines can find their Nodes."""
        client = self.cluster.client
        bodies = cluster_bodies(namespace, name, kubeconfig="in-process", family=self.family)
        await create_cluster(client, bodies, self.family)

        async def usable() -> bool:
            found: Object = await client.get(CLUSTERS, Key(namespace, name))
            return is_usable(found.decode())

        await self.cluster.until(usable, within=_USABLE_SECONDS, what=f"Cluster {namespace}/{name} is usable")

    def manager(
        self,
        *,
        name: str = "5spot-controller",
        timings: Timings | None = None,
        settings: ManagerSettings | None = None,
        controllers: ControllerSettings | None = None,
        machine_settings: MachineSettings | None = None,
        holds: Holds | None = None,
    ) -> AbstractAsyncContextManager[RunningManager]:
        """Run fivespot's manager with all controllers inside the scope; several may compete for one Lease.

        :param timings: timings of the machine controller.
        :param machine_settings: settings of the machine controller.
        :param holds: what administrators hold back.
        """
        factories = [partial(machine_controller.build, timings=timings, settings=machine_settings, holds=holds)]
        schedules = [partial(build_controller, provider) for provider in self._providers]
        return self.cluster.manager(*factories, *schedules, name=name, settings=settings, controllers=controllers)

    async def sleep_until(self, seconds: float) -> None:
        """Sleep until the given number of seconds after the start of the cluster."""
        await asyncio.sleep(max(0.0, seconds - self.cluster.elapsed))
