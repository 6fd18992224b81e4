"""The command group: subcommands are imported when they are used, errors become one line and an exit code."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from fivespot import __version__
from fivespot.runtime.errors import ConfigError, FivespotError

__all__ = ["cli", "complain", "leaf", "main"]

EXIT_FAILED = 1
EXIT_CONFIG = 2
"""A flag, a file or a credential cannot be used, or a server is not there: starting again will not help."""

_COMMANDS = {
    "manager": ("fivespot.cli.manager:manager", "Run controllers against a cluster."),
    "crds": ("fivespot.cli.crds.command:crds", "Write the CustomResourceDefinitions."),
    "timeline": ("fivespot.cli.timeline.command:timeline", "Show when a schedule is active, without a cluster."),
    "why": ("fivespot.cli.why.command:why", "Explain one machine: what is wanted, why, and what comes next."),
    "conformance": ("fivespot.cli.conformance:conformance", "Check a schedule provider from outside."),
    "new-provider": ("fivespot.cli.new_provider.command:new_provider", "Write the project of a new schedule provider."),
    "demo": ("fivespot.cli.demo.command:demo", "Watch machines come and go, on this machine alone."),
    "apiserver": ("fivespot.cli.apiserver:apiserver", "Serve the Kubernetes API from memory, for trying things out."),
    "version": ("fivespot.cli.main:version", "Show the versions of fivespot and its time zone data."),
}
"""Name -> where it lives and its line in the help, so that the help imports nothing."""


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _version_text() -> str:
    from fivespot.schedule.zones import TZDATA_RELEASE  # noqa: PLC0415 - only who asks pays for the import

    return f"fivespot {__version__} (tzdata {TZDATA_RELEASE})"


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(_version_text())
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions of fivespot and its time zone data.",
)
def cli() -> None:
    """Give and take Cluster API machines on a schedule."""


@click.command()
def version() -> None:
    """Show the versions of fivespot and its time zone data."""
    click.echo(_version_text())


def main() -> None:
    """Entry point of the console script. Exit codes: 0 done, 1 failed, 2 cannot be used as it is."""
    try:
        cli(prog_name="fivespot")
    except Exception as error:
        problem = leaf(error)
        if not isinstance(problem, FivespotError):
            raise
        sys.exit(complain(problem))


def complain(problem: FivespotError) -> int:
    """Say on one line of standard error what is wrong; returns the exit code."""
    click.echo(f"fivespot: {' '.join(str(problem).split()) or type(problem).__name__}", err=True)
    return EXIT_CONFIG if isinstance(problem, ConfigError) else EXIT_FAILED


def leaf(error: BaseException) -> BaseException:
    """The one error inside nested exception groups, or the group itself when it holds several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
