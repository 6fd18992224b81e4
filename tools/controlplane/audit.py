"""Reading kube-apiserver's audit log: who did what, as the server saw it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPLETE = "ResponseComplete"
STARTED = "ResponseStarted"

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # The server's own loops and the readiness polls say nothing about anyone under test.
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {"level": "Metadata"},
    ],
}

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class AuditLog:
    """The audit log file of one server. Events are written before the response is sent."""

    path: Path

    def mark(self) -> int:
        """A place in the log; events up to here are left out by ``since=mark``."""
        return self.path.stat().st_size if self.path.exists() else 0

    def events(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[dict[str, Any]]:
        """The events after ``since``, oldest first.

        A watch completes when it ends: ask for ``ResponseStarted`` as well to see those that are open.
        """
        if not self.path.exists():
            return []
        wanted = frozenset(stages)
        with self.path.open("rb") as log:
            log.seek(since)
            # The last line may be half written.
            lines = [line for line in log if line.endswith(b"\n")]
        return [event for event in map(json.loads, lines) if event["stage"] in wanted]


def select(
    events: Iterable[dict[str, Any]],
    *,
    user: str | None = None,
    agent: str | None = None,
    verbs: Iterable[str] | str | None = None,
    resource: str | None = None,
    subresource: str | None = None,
    group: str | None = None,
    namespace: str | None = None,
    name: str | None = None,
    code: int | None = None,
) -> list[dict[str, Any]]:
    """Events that match every given criterion.

    ``user`` is the whole user name (``system:serviceaccount:NS:NAME``), ``agent`` a prefix of the User-Agent header,
    ``resource`` a plural; ``subresource=""`` means none.
    """
    allowed = {verbs} if isinstance(verbs, str) else set(verbs) if verbs is not None else None

    def matches(event: dict[str, Any]) -> bool:
        reference = event.get("objectRef") or {}
        who = (event.get("impersonatedUser") or event["user"]).get("username", "")
        return (
            (user is None or who == user)
            and (agent is None or str(event.get("userAgent", "")).startswith(agent))
            and (allowed is None or event["verb"] in allowed)
            and (resource is None or reference.get("resource") == resource)
            and (subresource is None or reference.get("subresource", "") == subresource)
            and (group is None or reference.get("apiGroup", "") == group)
            and (namespace is None or reference.get("namespace") == namespace)
            and (name is None or reference.get("name") == name)
            and (code is None or (event.get("responseStatus") or {}).get("code") == code)
        )

    return [event for event in events if matches(event)]


def tally(events: Iterable[dict[str, Any]]) -> Counter[str]:
    """How often each ``verb group/resource/subresource`` occurs (the group is left out for the core one)."""

    def label(event: dict[str, Any]) -> str:
        reference = event.get("objectRef") or {}
        parts = (reference.get("apiGroup"), reference.get("resource"), reference.get("subresource"))
        return f"{event['verb']} {'/'.join(part for part in parts if part) or event.get('requestURI', '')}"

    return Counter(map(label, events))
