"""Replacements in test modules for clocks, processes and other names that need the real server."""

from __future__ import annotations

from datetime import datetime, tzinfo
from types import ModuleType, SimpleNamespace

import pytest

from .gate import EmbeddedGate
from .manager import EmbeddedManager, free_ports, manager_in_process, scrape
from .plane import EmbeddedControlPlane

__all__ = ["on_virtual_time"]


class _Clock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return EmbeddedControlPlane.current.now().astimezone(tz)


def _monotonic() -> float:
    return EmbeddedControlPlane.current.monotonic()


def _sleep(seconds: float) -> None:
    EmbeddedControlPlane.current.sleep(seconds)


_REPLACEMENTS = {
    "time": SimpleNamespace(monotonic=_monotonic, sleep=_sleep),
    "datetime": _Clock,
    "ManagerProcess": EmbeddedManager,
    "manager_in_process": manager_in_process,
    "scrape": scrape,
    "free_ports": free_ports,
    "Gate": EmbeddedGate,
}


def on_virtual_time(patch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Give modules of tests the current plane's time, and its managers for processes and threads of their own."""
    for module in modules:
        for name, replacement in _REPLACEMENTS.items():
            if hasattr(module, name):
                patch.setattr(module, name, replacement)
