"""An explanation for programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fivespot.cli.why.explain import Explanation, Said
from fivespot.cli.why.remedies import right_to_read
from fivespot.runtime.objects import rfc3339

__all__ = ["to_json"]


def to_json(e: Explanation) -> dict[str, Any]:
    """The explanation as plain values. Fields are added in later releases, and not renamed."""
    return {
        "machine": e.machine,
        "at": rfc3339(e.at),
        "verdict": e.settled.value,
        "headline": e.headline,
        "wanted": {
            "up": e.up,
            "decidedBy": e.decided_by,
            "because": e.because,
            "since": _instant(e.since),
            "precedence": [{"name": r.name, "state": r.state, "decides": r.decides} for r in e.precedence],
        },
        "schedule": {
            "name": e.schedule.name,
            "resolved": e.schedule.resolved,
            "active": e.schedule.active,
            "reason": e.schedule.reason,
            "message": e.schedule.message,
            "since": _instant(e.schedule.since),
            "nextTransition": _instant(e.schedule.next_change),
        },
        "state": {"phase": e.phase, "reason": e.reason, "message": e.message, "node": e.node},
        "due": list(e.due),
        "next": [{"at": _instant(entry.at), "what": entry.what} for entry in e.next],
        "reported": _said(e.reported) if e.reported is not None else None,
        "also": [_said(said) for said in e.also],
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


def _said(said: Said) -> dict[str, Any]:
    shown = {"status": said.status, "reason": said.reason, "message": said.message, "since": _instant(said.since)}
    return {"type": said.type, **shown}


def _instant(instant: datetime | None) -> str | None:
    return rfc3339(instant) if instant is not None else None
