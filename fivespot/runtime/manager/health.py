"""Liveness and readiness checks, and whether the API server answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Check", "Connectivity", "Health", "HealthReport"]

Check: TypeAlias = Callable[[], str]
"""Returns the reason why something is not healthy, in one line; "" when it is. Must not block the loop."""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Outcome of all checks of one kind by name, in the order they were added; "" is healthy.

    :param notes: remarks that people should see and that are no reason to stop or restart anything.
    """

    checks: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not any(self.checks.values())

    @property
    def problems(self) -> dict[str, str]:
        return {name: why for name, why in self.checks.items() if why}

    def text(self, *, verbose: bool = False) -> str:
        """The format of kube-apiserver: ``ok``, or a line per check; only failed ones unless verbose."""
        notes = [f"[!]{name}: {note}" for name, note in self.notes.items() if note]
        if self.ok and not verbose and not notes:
            return "ok\n"
        lines = [f"[-]{name}: {why}" if why else f"[+]{name} ok" for name, why in self.checks.items() if verbose or why]
        return "\n".join([*lines, *notes, "ok" if self.ok else "not ok"]) + "\n"


class Health:
    """Named checks.

    Liveness means that the loop runs and no supervised task has died. It does not depend on the API server, because a
    restart would not help. Readiness means that the process can do its work. A check that raises fails with its error.
    """

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}
        self._notes: dict[str, Check] = {}
        self.stopping = False

    def add_liveness(self, name: str, check: Check) -> None:
        self._live[name] = check

    def add_readiness(self, name: str, check: Check) -> None:
        self._ready[name] = check

    def add_note(self, name: str, note: Check) -> None:
        """Add a remark to the report on readiness; whatever it returns, the process stays ready."""
        self._notes[name] = note

    def remove_readiness(self, name: str) -> None:
        """Remove a readiness check; unknown names are ignored."""
        self._ready.pop(name, None)

    def live(self) -> HealthReport:
        # This function runs on the loop, so the loop runs.
        return HealthReport({"loop": "", **_outcomes(self._live)})

    def ready(self) -> HealthReport:
        stopping = {"running": "the manager is stopping"} if self.stopping else {}
        return HealthReport({**stopping, **_outcomes(self._ready)}, _outcomes(self._notes))


def _outcomes(checks: Mapping[str, Check]) -> dict[str, str]:
    return {name: _result_of(check) for name, check in checks.items()}


def _result_of(check: Check) -> str:
    try:
        return check()
    except Exception as error:
        # User code: a check that fails must not end the manager.
        return f"the check failed: {type(error).__name__}: {error}"


class Connectivity:
    """Whether the API server answered the last request; fed with the outcome of every request.

    :ivar ever: whether it has answered at all.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.ever = False
        self._last = 0

    def observed(self, verb: str, status: int) -> None:
        """A request ended with this HTTP status, or 0 without an answer."""
        self._last = status
        self.ever = self.ever or status > 0

    @property
    def connected(self) -> bool:
        return self._last > 0

    def not_ready_reason(self) -> str:
        """A readiness check until the first answer; later failures show as stale caches."""
        if self.ever:
            return ""
        return f"no answer from the API server at {self.server} yet"
