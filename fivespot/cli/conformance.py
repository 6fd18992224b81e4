"""``fivespot conformance``: checks a schedule provider through the API server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fivespot.runtime import ConfigError, FivespotError

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider
    from fivespot.testing.conformance import ConformanceReport, Restart, RuleResult, Spec, Subject, Timing
__all__ = ["Command", "conformance"]

_COMMAND_TIMEOUT = 120.0
_OUTPUT_SHOWN = 300
_STOPPED = 143
_FILE = click.Path(dir_okay=False, path_type=Path)
_SECONDS = click.FloatRange(min=0, min_open=True, max=3600)


class Command:
    """A shell command of the user's with a time limit, for restarts and flips; its output is shown if it fails.

    :param option: the flag that it comes from, for messages.
    """

    def __init__(self, option: str, text: str) -> None:
        self._option = option
        self._text = text

    async def restart(self) -> None:
        """Run the command.

        :raises ConfigError: it failed.
        """
        await self._run({})

    async def flip(self, namespace: str, name: str, active: bool) -> None:
        """Run the command with ``SCHEDULE_NAMESPACE``, ``SCHEDULE_NAME`` and ``SCHEDULE_ACTIVE`` in its environment.

        :raises ConfigError: it failed.
        """
        await self._run(
            {"SCHEDULE_NAMESPACE": namespace, "SCHEDULE_NAME": name, "SCHEDULE_ACTIVE": str(active).lower()}
        )

    async def _run(self, variables: dict[str, str]) -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            self._text,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **variables},
        )
        try:
            async with asyncio.timeout(_COMMAND_TIMEOUT):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise ConfigError(f"{self._option}: it did not exit within {_COMMAND_TIMEOUT:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            shown = " ".join(output.decode(errors="replace").split())[-_OUTPUT_SHOWN:]
            raise ConfigError(f"{self._option}: exited with {process.returncode}: {shown}")


@click.command(context_settings={"show_default": True})
@click.option("--kubeconfig", metavar="FILE", help="Default: in-cluster credentials, or KUBECONFIG.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one.")
@click.option("--kind", metavar="KIND", help="The provider's kind, such as OfficeHours.")
@click.option(
    "--provider",
    metavar="MODULE:OBJECT",
    help="A provider in Python, such as my_package:WEEKS; it is installed and run for the check.",
)
@click.option("--api-version", metavar="VERSION", help="Served version to use; default the preferred one.")
@click.option("--namespace", metavar="NAME", help="Existing namespace to work in; default a temporary one.")
@click.option(
    "-f",
    "--file",
    type=_FILE,
    metavar="FILE",
    help="Objects of the kind named active, inactive, invalid and soon, and their prerequisites.",
)
@click.option("--spec-active", type=_FILE, metavar="FILE", help="A manifest or a spec that is active now.")
@click.option("--spec-inactive", type=_FILE, metavar="FILE", help="A manifest or a spec that is inactive now.")
@click.option("--spec-invalid", type=_FILE, metavar="FILE", help="A manifest or a spec that is admitted and invalid.")
@click.option(
    "--spec-soon",
    type=_FILE,
    metavar="FILE",
    help="A manifest or a spec that is active until $(SOON), which stands for an instant seconds ahead.",
)
@click.option(
    "--flip-command", metavar="CMD", help="Flips the source that the provider reads; instead of an inactive spec."
)
@click.option("--restart-command", metavar="CMD", help="Restarts the provider; without it the rule restart is skipped.")
@click.option("--settle", type=_SECONDS, default=10.0, metavar="SECONDS", help="Time limit for a verdict.")
@click.option("--steady", type=_SECONDS, default=5.0, metavar="SECONDS", help="Time in which nothing may be written.")
@click.option("--only", multiple=True, metavar="RULE", help="Check this rule; may be given several times.")
@click.option("--skip", multiple=True, metavar="RULE", help="Leave out this rule; may be given several times.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Show each result on standard error as it is known; by default if that is a terminal.",
)
@click.option("--rules", "list_rules", is_flag=True, help="List the rules and exit.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option("--junit", type=_FILE, metavar="FILE", help="Also write the results as JUnit XML.")
@click.pass_context
def conformance(ctx: click.Context, /, **given: Any) -> None:
    """Check a schedule provider, in any language, through the API server.

    Its CustomResourceDefinition must be installed and its controller running; --provider does both. The kinds shipped
    with fivespot need no specs. Exit codes: 0 it conforms, 1 it does not, 2 the check was not possible, 143 a signal
    ended it; all objects of the run are removed then, too.
    """
    if given["list_rules"]:
        _list_rules()
        return
    provider = _provider(given)
    if not given["kind"]:
        raise ConfigError("--kind or --provider is required")
    report = asyncio.run(_until_signal(given, provider))
    if report is None:
        click.echo("stopped; the objects of the run were removed", err=True)
        ctx.exit(_STOPPED)
    if given["junit"] is not None:
        _write(given["junit"], report.to_junit())
    click.echo(json.dumps(report.to_json(), indent=2) if given["output"] == "json" else report.to_text())
    ctx.exit(0 if report.passed else 1)


async def _until_signal(given: dict[str, Any], provider: Provider[Any] | None) -> ConformanceReport | None:
    """Run the kit until SIGTERM or SIGINT, which ends it with everything removed; None then."""
    from fivespot.runtime.manager.entrypoint import stop_on_signals, unless_stopped  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    return await unless_stopped(stop, _check(given, provider))


def _show(result: RuleResult, done: int, total: int) -> None:
    click.echo(f"{done:>3}/{total} {result.rule.id}: {result.outcome.value}", err=True)


async def _check(given: dict[str, Any], provider: Provider[Any] | None) -> ConformanceReport:
    """Connect and run the kit.

    :raises ConfigError: also if the server fails, which says nothing about the provider.
    """
    import structlog  # noqa: PLC0415 - the help must not import the runtime

    from fivespot.runtime import SystemClock, configure_logging, connect  # noqa: PLC0415
    from fivespot.runtime.clock import ThreadOffload, system_random  # noqa: PLC0415
    from fivespot.testing.conformance import MANAGER, Timing, check_provider, with_provider  # noqa: PLC0415

    configure_logging("text", 0)
    # A provider in this process logs every verdict.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    subject = _subject(given)
    timing: Timing = Timing(settle=given["settle"], steady=given["steady"], total=_total(given))
    clock, rng = SystemClock(), system_random()
    try:
        connection = await connect(
            kubeconfig=given["kubeconfig"],
            context=given["context"],
            user_agent=MANAGER,
            field_manager=MANAGER,
            clock=clock,
            rng=rng,
            offload=ThreadOffload(),
        )
        check = partial(
            check_provider,
            client=connection.client,
            clock=clock,
            rng=rng,
            namespace=given["namespace"],
            timing=timing,
            skip=given["skip"],
            only=given["only"],
            progress=_show if given["progress"] or (given["progress"] is None and sys.stderr.isatty()) else None,
        )

        async def work(restart: Restart) -> ConformanceReport:
            return await check(replace(subject, restart=subject.restart or restart))

        async with connection:
            await connection.check()
            if provider is None:
                return await check(subject)
            return await with_provider(
                provider,
                connection.client,
                work,
                clock=clock,
                kubeconfig=given["kubeconfig"],
                context=given["context"],
            )
    except ConfigError:
        raise
    except FivespotError as error:
        raise ConfigError(f"the provider could not be checked: {error}") from error


def _provider(given: dict[str, Any]) -> Provider[Any] | None:
    """Load the provider that ``--provider`` names; its kind is the one to check.

    :raises ConfigError: it names none, several, or one of another kind.
    """
    if not given["provider"]:
        return None
    from .provider_loader import load_providers  # noqa: PLC0415 - the help must not import the kit

    found = load_providers([given["provider"]])
    if len(found) != 1:
        raise ConfigError(f"--provider {given['provider']}: only one provider can be checked at a time")
    if given["kind"] not in (None, found[0].kind):
        raise ConfigError(f"--kind {given['kind']}: the provider's kind is {found[0].kind}")
    given["kind"] = found[0].kind
    return found[0]


def _subject(given: dict[str, Any]) -> Subject:
    """Build the subject from the flags.

    :raises ConfigError: files cannot be read, or a spec is missing.
    """
    from fivespot.testing.conformance import SHIPPED, Samples, Subject, read_samples, soon  # noqa: PLC0415

    kind: str = given["kind"]
    samples = Samples()
    if given["file"] is not None:
        samples = read_samples(_read(given["file"]), source=str(given["file"]), kind=kind)
    specs: dict[str, Spec | None] = {}
    for name in ("active", "inactive", "invalid", "soon"):
        own = _spec(given[f"spec_{name}"], kind)
        specs[name] = own if own is not None else getattr(samples, name)
    flip = Command("--flip-command", given["flip_command"]).flip if given["flip_command"] else None
    restart = Command("--restart-command", given["restart_command"]).restart if given["restart_command"] else None
    if kind in SHIPPED and all(spec is None for spec in specs.values()):
        return replace(SHIPPED[kind], restart=restart, version=given["api_version"] or "")
    active = specs["active"]
    if active is None:
        raise ConfigError(f"--spec-active, or an object active in --file: a spec of {kind} that is active is required")
    return Subject(
        kind=kind,
        active=active,
        inactive=specs["inactive"],
        invalid=specs["invalid"],
        flip=flip,
        boundary=soon(specs["soon"]) if specs["soon"] is not None else None,
        restart=restart,
        prerequisites=samples.prerequisites,
        version=given["api_version"] or "",
    )


def _spec(path: Path | None, kind: str) -> Spec | None:
    from fivespot.testing.conformance import read_spec  # noqa: PLC0415

    return read_spec(_read(path), source=str(path), kind=kind) if path is not None else None


def _total(given: dict[str, Any]) -> float:
    """Limit of the run in seconds: enough for each wait of the longest phases."""
    return 60.0 + 12 * float(given["settle"]) + 4 * float(given["steady"])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--junit {path}: {error.strerror or error}") from error


def _list_rules() -> None:
    from fivespot.testing.conformance import RULES  # noqa: PLC0415

    for rule in RULES:
        need = "" if rule.required else " [recommended]"
        click.echo(f"{rule.id} ({rule.contract}): {rule.title}{need}\n    {rule.fix}")
