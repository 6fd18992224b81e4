"""Which random days the tests play, and how one of them is played."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["USUAL", "chosen"]

USUAL: Final = tuple(range(1, 7))
"""Of each crew of managers two, and days that show the faults of ``test_checker.py``."""


def chosen() -> tuple[int, ...]:
    """The usual ones, or the one that ``FIVESPOT_SIMULATION_SEED`` names."""
    one = os.environ.get("FIVESPOT_SIMULATION_SEED")
    return (int(one),) if one else USUAL
