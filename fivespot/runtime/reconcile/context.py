"""The identity of the run under way."""

from __future__ import annotations

from contextvars import ContextVar

from fivespot.runtime.clock import Chance

__all__ = ["new_reconcile_id", "reconcile_id"]

reconcile_id: ContextVar[str] = ContextVar("reconcile_id", default="")
"""Names the run that the current task works for, in logs and traces; "" outside of runs. Tasks that a run starts
inherit it."""


def new_reconcile_id(chance: Chance) -> str:
    """13 hexadecimal digits: unlikely to repeat within the time that logs are kept."""
    return f"{int(chance.random() * (1 << 52)):013x}"
