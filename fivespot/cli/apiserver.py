"""``fivespot apiserver``: the embedded API server on its own, for kubectl and for programs under development."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fivespot.cli.extras import require_modules
from fivespot.runtime import ConfigError
from fivespot.runtime.manager.entrypoint import stop_on_signals

if TYPE_CHECKING:
    from fivespot.apiserver import ApiServer

__all__ = ["apiserver"]

_TOKEN: Final = "anyone"  # noqa: S105 - it grants nothing
"""Accepted like any other token; without one, clients complain about missing credentials."""
_SHOWN: Final = 300
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to serve on; 0 chooses one.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a kubeconfig to this file and remove it at the end; default none.",
)
@click.option("--crds", "with_crds", is_flag=True, help="Install fivespot's own CustomResourceDefinitions.")
@click.option(
    "--cluster-api",
    "with_cluster_api",
    is_flag=True,
    help="Simulate Cluster API, with a Cluster prod in namespace default whose Machines come up.",
)
def apiserver(port: int, kubeconfig: Path | None, with_crds: bool, with_cluster_api: bool) -> None:
    """Serve the Kubernetes API from memory on 127.0.0.1, until Ctrl-C.

    All objects are lost when it ends. There is no authentication and no authorization: every process on this computer
    may do everything. docs/apiserver.md lists the supported parts of the API.
    """
    if kubeconfig is not None and kubeconfig.exists():
        raise ConfigError(f"--kubeconfig {kubeconfig}: the file exists and is not overwritten")
    if with_crds or with_cluster_api:
        require_modules("cel_expr_python")
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(port, kubeconfig, with_crds=with_crds, with_cluster_api=with_cluster_api))
    finally:
        if kubeconfig is not None:
            kubeconfig.unlink(missing_ok=True)


async def _serve(port: int, path: Path | None, *, with_crds: bool, with_cluster_api: bool) -> None:
    from fivespot.apiserver import ApiServer, HttpListener, kubeconfig, write_kubeconfig  # noqa: PLC0415 - heavy

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with ApiServer() as server:
        if with_crds:
            await _install(server)
        try:
            async with HttpListener(server, port=port) as front:

                def announce() -> None:
                    if path is not None:
                        try:
                            write_kubeconfig(path, kubeconfig(front.url, token=_TOKEN))
                        except OSError as error:
                            raise ConfigError(f"--kubeconfig {path}: {error.strerror or error}") from error
                    click.echo(f"export KUBECONFIG={path}" if path is not None else front.url)

                if with_cluster_api:
                    from .simulated_cluster import run_simulated_cluster_api  # noqa: PLC0415 - the manager, and its models

                    await run_simulated_cluster_api(front.url, _TOKEN, stop, announce)
                else:
                    announce()
                    await stop.wait()
        except OSError as error:
            raise ConfigError(f"--port {port}: {error.strerror or error}") from error


async def _install(server: ApiServer) -> None:
    from fivespot.apiserver import ApiRequest  # noqa: PLC0415 - heavy

    from .crds.definitions import definitions  # noqa: PLC0415 - the models are not needed to serve alone

    for definition in definitions():
        answer = await server.handle(ApiRequest.of("POST", _DEFINITIONS, definition))
        if answer.status != 201:
            raise ConfigError(f"--crds: the server refuses {definition['metadata']['name']}: {_message(answer.body)}")


def _message(body: object) -> str:
    """The message of a Status, truncated."""
    try:
        message = str(json.loads(body)["message"]) if isinstance(body, bytes) else ""
    except (ValueError, KeyError, TypeError):
        message = ""
    return message if len(message) <= _SHOWN else f"{message[:_SHOWN]}..."
