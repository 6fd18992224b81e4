"""Whether something is made, kept or unmade now: the decision that all simulated providers share. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from .script import LifeScript, Outcome

__all__ = ["Act", "Decision", "decide"]


class Act(enum.Enum):
    """What is to be done with an object."""

    NOTHING = "nothing"
    CREATE = "create"
    """Make what it stands for, or keep that true."""
    FAIL = "fail"
    """Say that it cannot be made, or not unmade."""
    LET_GO = "let go"
    """Unmake what it stands for, and take the finalizer off."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and when to look again.

    :param wait: seconds until time alone makes a difference; None: it does not.
    :param why: what is waited for, for people.
    """

    act: Act
    wait: float | None = None
    why: str = ""


Remaining = Callable[[str, float], float]
"""Seconds left of a waiting time: ``remaining("create", 5.0)`` counts from its own first call."""


def decide(
    script: LifeScript,
    *,
    deleting: bool,
    held: bool,
    made: bool,
    paused: bool,
    blocked: str,
    remaining: Remaining,
) -> Decision:
    """
    :param deleting: the object has a deletionTimestamp.
    :param held: our finalizer is on it.
    :param made: what it stands for exists.
    :param blocked: what must be there before making may begin, and is not; "" when nothing is missing.
    """
    if paused:
        return Decision(Act.NOTHING, why="paused")
    if deleting:
        if not held:
            return Decision(Act.NOTHING, why="being deleted")
        return _when(script.delete, Act.LET_GO, remaining("delete", script.delete_after_seconds), "deletion")
    if made:
        return Decision(Act.CREATE)
    if blocked:
        return Decision(Act.NOTHING, why=blocked)
    return _when(script.create, Act.CREATE, remaining("create", script.create_after_seconds), "creation")


def _when(outcome: Outcome, act: Act, left: float, what: str) -> Decision:
    if outcome == "Never":
        return Decision(Act.NOTHING, why=f"{what} never ends")
    if left > 0:
        return Decision(Act.NOTHING, wait=left, why=f"{what} takes {left:.1f} s more")
    return Decision(Act.FAIL if outcome == "Fail" else act)
