"""An explanation as text and as plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import click

from fivespot.cli.why.explain import Explanation, Next, Said, ScheduleFacts, Settled
from fivespot.cli.why.remedies import right_to_read
from fivespot.runtime.objects import rfc3339

__all__ = ["WIDEST", "render", "to_json"]

_LABEL: Final = 11
WIDEST: Final = 100
"""Columns beyond which lines are hard to read."""
_NARROWEST: Final = 40
_COLOURS: Final = {Settled.AS_WANTED: "green", Settled.NOT_AS_WANTED: "yellow", Settled.CANNOT_TELL: "red"}


def to_json(e: Explanation) -> dict[str, Any]:
    """Convert the explanation to plain values. Later releases may add fields and do not rename any."""
    return {
        "machine": e.machine,
        "at": rfc3339(e.at),
        "verdict": e.settled.value,
        "headline": e.headline,
        "wanted": {
            "up": e.up,
            "decidedBy": e.decided_by,
            "because": e.because,
            "since": _instant_json(e.since),
            "precedence": [{"name": r.name, "state": r.state, "decides": r.decides} for r in e.precedence],
        },
        "schedule": {
            "name": e.schedule.name,
            "resolved": e.schedule.resolved,
            "active": e.schedule.active,
            "reason": e.schedule.reason,
            "message": e.schedule.message,
            "since": _instant_json(e.schedule.since),
            "nextTransition": _instant_json(e.schedule.next_change),
        },
        "state": {"phase": e.phase, "reason": e.reason, "message": e.message, "node": e.node},
        "due": list(e.due),
        "next": [{"at": _instant_json(entry.at), "what": entry.what} for entry in e.next],
        "reported": _statement_json(e.reported) if e.reported is not None else None,
        "also": [_statement_json(said) for said in e.also],
        "remedies": [{"problem": remedy.problem, "command": remedy.command} for remedy in e.remedies],
        "notRead": [
            {
                "verb": unread.verb,
                "resource": unread.resource,
                "namespace": unread.key.namespace,
                "name": unread.key.name,
                "why": unread.why,
                "instead": unread.instead,
                "command": right_to_read(unread),
            }
            for unread in e.unread
        ],
    }


def _statement_json(said: Said) -> dict[str, Any]:
    shown = {"status": said.status, "reason": said.reason, "message": said.message, "since": _instant_json(said.since)}
    return {"type": said.type, **shown}


def _instant_json(instant: datetime | None) -> str | None:
    return rfc3339(instant) if instant is not None else None


def render(e: Explanation, *, width: int = WIDEST) -> str:
    """Render the text, with styles for a terminal; strip them for other outputs."""
    # One line with the answer.
    lines = [click.style(e.headline, bold=True, fg=_COLOURS[e.settled]), ""]
    lines += _wrapped(width, "Wanted", _wanted(e))
    for number, rung in enumerate(e.precedence):
        mark = click.style("*", fg="cyan") if rung.decides else " "
        lines.append(f"{_label('Decided by' if not number else '')}{mark} {rung.name}: {rung.state}")
    lines += _wrapped(width, "Schedule", _schedule(e.schedule, e.at))
    lines += _list(width, "Due now", e.due)
    lines += _wrapped(width, "Then" if e.due else "State", _state(e))
    lines += _list(width, "Next", [_next(entry, e.at) for entry in e.next])
    lines += _list(width, "Also", [_said(said) for said in e.also])
    if e.reported is not None:
        lines += _wrapped(width, "Reported", _reported(e.reported, e.at))
    lines += _remedies(width, e)
    lines += _list(width, "Not read", list(_unread(e)))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wanted(e: Explanation) -> str:
    if e.up is None:
        return "is unknown"
    since = f", since {_instant(e.since, e.at)}" if e.since is not None else ""
    return f"{'up' if e.up else 'down'} ({e.decided_by}): {e.because}{since}"


def _schedule(schedule: ScheduleFacts, at: datetime) -> str:
    if schedule.resolved is None:
        return f"{schedule.name} cannot be read: {schedule.message}"
    if not schedule.resolved:
        return f"{schedule.name} gives no verdict ({schedule.reason}): {schedule.message}"
    said = ": ".join(part for part in (schedule.reason, schedule.message) if part)
    state = "active" if schedule.active else "not active"
    since = f" since {_instant(schedule.since, at)}" if schedule.since is not None else ""
    return f"{schedule.name} is {state}{since}" + (f" ({said})" if said else "")


def _state(e: Explanation) -> str:
    if not e.phase:
        return f"unknown: {e.message}"
    reason = f" ({e.reason})" if e.reason else ""
    node = f"; node {e.node}" if e.node else ""
    return f"{e.phase}{reason}{node}" + (f": {e.message}" if e.message else "")


def _next(entry: Next, at: datetime) -> str:
    return entry.what if entry.at is None else f"{_instant(entry.at, at)}: {entry.what}"


def _said(said: Said) -> str:
    return f"{said.type}={said.status} ({said.reason})" + (f": {said.message}" if said.message else "")


def _reported(said: Said, at: datetime) -> str:
    if not said.type:
        return said.message
    ready = f"Ready={said.status} ({said.reason})" if said.status else ""
    since = f" since {_instant(said.since, at)}" if said.since is not None else ""
    head = ", ".join(part for part in (said.type, f"{ready}{since}") if part)
    return f"the controller last said: {head}" + (f": {said.message}" if said.message else "")


def _remedies(width: int, e: Explanation) -> Iterator[str]:
    for number, remedy in enumerate(e.remedies):
        yield from _wrapped(width, "To do" if not number else "", remedy.problem)
        # On a line of its own and not wrapped, so that it can be copied.
        yield f"{_label('')}  {click.style(f'$ {remedy.command}', fg='cyan')}"


def _unread(e: Explanation) -> Iterator[str]:
    """Return a line for each kind of object that could not be read."""
    for (resource, instead, denied), group in groupby(e.unread, lambda u: (u.resource, u.instead, u.denied)):
        found = list(group)
        listed = ", ".join(str(unread.key) for unread in found if unread.key.name)
        why = "you may not" if denied else found[0].why
        remark = f"; {instead}" if instead else ""
        yield f"{found[0].verb} {resource}{f' {listed}' if listed else ''}: {why}{remark} ({right_to_read(found[0])})"


def _instant(instant: datetime, now: datetime) -> str:
    gap = instant - now
    return f"{rfc3339(instant)} ({f'in {_about(gap)}' if gap > timedelta(0) else f'{_about(-gap)} ago'})"


def _about(gap: timedelta) -> str:
    seconds = int(gap.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _list(width: int, label: str, items: list[str] | tuple[str, ...]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield from _wrapped(width, label if not number else "", item)


def _wrapped(width: int, label: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, max(width, _NARROWEST) - _LABEL, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
    return [f"{_label(label if not number else '')}{line}" for number, line in enumerate(wrapped)]


def _label(text: str) -> str:
    return click.style(f"{text:<{_LABEL}}", dim=True)
