"""Output for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click
import pytest

from fivespot.cli.why.command import EXIT
from fivespot.cli.why.explain import Settled, explain
from fivespot.cli.why.judge import Evaluated
from fivespot.cli.why.live import Unread
from fivespot.cli.why.render import render, to_json
from fivespot.contract import Display, Resolved
from fivespot.controllers.scheduledmachine.snapshot import Slot, Snapshot
from fivespot.runtime import GroupKind, Key, Object
from unit.controllers.build import (
    BLIND,
    BOOTSTRAP,
    DOWN,
    LOST,
    at,
    child,
    entries,
    judged,
    ready_machine,
    snapshot,
    spec,
    status,
    stored_status,
)

PLURALS = {
    GroupKind(
        "spotschedules.5spot.finos.org", "TimeBasedSpotSchedule"
    ): "timebasedspotschedules.spotschedules.5spot.finos.org"
}


def judgement(s: Snapshot, *, provider: Mapping[str, Any] | None = None, unread: tuple[Unread, ...] = ()) -> Evaluated:
    plan, stored = judged(s)
    body = {"metadata": {"name": "hours", "uid": "u", "resourceVersion": "1"}, "status": dict(provider or {})}
    found = Object.parse(json.dumps(body).encode()) if provider is not None else None
    return Evaluated(s, plan, stored, {}, found, PLURALS, unread)


def text(j: Evaluated) -> str:
    return click.unstyle(render(explain(j)))


GRACE = """\
team-a/web-1 is on the way down: the machine is kept until 2026-11-30T09:01:00Z (gracefulShutdownTimeout), then drained

Wanted     down (ScheduleInactive): TimeBasedSpotSchedule/hours says that the machine is not wanted,
           since 2026-11-30T08:00:00Z (60 min ago)
Decided by   spec.killSwitch: off
             Cluster prod: exists
             spec.enabled: true
           * TimeBasedSpotSchedule/hours: not active
Schedule   TimeBasedSpotSchedule/hours is not active since 2026-11-30T08:56:00Z (4 min ago)
           (WindowClosed: closed)
State      ShuttingDown (GracePeriodActive); node node-1: the machine is kept until
           2026-11-30T09:01:00Z (gracefulShutdownTimeout), then drained
Next       2026-11-30T09:01:00Z (in 60 s): the grace period ends: the machine is drained and deleted
           2026-11-30T17:00:00Z (in 8 h): TimeBasedSpotSchedule/hours begins: the machine is created
