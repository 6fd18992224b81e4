"""``fivespot crds``: its flags."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fivespot.runtime import ConfigError

__all__ = ["crds"]

_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write one file per kind into this directory, instead of all to standard output.",
)
@click.option(
    "--provider",
    multiple=True,
    metavar="MODULE:OBJECT",
    help="Write the kind of this provider, such as my_package:WEEKS, instead; may be given several times.",
)
@click.option("--rbac", is_flag=True, help="Write the roles that the providers need instead of the definitions.")
@click.option(
    "--service-account",
    metavar="NAMESPACE/NAME",
    default="5spot-system/5spot-controller",
    show_default=True,
    help="ServiceAccount that --rbac binds the roles to.",
)
def crds(output: Path | None, provider: tuple[str, ...], rbac: bool, service_account: str) -> None:
    """Write the CustomResourceDefinitions of fivespot's kinds as YAML.

    To install them: fivespot crds | kubectl apply --server-side -f -
    """
    from fivespot.cli.provider_loader import load_providers  # noqa: PLC0415
    from fivespot.runtime.crd import SchemaError  # noqa: PLC0415 - the help must not import the models

    from .definitions import render, render_rbac, write  # noqa: PLC0415

    if not _ACCOUNT.fullmatch(service_account):
        raise ConfigError(f"--service-account: {service_account!r} is not NAMESPACE/NAME")
    if rbac and output is not None:
        raise ConfigError("--rbac writes to standard output; remove --output")
    providers = load_providers(provider)
    if rbac:
        click.echo(render_rbac(providers, account=service_account), nl=False)
        return
    try:
        if output is None:
            click.echo("---\n".join(render(providers).values()), nl=False)
            return
        written = write(output, providers)
    except SchemaError as error:
        raise ConfigError(f"the definition cannot be generated: {error}") from error
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror or error}") from error
    for path in written:
        click.echo(path)
