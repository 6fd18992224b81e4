"""``fivespot crds``: writes the CustomResourceDefinitions, and the rights of providers."""

from __future__ import annotations

import re
from pathlib import Path

import click

from fivespot.runtime.errors import ConfigError

__all__ = ["crds"]

_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write one file per kind into this folder, instead of all to standard output.",
)
@click.option(
    "--provider",
    multiple=True,
    metavar="MODULE:OBJECT",
    help="The kind of this provider instead of fivespot's own, such as my_package:WEEKS; may be given several times.",
)
@click.option("--rbac", is_flag=True, help="The roles that the providers need, instead of the definitions.")
@click.option(
    "--service-account",
    metavar="NAMESPACE/NAME",
    default="5spot-system/5spot-controller",
    show_default=True,
    help="Whom --rbac binds them to.",
)
def crds(output: Path | None, provider: tuple[str, ...], rbac: bool, service_account: str) -> None:
    """Write the CustomResourceDefinitions of fivespot's kinds as YAML.

    To install them: fivespot crds | kubectl apply --server-side -f -
    """
    from fivespot.cli.provider_loader import load_providers  # noqa: PLC0415
    from fivespot.runtime.crd import SchemaError  # noqa: PLC0415 - the help must not import the models

    from .definitions import render, render_rights, write  # noqa: PLC0415

    if not _ACCOUNT.fullmatch(service_account):
        raise ConfigError(f"--service-account: {service_account!r} is no namespace/name")
    if rbac and output is not None:
        raise ConfigError("--rbac writes to standard output; leave --output out")
    providers = load_providers(provider)
    if rbac:
        click.echo(render_rights(providers, account=service_account), nl=False)
        return
    try:
        if output is None:
            click.echo("---\n".join(render(providers).values()), nl=False)
            return
        written = write(output, providers)
    except SchemaError as error:
        raise ConfigError(f"no definition can be made: {error}") from error
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror or error}") from error
    for path in written:
        click.echo(path)
