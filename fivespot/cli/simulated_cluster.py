"""A simulated Cluster API beside the embedded API server, with one Cluster whose Machines come up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import structlog

from fivespot.apiserver import kubeconfig, write_kubeconfig
from fivespot.runtime import Client, ConfigError, configure_logging, open_manager
from fivespot.runtime.errors import NotServedError
from fivespot.testing.clusterapi import add_providers, cluster_bodies, create_cluster, install_definitions
from fivespot.testing.clusterapi.core import add_core, install_core_definitions

__all__ = ["run_simulated_cluster_api"]

_NAMESPACE: Final = "default"
_CLUSTER: Final = "prod"
_ATTEMPTS, _PAUSE = 100, 0.05


async def run_simulated_cluster_api(url: str, token: str, stop: asyncio.Event, announce: Callable[[], None]) -> None:
    """Install the kinds of Cluster API and of simulated providers, create a Cluster, and run them until ``stop``.

    :param url: of the server.
    :param announce: called once the Cluster exists.
    :raises ConfigError: the server does not serve the kinds.
    """
    configure_logging("text", 0)
    # The server's own output says where it is; what the simulation does shows in its objects.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        text = kubeconfig(url, token=token)
        write_kubeconfig(path, text)
        async with open_manager("simulated-cluster-api", kubeconfig=str(path)) as manager:
            client = manager.context.client
            await install_core_definitions(client)
            await install_definitions(client)
            add_core(manager)
            add_providers(manager)
            await _create(client, text)
            announce()
            await manager.run(stop)


async def _create(client: Client, text: str) -> None:
    for _ in range(_ATTEMPTS):
        try:
            await create_cluster(client, cluster_bodies(_NAMESPACE, _CLUSTER, kubeconfig=text))
            return
        except NotServedError:
            # A definition is established a moment after it is created.
            await asyncio.sleep(_PAUSE)
    raise ConfigError("--cluster-api: the server does not serve the kinds of Cluster API")
