"""``fivespot demo``: its flags."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path
from typing import Final

import click

from fivespot.api.types import duration_seconds
from fivespot.cli.extras import require_modules

__all__ = ["demo"]

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return float(duration_seconds(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _number(ctx: click.Context, param: click.Parameter, value: float) -> float:
    # FloatRange of click accepts nan.
    if isnan(value):
        raise click.BadParameter("nan is not a number")
    return value


@click.command(context_settings={"show_default": True})
@click.option("--headless", is_flag=True, help="Write lines instead of the full-screen view.")
@click.option(
    "--speed",
    type=click.FloatRange(1, 3600),
    callback=_number,
    default=60.0,
    metavar="N",
    help="Speed of the simulated clock relative to real time.",
)
@click.option(
    "--for",
    "seconds",
    callback=_seconds,
    metavar="TIME",
    help="Real time to run, such as 40s or 5m; default: until Ctrl-C.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port for kubectl; 0: a free one.")
@click.option("--kubeconfig", type=_FILE, metavar="FILE", help="Write the kubeconfig here; it is removed at the end.")
@click.option("--log", type=_FILE, metavar="FILE", help="Write the controllers' logs here.")
def demo(
    headless: bool, speed: float, seconds: float | None, port: int, kubeconfig: Path | None, log: Path | None
) -> None:
    """Watch machines come and go: the whole system in one process.

    It runs an API server in memory on 127.0.0.1, a simulated Cluster API, the manager, three schedules and six
    machines. The simulated day begins on a Monday at 07:50 in Berlin, and a working day takes ten minutes. The space
    bar skips to the next event. kubectl and fivespot join in with the kubeconfig that is shown.

    Ctrl-C ends it with exit code 0 and leaves nothing behind.
    """
    view = not headless and sys.stdout.isatty()
    if view:
        require_modules("cel_expr_python", "jsonpatch", "rich")
    else:
        require_modules("cel_expr_python", "jsonpatch")

    from .session import DemoOptions, run_demo  # noqa: PLC0415 - the help must not import all of the system

    path = kubeconfig.absolute() if kubeconfig is not None else None
    run_demo(DemoOptions(view=view, speed=speed, seconds=seconds, port=port, kubeconfig=path, log=log))
