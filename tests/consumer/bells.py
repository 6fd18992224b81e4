"""A provider as somebody else writes it, for `fivespot manager --provider`: it says in its status when it decided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from fivespot.providers.sdk import ApiModel, Provider, Verdict

__all__ = ["BELL"]


class BellSpec(ApiModel):
    """The time at which the bell rings; in the far future by default."""

    rings: str = "2100-01-01T00:00:00Z"
    """An instant. From then on it rings and falls silent in turn."""
    seconds: int = 60
    """How long it rings, and how long it is silent."""
    broken: bool = False
    """Whether deciding fails."""


def decide(spec: BellSpec, at: datetime) -> Verdict:
    if spec.broken:
        raise RuntimeError("this one is broken")
    rings = datetime.fromisoformat(spec.rings).astimezone(UTC)
    if at < rings:
        return Verdict(False, rings, "Waiting")
    turns = (at - rings) // timedelta(seconds=spec.seconds)
    until = rings + (turns + 1) * timedelta(seconds=spec.seconds)
    active = turns % 2 == 0
    return Verdict(active, until, "Rings" if active else "Silent", f"decided at {at.isoformat()}")


BELL: Final = Provider("Bell", spec=BellSpec, decide=decide)
