"""What a reconciler is and what it answers."""

from __future__ import annotations

import math
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from fivespot.runtime.clock import Random
from fivespot.runtime.objects import Key

__all__ = ["DONE", "Reconciler", "Result", "new_reconcile_id", "reconcile_id"]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one successful run.

    :param requeue_after: seconds until the key runs again even if nothing changes, zero or less for at once; None or
        infinity: only when something does. A run that ends well forgets earlier failures of the key.
    :param phase: a word for metrics and logs, such as the phase the object ended in; from a small fixed set.
    """

    requeue_after: float | None = None
    phase: str = ""

    def __post_init__(self) -> None:
        """:raises ValueError: ``requeue_after`` is not a number: a run must not lose its key to a wrong sum."""
        if self.requeue_after is not None and math.isnan(self.requeue_after):
            raise ValueError("requeue_after is not a number")


DONE = Result()


class Reconciler(Protocol):
    """Brings the world to what one object asks for.

    A run uses only what is true now. It may be repeated, may be cancelled at any await, and at most one run per
    key is under way. Raising makes the key run again after a back-off that grows per key;
    :class:`~fivespot.runtime.errors.TerminalError` makes it wait for a change instead.
    """

    async def reconcile(self, key: Key) -> Result: ...


reconcile_id: ContextVar[str] = ContextVar("reconcile_id", default="")

"""Names the run that the current task works for, in logs and traces; "" outside of runs. Tasks that a run starts
inherit it."""


def new_reconcile_id(rng: Random) -> str:
    """13 hexadecimal digits: unlikely to repeat within the time that logs are kept."""
    return f"{int(rng.random() * (1 << 52)):013x}"