"""


def grace() -> Evaluated:
    begun = status(
        active=False,
        phase="ShuttingDown",
        shutdownRequestedTime=at(minutes=4),
        conditions=entries(("Scheduled", "False", "ScheduleInactive"), ("Ready", "False", "GracePeriodActive")),
    )
    resolution = Resolved(False, Display("WindowClosed", "closed", last_transition_time=at(minutes=4)))
    s = snapshot(resolution, machine=ready_machine(), stored=stored_status(begun))
    return judgement(s, provider={"nextTransitionTime": at(hours=-8)})


def test_the_answer_comes_first_and_then_what_it_stands_on() -> None:
    assert text(grace()) == GRACE


def test_what_is_missing_comes_with_commands_to_copy_and_what_was_not_read_last() -> None:
    unread = Unread("get", "machines.cluster.x-k8s.io", Key("team-a", "web-1"), "403: no", denied=True)
    lines = text(judgement(snapshot(LOST, stored=stored_status(active=None)), unread=(unread,))).splitlines()
    assert lines[0].startswith(
        "team-a/web-1 is down, and its schedule gives no verdict; there has never been a verdict: "
    )
    found = [line.strip() for line in lines if line.strip().startswith("$ ")]
    assert found[0] == "$ kubectl auth can-i get machines.cluster.x-k8s.io -n team-a"
    assert "$ kubectl -n team-a apply -f FILE" in found
    start = lines.index(next(line for line in lines if line.startswith("Not read")))
    assert " ".join(line[11:] for line in lines[start:]) == (
        "get machines.cluster.x-k8s.io team-a/web-1: you may not "
        "(kubectl auth can-i get machines.cluster.x-k8s.io -n team-a)"
    )


def test_every_line_fits_unless_it_is_the_answer_or_a_command() -> None:
    for j in (grace(), judgement(snapshot(LOST)), judgement(snapshot(BLIND)), judgement(snapshot(DOWN))):
        lines = text(j).splitlines()
        assert all(len(line) <= 100 or line.strip().startswith("$ ") for line in lines[1:])
        assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("width", [60, 80])
def test_lines_fit_a_narrower_terminal(width: int) -> None:
    lines = click.unstyle(render(explain(grace()), width=width)).splitlines()
    assert width - 15 < max(map(len, lines[1:])) <= width


def test_json_says_the_same_with_names_that_stay() -> None:
    found = to_json(explain(grace()))
    assert json.loads(json.dumps(found)) == found
    assert (found["machine"], found["verdict"], found["at"]) == ("team-a/web-1", "NotAsWanted", "2026-11-30T09:00:00Z")
    assert found["wanted"] == {
        "up": False,
        "decidedBy": "ScheduleInactive",
        "because": "TimeBasedSpotSchedule/hours says that the machine is not wanted",
        "since": "2026-11-30T08:00:00Z",
        "precedence": [
            {"name": "spec.killSwitch", "state": "off", "decides": False},
            {"name": "Cluster prod", "state": "exists", "decides": False},
            {"name": "spec.enabled", "state": "true", "decides": False},
            {"name": "TimeBasedSpotSchedule/hours", "state": "not active", "decides": True},
        ],
    }
    assert found["schedule"]["nextTransition"] == "2026-11-30T17:00:00Z"
    assert found["state"]["reason"] == "GracePeriodActive"
    assert [entry["at"] for entry in found["next"]] == ["2026-11-30T09:01:00Z", "2026-11-30T17:00:00Z"]
    assert (found["reported"], found["notRead"], found["remedies"]) == (None, [], found["remedies"])
    assert {"due", "also", "headline"} <= set(found)


def test_a_schedule_that_cannot_be_read_leaves_it_open_unless_it_does_not_decide() -> None:
    found = explain(judgement(snapshot(BLIND, machine=ready_machine())))
    assert (found.settled, found.up, found.schedule.resolved) == (Settled.CANNOT_TELL, None, None)
    off = explain(judgement(snapshot(BLIND, spec=spec(kill_switch=True), machine=None)))
    assert (off.settled, off.up, off.decided_by) == (Settled.AS_WANTED, False, "KillSwitchActivated")


def test_what_is_worth_knowing_beside_is_told() -> None:
    s = snapshot(machine=ready_machine(), spec=spec(template_hash="other", unsupported=("kata",)))
    assert [(said.type, said.status) for said in explain(judgement(s)).also] == [
        ("UpToDate", "False"),
        ("UnsupportedFields", "True"),
    ]


def test_texts_of_others_reach_a_terminal_without_control_characters() -> None:
    stored = status(
        active=True,
        phase="Active\x1b[31m",
        message="\x1b]0;owned\x07 and\nmore",
        conditions=[{"type": "Ready", "status": "Fal\x1bse", "reason": "\x1b[2J", "message": "\x00"}],
    )
    shown = render(explain(judgement(snapshot(stored=stored_status(stored), machine=ready_machine(ready=False)))))
    plain = click.unstyle(shown)
    assert "\x1b" not in plain
    assert "\x07" not in plain
    assert "and more" in plain


@pytest.mark.parametrize("settled", list(Settled))
def test_every_verdict_has_an_exit_code(settled: Settled) -> None:
    assert EXIT[settled.value] in {0, 1, 2}
    assert len(set(EXIT.values())) == len(EXIT) == len(Settled)


def test_a_foreign_object_is_looked_at_before_it_is_deleted() -> None:
    s = snapshot(children=(child(Slot.BOOTSTRAP, ours=False),), stored=stored_status(bootstrapRef={}))
    found = explain(judgement(s))
    assert f"kubectl -n team-a get {BOOTSTRAP.qualified} web-1 -o yaml" in [r.command for r in found.remedies]
