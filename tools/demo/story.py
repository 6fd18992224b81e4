"""What the demonstration does, and how it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

from controlplane import Api, ApiError

_SCHEDULE = ("spotschedules.5spot.finos.org/v1alpha1", "TimeBasedSpotSchedule")
_SCHEDULED_MACHINE = ("5spot.finos.org/v1beta1", "ScheduledMachine")
_WATCHED = (
    _SCHEDULE,
    _SCHEDULED_MACHINE,
    ("cluster.x-k8s.io/v1beta2", "Machine"),
    ("bootstrap.cluster.x-k8s.io/v1beta1", "StandInBootstrap"),
    ("infrastructure.cluster.x-k8s.io/v1beta1", "StandInMachine"),
)
_NAMESPACE = "demo"
_POLL_SECONDS = 0.25
_LEAST_WINDOW = timedelta(seconds=15)

_DIM, _BOLD, _GREEN, _YELLOW, _RESET = "\x1b[2m", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


class Teller:
    """Writes one line for each thing that happens, in colour on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._colour = out.isatty()
        self._begun = time.monotonic()

    def note(self, text: str) -> None:
        """Something about the demonstration itself."""
        self._write(text, _DIM)

    def act(self, text: str) -> None:
        """Something that a person could have done."""
        self._write(f"> {text}", _YELLOW)

    def saw(self, what: str, text: str) -> None:
        """Something that the API server shows."""
        self._write(f"{what:<34} {text}", _GREEN if "True" in text or "Active" in text else "")

    def _write(self, text: str, colour: str) -> None:
        stamp = f"{time.monotonic() - self._begun:6.1f} s  "
        painted = f"{_DIM}{stamp}{_RESET}{colour}{text}{_RESET}" if self._colour else stamp + text
        self._out.write(painted + "\n")
        self._out.flush()


class Story:
    """Applies a schedule whose window is open, and tells what follows until it has closed and beyond.

    :param seconds: how long the story may take; None: until stopped.
    """

    def __init__(self, api: Api, tell: Teller, *, seconds: float | None) -> None:
        self._api = api
        self._tell = tell
        self._seconds = seconds
        self._seen: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Tell the story until its time is over or ``stop`` is set."""
        begun = time.monotonic()
        closes = self._begin()
        by_hand = self._closes_by_hand(closes)
        while not stop.is_set() and (self._seconds is None or time.monotonic() - begun < self._seconds):
            self._look()
            if by_hand is not None and time.monotonic() - begun >= by_hand:
                by_hand = None
                self._tell.act('kubectl patch tbss office-hours --type merge -p \'{"spec":{"enabled":false}}\'')
                self._api.patch(*_SCHEDULE, "office-hours", _NAMESPACE, {"spec": {"enabled": False}})
            stop.wait(_POLL_SECONDS)

    def _begin(self) -> datetime:
        now = datetime.now(UTC)
        closes = (now + _LEAST_WINDOW + timedelta(minutes=1)).replace(second=0, microsecond=0)
        opens = now.replace(second=0, microsecond=0)
        for body in (*_stage(), _schedule(opens, closes), _machine()):
            self._patiently(lambda body=body: self._api.create(body))  # type: ignore[misc]
        self._tell.act(
            f"kubectl apply: a schedule that is open from {opens:%H:%M} to {closes:%H:%M} UTC, and a machine"
        )
        return closes

    def _closes_by_hand(self, closes: datetime) -> float | None:
        """When to close the schedule by hand, because its window outlasts the story; None: it closes by itself."""
        if self._seconds is None or (closes - datetime.now(UTC)).total_seconds() < self._seconds * 0.7:
            return None
        return self._seconds * 0.5

    def _look(self) -> None:
        present = {}
        for kind in _WATCHED:
            for found in self._api.list(*kind, _NAMESPACE):
                present[f"{kind[1]}/{found['metadata']['name']}"] = _describe(kind[1], found)
        for name, text in present.items():
            if self._seen.get(name) != text:
                self._tell.saw(name, text)
        for name in self._seen.keys() - present.keys():
            self._tell.saw(name, "gone")
        self._seen = present

    @staticmethod
    def _patiently(do: Callable[[], Any]) -> None:
        """A kind whose definition was applied a moment ago may take a second to be served."""
        for _ in range(40):
            try:
                do()
            except ApiError as error:
                if error.status not in {404, 503}:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                return
        do()


def _describe(kind: str, found: dict[str, Any]) -> str:
    status = found.get("status", {})
    if kind == "ScheduledMachine":
        return f"{status.get('phase', 'new')}: {status.get('message', '')}"
    if kind == "TimeBasedSpotSchedule":
        ready: dict[str, Any] = next(iter(status.get("conditions", [])), {})
        return f"active={status.get('active', '?')}: {ready.get('message', '')}"
    if found["metadata"].get("deletionTimestamp"):
        return "being deleted"
    phase = status.get("phase")
    return f"exists ({phase})" if phase else "exists"


def _stage() -> tuple[dict[str, Any], ...]:
    prod = {"name": "prod", "namespace": _NAMESPACE}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "StandInCluster",
            "metadata": prod,
            "spec": {},
        },
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": prod,
            "spec": {
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "StandInCluster",
                    "name": "prod",
                }
            },
        },
    )


def _schedule(opens: datetime, closes: datetime) -> dict[str, Any]:
    window = {"days": ["mon-sun"], "start": f"{opens:%H:%M}", "end": f"{closes:%H:%M}"}
    return {
        "apiVersion": _SCHEDULE[0],
        "kind": _SCHEDULE[1],
        "metadata": {"name": "office-hours", "namespace": _NAMESPACE},
        "spec": {"timezone": "UTC", "windows": [window]},
    }


def _machine() -> dict[str, Any]:
    return {
        "apiVersion": _SCHEDULED_MACHINE[0],
        "kind": _SCHEDULED_MACHINE[1],
        "metadata": {"name": "web", "namespace": _NAMESPACE},
        "spec": {
            "schedule": {"apiVersion": _SCHEDULE[0], "kind": _SCHEDULE[1], "name": "office-hours"},
            "clusterName": "prod",
            "gracefulShutdownTimeout": "5s",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "StandInBootstrap",
                "spec": {"note": "for example a join token"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "StandInMachine",
                "spec": {"size": "large"},
            },
        },
    }
