"""``fivespot new-provider``: the project of a schedule provider, ready to be changed."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["new_provider"]


@click.command()
@click.argument("kind", metavar="NAME")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The project's folder, new or empty; default after the name, such as ./office-hours-provider.",
)
def new_provider(kind: str, output: Path | None) -> None:
    """Write the project of a new schedule provider.

    NAME is the kind of its schedules, such as OfficeHours. The project has a model, a decision, tests, manifests, a
    Containerfile and a README that says what to do next; its tests pass as it is.
    """
    from .project import name_project, write_project  # noqa: PLC0415 - the help needs none of it

    names = name_project(kind)
    folder = output if output is not None else Path(names.slug)
    for path in write_project(names, folder):
        click.echo(path)
    click.echo(f"next: cd {folder}; pytest (and see README.md)", err=True)
