"""The reconciler protocol and its result."""

from __future__ import annotations

import math
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from fivespot.runtime.clock import Random
from fivespot.runtime.objects import Key

__all__ = ["DONE", "Reconciler", "Result", "new_reconcile_id", "reconcile_id"]

reconcile_id: ContextVar[str] = ContextVar("reconcile_id", default="")
"""Id of the run that the current task belongs to, for logs and traces; "" outside of runs. Tasks that a run starts
inherit it."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one successful run.

    :param requeue_after: seconds until the key runs again without a change; zero or less runs it immediately. With None
        or infinity it runs after the next change only. A successful run resets the back-off of the key.
    :param phase: the phase of the object for metrics and logs; from a small fixed set.
    """

    requeue_after: float | None = None
    phase: str = ""

    def __post_init__(self) -> None:
        """:raises ValueError: ``requeue_after`` is NaN, which would never become due."""
        if self.requeue_after is not None and math.isnan(self.requeue_after):
            raise ValueError("requeue_after is not a number")


DONE = Result()


class Reconciler(Protocol):
    """Moves the cluster towards the desired state of one object.

    A run is level-triggered: it uses current state only. It may be repeated and may be cancelled at any await; at most
    one run per key is in progress. Raising retries the key after a back-off that grows per key;
    :class:`~fivespot.runtime.errors.TerminalError` waits for a change instead.
    """

    async def reconcile(self, key: Key) -> Result: ...


def new_reconcile_id(rng: Random) -> str:
    """Return 13 hexadecimal digits, unlikely to repeat within the retention of logs."""
    return f"{int(rng.random() * (1 << 52)):013x}"
