"""What probes ask: is the process alive, is it ready, and if not, why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Check", "Connectivity", "Health", "HealthReport"]

Check: TypeAlias = Callable[[], str]
"""Answers why something is not well, in one line; "" when it is. Called on the loop, so it must not wait."""


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Outcome of all checks of one kind, by name, in the order they were added; "" is well."""

    checks: Mapping[str, str]

    @property
    def ok(self) -> bool:
        return not any(self.checks.values())

    @property
    def problems(self) -> dict[str, str]:
        return {name: why for name, why in self.checks.items() if why}

    def text(self, *, verbose: bool = False) -> str:
        """As kube-apiserver answers: ``ok``, or a line per check; only the failed ones unless verbose."""
        if self.ok and not verbose:
            return "ok\n"
        lines = [f"[-]{name}: {why}" if why else f"[+]{name} ok" for name, why in self.checks.items() if verbose or why]
        return "\n".join([*lines, "ok" if self.ok else "not ok"]) + "\n"


class Health:
    """Named checks. Liveness says that the loop runs and no owner task died, and nothing about the API server, whose
    absence no restart would mend; readiness says that the process can do its work."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}
        self.stopping = False

    def add_liveness(self, name: str, check: Check) -> None:
        self._live[name] = check

    def add_readiness(self, name: str, check: Check) -> None:
        self._ready[name] = check

    def live(self) -> HealthReport:
        # That this runs at all is the proof that the loop does.
        return HealthReport({"loop": "", **{name: check() for name, check in self._live.items()}})

    def ready(self) -> HealthReport:
        stopping = {"running": "the manager is stopping"} if self.stopping else {}
        return HealthReport({**stopping, **{name: check() for name, check in self._ready.items()}})


class Connectivity:
    """Whether the API server answered the last request, fed with the outcome of every one.

    :ivar ever: whether it has answered at all.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.ever = False
        self._last = 0

    def observed(self, verb: str, status: int) -> None:
        """A request ended with this HTTP status, 0 for no answer."""
        self._last = status
        self.ever = self.ever or status > 0

    @property
    def connected(self) -> bool:
        return self._last > 0

    def not_ready_reason(self) -> str:
        """A readiness check: only until the first answer, for later failures are told by what they make stale."""
        if self.ever:
            return ""
        return f"no answer from the API server at {self.server} yet"
