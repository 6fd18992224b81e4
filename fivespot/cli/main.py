"""The ``fivespot`` command group: imports subcommands on use, and maps errors to one line and an exit code."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module

import click
from click.shell_completion import get_completion_class

from fivespot import __version__
from fivespot.runtime import ConfigError, FivespotError

__all__ = ["cli", "complain", "leaf", "main"]

EXIT_FAILED = 1
EXIT_CONFIG = 2
"""Exit code for a flag, file or credential that cannot be used: a restart does not help."""

_COMMANDS = {
    "manager": ("fivespot.cli.manager:manager", "Run controllers against a cluster."),
    "crds": ("fivespot.cli.crds.command:crds", "Write the CustomResourceDefinitions."),
    "rbac": ("fivespot.cli.rbac:rbac", "Write ClusterRoles without wildcards, from what a cluster serves."),
    "timeline": ("fivespot.cli.timeline.command:timeline", "Show when a schedule is active, without a cluster."),
    "override": ("fivespot.cli.override.command:override", "Switch a schedule on or off by hand, for a time."),
    "why": ("fivespot.cli.why.command:why", "Explain one machine: what is wanted, why, and what comes next."),
    "conformance": ("fivespot.cli.conformance:conformance", "Check a schedule provider against the contract."),
    "new-provider": ("fivespot.cli.new_provider.command:new_provider", "Create a project for a new schedule provider."),
    "demo": ("fivespot.cli.demo.command:demo", "Watch machines come and go, on this computer alone."),
    "apiserver": (
        "fivespot.cli.apiserver:apiserver",
        "Serve the Kubernetes API from memory, for tests.",
    ),
    "completion": ("fivespot.cli.main:completion", "Print the completion script of a shell."),
    "version": ("fivespot.cli.main:version", "Show the versions of fivespot and its time zone data."),
}
"""Name -> import path and line in the help, so that the help imports nothing."""


class _LazyGroup(click.Group):
    """A command group that imports a subcommand when it is used, and suggests the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            near = difflib.get_close_matches(cmd_name, _COMMANDS, n=1)
            ctx.fail(f"there is no command {cmd_name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _version_text() -> str:
    from fivespot.schedule.zones import TZDATA_RELEASE  # noqa: PLC0415 - imported only when the version is shown

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
    """Create and delete Cluster API machines on a schedule.

    Shell completion: fivespot completion --help
    """


@click.command()
def version() -> None:
    """Show the versions of fivespot and its time zone data."""
    click.echo(_version_text())


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: add to ~/.bashrc            eval "$(fivespot completion bash)"
    zsh:  add to ~/.zshrc             eval "$(fivespot completion zsh)"
    fish: run once                    fivespot completion fish > ~/.config/fish/completions/fivespot.fish
    """
    script = get_completion_class(shell)
    assert script is not None  # click has one for each shell above.
    click.echo(script(cli, {}, "fivespot", "_FIVESPOT_COMPLETE").source())


def main() -> None:
    """Entry point of the console script. Exit codes: 0 success, 1 failure, 2 unusable input."""
    try:
        cli(prog_name="fivespot")
    except Exception as error:
        problem = leaf(error)
        if not isinstance(problem, FivespotError):
            raise
        sys.exit(complain(problem))


def complain(problem: FivespotError) -> int:
    """Write an error as one line to standard error; returns the exit code."""
    click.echo(f"fivespot: {' '.join(str(problem).split()) or type(problem).__name__}", err=True)
    return EXIT_CONFIG if isinstance(problem, ConfigError) else EXIT_FAILED


def leaf(error: BaseException) -> BaseException:
    """The single error inside nested exception groups, or the group itself if it holds several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
