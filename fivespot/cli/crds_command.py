"""``fivespot crds``: writes the CustomResourceDefinitions."""

from __future__ import annotations

from pathlib import Path

import click

from fivespot.runtime.errors import ConfigError

__all__ = ["crds"]


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write one file per kind into this folder, instead of all to standard output.",
)
def crds(output: Path | None) -> None:
    """Write the CustomResourceDefinitions of fivespot's kinds as YAML.

    To install them: fivespot crds | kubectl apply --server-side -f -
    """
    from .crds import render, write  # noqa: PLC0415 - the help must not import the models

    if output is None:
        click.echo("---\n".join(render().values()), nl=False)
        return
    try:
        written = write(output)
    except OSError as error:
        raise ConfigError(f"--output {output}: {error.strerror or error}") from error
    for path in written:
        click.echo(path)
