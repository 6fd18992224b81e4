"""``fivespot timeline``: its flags and outputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fivespot.cli.console import colours, shows
from fivespot.runtime import ConfigError
from fivespot.runtime.objects import rfc3339

if TYPE_CHECKING:
    from fivespot.cli.timeline.forecast import Forecast, Period
    from fivespot.cli.timeline.schedules import Schedule

__all__ = ["timeline"]


@click.command(context_settings={"show_default": True})
@click.option(
    "-f",
    "--filename",
    "filenames",
    metavar="FILE",
    multiple=True,
    required=True,
    help="YAML or JSON with one schedule or several; - is standard input. Repeatable.",
)
@click.option("--from", "start", metavar="T", default="now", help="Start of the period.")
@click.option("--to", "end", metavar="T", default="+14d", help="End of the period; a distance counts from --from.")
@click.option("--zone", metavar="ZONE", help="Time zone to read and show times in; default that of the schedule.")
@click.option("--name", metavar="[KIND/]NAME", help="The schedule to show, if there are several.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.option(
    "--png",
    metavar="FILE",
    help="Draw the period as a picture, too; - is standard output, in place of the text.",
)
@click.option("--ics", metavar="FILE", help="Write the active times as a calendar (iCalendar), too; - as for --png.")
@click.option(
    "--provider",
    "providers",
    metavar="MODULE:OBJECT",
    multiple=True,
    help="A provider of a kind that does not come with fivespot. Repeatable.",
)
def timeline(
    filenames: tuple[str, ...],
    start: str,
    end: str,
    zone: str | None,
    name: str | None,
    output: str,
    png: str | None,
    ics: str | None,
    providers: tuple[str, ...],
) -> None:
    """Show when a schedule is active over a period, without a cluster.

    T is an instant (2027-03-28T01:00:00Z), a date or a time of day in the zone (2027-03-28, 2027-03-28T02:30), now, or
    a distance (+7d; s, m, h, d or w).
    """
    # The help must not import the models.
    from fivespot.cli.timeline.documents import STDIN, read_objects  # noqa: PLC0415
    from fivespot.cli.timeline.margins import without_margins  # noqa: PLC0415
    from fivespot.cli.timeline.period import read_period, read_zone  # noqa: PLC0415
    from fivespot.cli.timeline.schedules import (  # noqa: PLC0415
        ProviderKinds,
        find_schedules,
        listed,
        select,
        zone_name,
    )
    from fivespot.cli.timeline.simulate import Simulation, prepare  # noqa: PLC0415
    from fivespot.cli.timeline.text import ASCII, UNICODE, render  # noqa: PLC0415
    from fivespot.runtime import SystemClock  # noqa: PLC0415

    if png == ics == "-":
        raise ConfigError("--png - and --ics - both write to standard output: name a file for one of them")
    now = SystemClock().now()
    known = ProviderKinds(providers)
    schedules = find_schedules(read_objects(filenames))
    where = ", ".join("standard input" if path == STDIN else path for path in filenames)
    chosen = select(schedules, name, where=where)
    if len(chosen) > 1 and (output == "json" or png or ics):
        raise ConfigError(
            f"{where} holds {len(chosen)} schedules, and this output is for one: choose with --name: {listed(chosen)}"
        )
    for schedule in chosen:
        # Problems of all schedules are reported before anything is shown.
        prepare(schedule, known.provider(schedule))
    plain = without_margins(schedules)
    for number, schedule in enumerate(chosen):
        zoned = read_zone(zone) if zone else read_zone(zone_name(schedule, schedules), f"{schedule}: spec.timezone")
        period = read_period(start, end, zoned, now)
        simulation = Simulation(schedules, lambda each: prepare(each, known.provider(each)), period.start)
        forecast = simulation.forecast(schedule)
        forecast.changes(period.end)
        core = None
        if plain is not None:
            # The same without lead and lag time, which the outputs tell apart.
            bare = Simulation(plain, lambda each: prepare(each, known.provider(each)), period.start)
            core = bare.forecast(plain[schedules.index(schedule)])
        if png:
            from fivespot.cli.timeline.png import draw  # noqa: PLC0415

            _write("--png", png, draw(schedule.title, forecast, period, zoned, core=core))
        if ics:
            from fivespot.cli.timeline.ics import export  # noqa: PLC0415

            _write("--ics", ics, export(schedule.title, schedule.identity, forecast, period, now, core=core))
        if "-" in (png, ics):
            continue
        if output == "json":
            click.echo(_as_json(schedule, forecast, period, core))
        else:
            click.echo("\n" if number else "", nl=False)
            marks = UNICODE if shows(sys.stdout, UNICODE.all) else ASCII
            notes = simulation.notes(schedule, period)
            text = render(schedule.title, forecast, period, zoned, core=core, notes=notes, marks=marks)
            click.echo(text, nl=False, color=colours())


def _as_json(schedule: Schedule, forecast: Forecast, period: Period, core: Forecast | None) -> str:
    from fivespot.cli.timeline.margins import margins  # noqa: PLC0415

    # With a fraction of a second where there is one: overrides may have it.
    changes = [
        {"at": rfc3339(change.at, fraction=True), "active": change.active} for change in forecast.changes(period.end)
    ]
    named = {"kind": schedule.kind, "namespace": schedule.namespace, "name": schedule.name}
    found: dict[str, object] = {**named, "initialActive": forecast.initial, "transitions": changes}
    if core is not None:
        found["leadAndLag"] = [
            {"start": rfc3339(start, fraction=True), "end": rfc3339(end, fraction=True)}
            for start, end in margins(forecast.intervals(period), core.intervals(period))
        ]
    return json.dumps(found, indent=2)


def _write(option: str, path: str, content: bytes) -> None:
    if path == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}") from error
