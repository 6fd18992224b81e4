"""``fivespot why``: its flags and exit codes."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys

import click

from fivespot.cli.console import colours
from fivespot.runtime import ConfigError

__all__ = ["EXIT", "qualified", "why"]

EXIT = {"AsWanted": 0, "NotAsWanted": 1, "CannotTell": 2}
"""Exit code for each verdict; 2 is also that of a mistake on the command line."""


_KINDS = frozenset(
    f"{name}{group}"
    for name in ("sm", "scheduledmachine", "scheduledmachines")
    for group in ("", ".5spot.finos.org", ".v1beta1.5spot.finos.org")
)


def qualified(machine: str, namespace: str | None) -> str:
    """Return ``NAMESPACE/NAME``, or ``NAME`` without a namespace, of a machine as kubectl or a person names it.

    :raises ConfigError: it names two namespaces, or another kind.
    """
    first, _, name = machine.rpartition("/")
    if first.lower() in _KINDS:
        first = ""
    if namespace is None:
        return f"{first}/{name}" if first else name
    if first and first != namespace:
        raise ConfigError(f"{machine!r} names another namespace than --namespace {namespace}")
    return f"{namespace}/{name}"


@click.command()
@click.argument("machine", metavar="[NAMESPACE/]NAME")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the machine; default that of the context.")
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, in-cluster credentials, or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--capi-machine-api-version", envvar="CAPI_MACHINE_API_VERSION", hidden=True)
def why(
    machine: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
    capi_machine_api_version: str | None,
) -> None:
    """Explain one ScheduledMachine: what is wanted, who decides, what happens next, what is missing.

    Reads only, with your own rights, and says what it could not read. Without a namespace that of the context is used.
    The name may be written as kubectl prints it, sm/NAME.

    Exit codes: 0 it is as wanted, 1 it is not (yet), 2 it is unknown, or the arguments are wrong.
    """
    from fivespot.cli.options import api_version  # noqa: PLC0415 - the help must not import the runtime
    from fivespot.cli.why.ask import ask  # noqa: PLC0415
    from fivespot.cli.why.render import WIDEST, render, to_json  # noqa: PLC0415
    from fivespot.runtime import configure_logging  # noqa: PLC0415

    # Logs go to standard error, as text.
    configure_logging("text")
    found = asyncio.run(ask(qualified(machine, namespace), kubeconfig, context, api_version(capi_machine_api_version)))
    if output == "json":
        click.echo(json.dumps(to_json(found), indent=2, ensure_ascii=False))
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST
        width = min(columns, WIDEST)
        click.echo(render(found, width=width), nl=False, color=colours())
    sys.exit(EXIT[found.settled.value])
