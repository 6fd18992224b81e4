"""The demo's model of its objects, its messages about changes, and its drawings."""

from __future__ import annotations

import io
import json
from datetime import datetime
from typing import Any

import pytest
from rich.console import Console

from fivespot.cli.demo.board import Board, in_one_zone
from fivespot.cli.demo.feed import Feed
from fivespot.cli.demo.sample import HOURS, NODES, SCHEDULED_MACHINES
from fivespot.cli.demo.views import BoardView
from fivespot.runtime import Change, ChangeType, Object, Resource
from fivespot.testing.clusterapi.core import MACHINES

Json = dict[str, Any]


class Told:
    """A board, what it said, and a way to change what it sees."""

    def __init__(self) -> None:
        self.feed = Feed(lambda: "Mon 08:00:00")
        self.board = Board(self.feed.saw, lambda instant: f"{instant:%H:%M}")

    def see(self, resource: Resource, name: str, *, deleted: bool = False, **fields: Any) -> None:
        metadata = {"name": name, "uid": "u1", "resourceVersion": "1", **fields.pop("metadata", {})}
        if resource.namespaced:
            metadata["namespace"] = "default"
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
        kind = ChangeType.DELETED if deleted else ChangeType.MODIFIED
        self.board.changed(resource, Change(kind, Object.parse(json.dumps(body).encode())))

    @property
    def lines(self) -> list[str]:
        return [f"{line.about} {line.text}" for line in self.feed.lines]


def conditions(**statuses: str) -> list[Json]:
    return [{"type": type_, "status": status, "reason": "R", "message": "m"} for type_, status in statuses.items()]


@pytest.fixture
def told() -> Told:
    return Told()


def see_everything(told: Told) -> None:
    told.see(
        HOURS,
        "office-hours",
        status={
            "active": True,
            "nextTransitionTime": "2026-11-23T17:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "reason": "WindowOpen", "message": "closes at six"}],
        },
    )
    told.see(
        SCHEDULED_MACHINES,
        "web-1",
        spec={"schedule": {"name": "office-hours"}},
        status={
            "phase": "Active",
            "message": "waiting",
            "conditions": conditions(Ready="False", Scheduled="True", Stalled="Unknown", UpToDate="True"),
        },
    )
    told.see(MACHINES, "web-1", status={"phase": "Running", "nodeRef": {"name": "node-1"}})
    told.see(NODES, "node-1", status={"conditions": conditions(Ready="True")})


def test_each_state_is_said_once_however_often_it_is_written(told: Told) -> None:
    see_everything(told)
    see_everything(told)
    assert told.lines == [
        "TimeBasedSpotSchedule/office-hours active (WindowOpen): closes at six",
        "ScheduledMachine/web-1 Active (R): waiting",
        "Machine/web-1 Running",
        "Node/node-1 ready",
    ]


def test_why_may_change_without_a_word_and_is_on_the_board(told: Told) -> None:
    see_everything(told)
    told.see(
        SCHEDULED_MACHINES,
        "web-1",
        spec={"schedule": {"name": "office-hours"}},
        status={"phase": "Active", "message": "still waiting", "conditions": conditions(Ready="False")},
    )
    assert len(told.lines) == 4
    assert told.board.machines()[0].message == "still waiting"


def test_what_has_no_status_yet_is_not_spoken_of(told: Told) -> None:
    told.see(HOURS, "office-hours")
    told.see(SCHEDULED_MACHINES, "web-1", spec={"schedule": {"name": "office-hours"}})
    assert told.lines == []
    assert told.board.schedules()[0].active is None


def test_what_goes_leaves_the_board_and_may_come_again(told: Told) -> None:
    see_everything(told)
    told.see(MACHINES, "web-1", metadata={"deletionTimestamp": "2026-11-23T17:00:00Z"})
    told.see(MACHINES, "web-1", deleted=True)
    assert told.board.machines()[0].machine == ""
    told.see(MACHINES, "web-1", status={"phase": "Running"})
    assert told.lines[-3:] == ["Machine/web-1 Deleting", "Machine/web-1 gone", "Machine/web-1 Running"]


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("height", [10, 24, 50])
def test_the_picture_fits_on_the_screen_and_holds_what_matters(told: Told, width: int, height: int) -> None:
    see_everything(told)
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    view = BoardView(
        told.board,
        told.feed,
        clock=lambda: "Monday 08:00",
        local=lambda instant: f"{instant:%H:%M}",
        footer="Ctrl-C ends it",
        console=console,
    )
    console.print(view.picture())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= max(height, 14)
    assert "Ctrl-C ends it" in lines[-1]
    if width >= 80:
        assert all(text in shown for text in ("Monday 08:00", "office-hours", "17:00", "Running", "web-1"))
        assert "+Scheduled -Ready ?Stalled" in shown
        assert "UpToDate" not in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("closes Mon 2026-11-30 16:00 America/New_York = 2026-11-30T21:00:00Z", "closes 21:00"),
        ("until 2026-11-30T21:00:00Z; then", "until 21:00; then"),
        ("opens Sun 2027-03-28 02:30 Europe/Berlin (clock change) = 2027-03-28T01:00:00Z", "opens 01:00"),
        ("no instant: 2026-99-99T21:00:00Z", "no instant: 2026-99-99T21:00:00Z"),
        ("", ""),
    ],
)
def test_instants_in_messages_are_shown_in_one_zone(text: str, expected: str) -> None:
    assert in_one_zone(text, lambda instant: f"{instant:%H:%M}") == expected


def test_an_instant_is_read_with_its_offset(told: Told) -> None:
    see_everything(told)
    following = told.board.schedules()[0].next
    assert following == datetime.fromisoformat("2026-11-23T18:00:00+01:00")
