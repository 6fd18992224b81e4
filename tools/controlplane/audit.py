"""Reading kube-apiserver's audit log: who did what, as the server saw it."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

RECEIVED = "RequestReceived"
STARTED = "ResponseStarted"
COMPLETE = "ResponseComplete"
PANIC = "Panic"

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        # The server's own loops and the readiness polls say nothing about anyone under test.
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        # When a write begins is logged too; see AuditLog.
        {"level": "Metadata", "verbs": sorted(WRITES)},
        {"level": "Metadata", "omitStages": [RECEIVED]},
    ],
}

_LATE_SECONDS = 10.0
"""How long a write that has begun is waited for."""
_POLL_SECONDS = 0.01
_STAGE = re.compile(rb'"stage": ?"(\w+)"')
_ID = re.compile(rb'"auditID": ?"([^"]+)"')


class AuditLog:
    """The audit log file of one server.

    The line of a write appears when it is answered, and its effect may be seen a moment earlier. But the line that says
    that it has begun is there before anything happens. So whoever looks here, or takes a mark, waits for the writes
    that have begun within the last ten seconds; then the log has all whose effects can have been seen.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._scanned = 0
        self._begun: dict[bytes, float] = {}
        self._held = 0

    def mark(self) -> int:
        """A place in the log; events up to here are left out by ``since=mark``."""
        self._settle()
        return self._scanned

    def events(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[dict[str, Any]]:
        """The events after ``since``, oldest first.

        A watch completes when it ends: ask for ``ResponseStarted`` as well to see those that are open.
        """
        self._settle()
        if not self.path.exists():
            return []
        wanted = frozenset(stages)
        with self.path.open("rb") as log:
            log.seek(since)
            # The last line may be half written, and its rest would follow as one of its own.
            lines = list(takewhile(lambda line: line.endswith(b"\n"), log))
        return [event for event in map(json.loads, lines) if event["stage"] in wanted]

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Somebody keeps a write from going on, for whose end nobody is to wait."""
        with self._counting:
            self._held += 1
        try:
            yield
        finally:
            with self._counting:
                self._held -= 1

    def server_died(self) -> None:
        """No write that has begun will be answered, and no line ended: the next server would go on in that line."""
        with self._lock:
            self._scan()
            self._begun.clear()
            if self.path.exists():
                os.truncate(self.path, self._scanned)

    def _settle(self) -> None:
        with self._lock:
            self._scan()
            # Not for those that begin meanwhile: there may always be some.
            awaited = set(self._begun)
            while awaited:
                late = time.monotonic() - _LATE_SECONDS
                self._begun = {identity: at for identity, at in self._begun.items() if at > late}
                awaited &= self._begun.keys()
                if len(self._begun) <= self._held:
                    return
                if awaited:
                    time.sleep(_POLL_SECONDS)
                    self._scan()

    def _scan(self) -> None:
        """Take in what is new: which writes have begun, and which of them have ended."""
        if not self.path.exists():
            return
        now = time.monotonic()
        with self.path.open("rb") as log:
            log.seek(self._scanned)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                self._scanned += len(line)
                stage, identity = _STAGE.search(line), _ID.search(line)
                if stage is None or identity is None:
                    continue
                if stage[1].decode() == RECEIVED:
                    self._begun[identity[1]] = now
                elif stage[1].decode() in {COMPLETE, PANIC}:
                    self._begun.pop(identity[1], None)


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
    """Count events by ``verb group/resource/subresource`` (without the group for the core one)."""

    def label(event: dict[str, Any]) -> str:
        reference = event.get("objectRef") or {}
        parts = (reference.get("apiGroup"), reference.get("resource"), reference.get("subresource"))
        return f"{event['verb']} {'/'.join(part for part in parts if part) or event.get('requestURI', '')}"

    return Counter(map(label, events))
