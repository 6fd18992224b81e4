"""``fivespot why``: its flags and exit codes."""

from __future__ import annotations

import asyncio
import json
import sys

import click

from fivespot.cli.console import colours

__all__ = ["EXIT", "why"]

EXIT = {"AsWanted": 0, "NotAsWanted": 1, "CannotTell": 2}
"""Exit code for each verdict; 2 is also that of a mistake on the command line."""


@click.command()
@click.argument("machine", metavar="[NAMESPACE/]NAME")
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, in-cluster credentials, or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--capi-machine-api-version", envvar="CAPI_MACHINE_API_VERSION", hidden=True)
def why(
    machine: str, kubeconfig: str | None, context: str | None, output: str, capi_machine_api_version: str | None
) -> None:
    """Explain one ScheduledMachine: what is wanted, who decides, what happens next, what is missing.

    Reads only, with your own rights, and says what it could not read. Without a namespace that of the context is used.

    Exit codes: 0 it is as wanted, 1 it is not (yet), 2 that cannot be told, or the command cannot be used as it is.
    """
    from fivespot.cli.options import api_version  # noqa: PLC0415 - the help must not import the runtime
    from fivespot.cli.why.ask import ask  # noqa: PLC0415
    from fivespot.cli.why.render import render, to_json  # noqa: PLC0415
    from fivespot.runtime import configure_logging  # noqa: PLC0415

    # Logs go to standard error, as text.
    configure_logging("text")
    found = asyncio.run(ask(machine, kubeconfig, context, api_version(capi_machine_api_version)))
    if output == "json":
        click.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
    else:
        click.echo(render(found), nl=False, color=colours())
    sys.exit(EXIT[found.settled.value])
