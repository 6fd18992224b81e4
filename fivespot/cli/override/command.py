"""``fivespot override``: its flags and output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from fivespot.runtime import ConfigError

if TYPE_CHECKING:
    from fivespot.runtime import Connection, Resource

    from .schedule import LiveSchedule

__all__ = ["override"]

T = TypeVar("T")

_DEFAULT_NAME: Final = "by-hand"
_TIMEOUT: Final = 30.0


def _connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one."),
        click.option(
            "--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, in-cluster credentials, or ~/.kube/config."
        ),
        click.option("-n", "--namespace", metavar="NAME", help="Namespace; default that of the context."),
    ):
        command = option(command)
    return command


@click.group()
def override() -> None:
    """Decide by hand what a schedule says, for a limited time.

    An override is an entry of spec.overrides. It ends by itself; then the schedule decides again.

    \b
    fivespot override set tbss/office-hours --on --until 20:00 --reason "release 4.2"
    fivespot override set tbss/office-hours --off --for 2h
    fivespot override list
    fivespot override clear tbss/office-hours
    """


@override.command(name="set", context_settings={"show_default": True})
@click.argument("schedule", metavar="KIND/NAME")
@click.option("--on/--off", "active", default=None, help="Machines exist, or do not, while the override holds.")
@click.option("--for", "duration", metavar="TIME", help="How long it holds, such as 90m, 2h or 3d.")
@click.option(
    "--until",
    metavar="TIME",
    help='When it ends: 20:00, "fri 20:00", "2027-03-12 20:00", an instant, nextTransition or forever.  '
    "[default: nextTransition]",
    show_default=False,
)
@click.option("--timezone", metavar="ZONE", help="Zone of --until; default that of the schedule.")
@click.option("--reason", metavar="TEXT", default="", help="Shown in the message of the schedule.", show_default=False)
@click.option(
    "--name", default=_DEFAULT_NAME, metavar="NAME", help="Name of the entry; an entry of that name is replaced."
)
@click.option("--force", is_flag=True, help="Write it even if it changes nothing.")
@click.option("--dry-run", is_flag=True, help="Show the effect and write nothing.")
@_connection_options
def set_override(
    schedule: str,
    *,
    active: bool | None,
    duration: str | None,
    until: str | None,
    timezone: str | None,
    reason: str,
    name: str,
    force: bool,
    dry_run: bool,
    **connection: str | None,
) -> None:
    """Add an override, or replace the one of its name.

    Without --for and --until it ends at the next transition of the schedule itself. To keep machines beyond the end
    of a window give a later end: --on --until 20:00.

    Only this entry is written, by server-side apply, so overrides of other people and of a Git repository stay.
    """
    if active is None:
        raise ConfigError("--on or --off is required")
    if duration is not None and until is not None:
        raise ConfigError("--for and --until exclude each other")

    async def work(server: Connection, found: LiveSchedule) -> None:
        from fivespot.cli.server_time import server_now  # noqa: PLC0415
        from fivespot.cli.timeline.period import read_zone  # noqa: PLC0415
        from fivespot.providers.sdk import Override  # noqa: PLC0415

        from .effect import predict  # noqa: PLC0415
        from .entries import apply_entry, client_side_owner  # noqa: PLC0415
        from .instants import read_duration, read_until  # noqa: PLC0415

        now = await server_now(server)
        zone = read_zone(timezone, "--timezone") if timezone is not None else found.zone
        end = (
            now + read_duration(duration) if duration is not None else read_until(until or "nextTransition", now, zone)
        )
        entry = Override(name, active, now, end, reason)
        effect = predict(found, entry, now, zone)
        if not (effect.changes or force):
            click.echo(f"{effect.sentence}. Not written; --force writes it all the same.")
            return
        await apply_entry(server.client, found, entry, dry_run=dry_run)
        click.echo(f"{effect.sentence}.{' Not written (dry run).' if dry_run else ''}")
        if client_side_owner(found.body):
            click.echo(
                f"warning: {found.label} comes from a manifest with overrides by client-side kubectl apply: "
                "the next such apply removes this one. Use kubectl apply --server-side there.",
                err=True,
            )

    _run(schedule, connection, work)


@override.command(name="clear")
@click.argument("schedule", metavar="KIND/NAME")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Entry to remove; may be given several times.")
@click.option("--all", "everything", is_flag=True, help="Remove all entries, whoever made them.")
@_connection_options
def clear(schedule: str, *, names: tuple[str, ...], everything: bool, **connection: str | None) -> None:
    """Remove overrides; by default those that this command made."""

    async def work(server: Connection, found: LiveSchedule) -> None:
        from fivespot.cli.server_time import server_now  # noqa: PLC0415

        from .effect import describe  # noqa: PLC0415
        from .entries import FIELD_MANAGER, owners, remove_entries  # noqa: PLC0415

        present = [str(entry.get("name")) for entry in found.entries]
        managers = owners(found.body)
        if missing := [name for name in names if name not in present]:
            raise ConfigError(
                f"{found.label} has no override {', '.join(missing)}; it has: {', '.join(present) or 'none'}"
            )
        ours = [name for name in present if any(m.startswith(FIELD_MANAGER) for m in managers.get(name, ()))]
        chosen = present if everything else list(names) or ours
        if not chosen:
            others = f"; --all or --name removes: {', '.join(present)}" if present else ""
            click.echo(f"{found.label} has no override made by this command{others}")
            return
        left = await remove_entries(server.client, found, chosen)
        now = await server_now(server)
        click.echo(f"Removed override {', '.join(chosen)}. {describe(left, left.overrides, now)}.")
        for name in chosen:
            foreign = [m for m in managers.get(name, ()) if not m.startswith(FIELD_MANAGER)]
            if foreign:
                click.echo(f"warning: {', '.join(foreign)} wrote override {name} and may add it again", err=True)

    _run(schedule, connection, work)


@override.command(name="list")
@click.argument("schedule", metavar="[KIND[/NAME]]", required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_connection_options
def list_overrides(schedule: str | None, *, all_namespaces: bool, output: str, **connection: str | None) -> None:
    """List overrides with their state and end, of one schedule or of all."""
    rows = asyncio.run(_rows(schedule, connection, all_namespaces=all_namespaces))
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
    elif rows:
        click.echo(_table(rows), nl=False)
    else:
        click.echo("no overrides")


async def _rows(
    schedule: str | None, connection: dict[str, str | None], *, all_namespaces: bool
) -> list[dict[str, Any]]:
    from .entries import owners  # noqa: PLC0415
    from .schedule import find_kind, list_schedules, served_kinds  # noqa: PLC0415

    kind, _, name = (schedule or "").partition("/")

    async def read(server: Connection) -> list[dict[str, Any]]:
        rows = []
        kinds = await served_kinds(server.client)
        resources: list[Resource] = (
            [find_kind(kinds, kind)] if kind else sorted((k.resource for k in kinds), key=lambda r: r.kind)
        )
        namespace = "" if all_namespaces else connection["namespace"] or server.namespace
        for resource in resources:
            for found in await list_schedules(server.client, resource, namespace):
                if name in ("", found.key.name):
                    managers = owners(found.body)
                    rows += [_row(found, entry, managers) for entry in found.entries]
        return rows

    async with _connected(connection) as server:
        return await _limited(server, read(server))


def _row(found: LiveSchedule, entry: dict[str, Any], managers: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    reports = found.status.get("overrides")
    report = next((r for r in reports or () if isinstance(r, dict) and r.get("name") == entry.get("name")), {})
    return {
        "namespace": found.key.namespace,
        "schedule": found.label,
        "name": entry.get("name"),
        "active": entry.get("active"),
        "state": report.get("state"),
        "from": entry.get("from") or report.get("startedAt"),
        "until": report.get("endsAt") or entry.get("until"),
        "reason": entry.get("reason"),
        "managers": list(managers.get(str(entry.get("name")), ())),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    columns = ("namespace", "schedule", "name", "active", "state", "from", "until", "managers", "reason")
    lines = [[column.upper() for column in columns]]
    for row in rows:
        shown = {**row, "active": "on" if row["active"] else "off", "managers": ",".join(row["managers"])}
        lines.append(["" if shown[column] is None else str(shown[column]) for column in columns])
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "".join("   ".join(map(str.ljust, line, widths)).rstrip() + "\n" for line in lines)


def _run(
    schedule: str,
    connection: dict[str, str | None],
    work: Callable[[Connection, LiveSchedule], Awaitable[None]],
) -> None:
    """Read the schedule that a person names, and work on it."""
    kind, slash, name = schedule.partition("/")
    if not (kind and slash and name):
        raise ConfigError(f"{schedule!r} is not KIND/NAME, such as tbss/office-hours")

    async def find_and_work(server: Connection) -> None:
        from fivespot.runtime import Key  # noqa: PLC0415

        from .schedule import find_kind, read_schedule, served_kinds  # noqa: PLC0415

        resource = find_kind(await served_kinds(server.client), kind)
        key = Key(connection["namespace"] or server.namespace, name)
        await work(server, await read_schedule(server.client, resource, key))

    async def main() -> None:
        async with _connected(connection) as server:
            await _limited(server, find_and_work(server))

    asyncio.run(main())


@asynccontextmanager
async def _connected(options: dict[str, str | None]) -> AsyncIterator[Connection]:
    from fivespot import __version__  # noqa: PLC0415
    from fivespot.runtime import SystemClock, configure_logging, connect  # noqa: PLC0415
    from fivespot.runtime.clock import ThreadOffload, system_random  # noqa: PLC0415

    configure_logging("text")
    connection = await connect(
        kubeconfig=options["kubeconfig"],
        context=options["context"],
        user_agent=f"fivespot/{__version__} (override)",
        clock=SystemClock(),
        rng=system_random(),
        offload=ThreadOffload(),
    )
    async with connection:
        await connection.check()
        yield connection


async def _limited(server: Connection, work: Awaitable[T]) -> T:
    """Await the requests of a command.

    :raises ConfigError: they take too long.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await work
    except TimeoutError as error:
        raise ConfigError(f"{server.server} did not answer within {_TIMEOUT:g} s") from error
