"""Schedules for the tests of the timeline, as files hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from fivespot.cli.main import cli
from fivespot.cli.timeline.forecast import Forecast
from fivespot.cli.timeline.schedules import ProviderKinds, Schedule, find_schedules
from fivespot.cli.timeline.simulate import Simulation, prepare

Json = dict[str, Any]

OFFICE: Json = {"timezone": "Europe/Berlin", "windows": [{"days": ["mon-fri"], "start": "08:00", "end": "18:30"}]}
NIGHT: Json = {"timezone": "Europe/Berlin", "windows": [{"days": ["mon-sun"], "start": "22:00", "end": "03:30"}]}


def schedule(kind: str, name: str, spec: Json, **more: Any) -> Json:
    """A schedule object."""
    return {
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
        **more,
    }


def timebased(name: str = "hours", spec: Json = OFFICE, **more: Any) -> Json:
    """A TimeBasedSpotSchedule."""
    return schedule("TimeBasedSpotSchedule", name, spec, **more)


def manual(name: str, spec: Json, **more: Any) -> Json:
    """A ManualSchedule."""
    return schedule("ManualSchedule", name, spec, **more)


def simulate(objects: Sequence[Json], start: datetime) -> tuple[Simulation, Schedule]:
    """A simulation of the objects, and the first of them."""
    schedules = find_schedules(objects)
    known = ProviderKinds(())
    return Simulation(schedules, lambda each: prepare(each, known.provider(each)), start), schedules[0]


def forecast(objects: Sequence[Json], start: datetime) -> Forecast:
    """The forecast of the first of the objects."""
    simulation, first = simulate(objects, start)
    return simulation.forecast(first)


def write(path: Path, *objects: Json) -> Path:
    """A file with these objects, one JSON document each."""
    path.write_text("\n---\n".join(json.dumps(body) for body in objects), encoding="utf-8")
    return path


def run(*arguments: str, given: str | None = None) -> Result:
    """`fivespot timeline` with these arguments; what it raises on purpose is in ``exception``."""
    return CliRunner().invoke(cli, ["timeline", *arguments], input=given)


def shown(*arguments: str, given: str | None = None) -> str:
    """Return the output of a run that has to succeed."""
    result = run(*arguments, given=given)
    assert result.exit_code == 0, result.exception or result.output
    return result.output
