"""Random days of the whole system: what must never happen does not, and in the end all is as it has to be.

A bounded number of seeds by default; ``FIVESPOT_SIMULATION_SEEDS=1000`` runs more, and ``FIVESPOT_SIMULATION_SEED=17``
runs one again.
"""

from __future__ import annotations

import os

import pytest

from fivespot.testing.virtual import run_virtual

from .chaos import Chaos

_USUAL = 6
_FIRST = 1


def _seeds() -> list[int]:
    one = os.environ.get("FIVESPOT_SIMULATION_SEED")
    if one:
        return [int(one)]
    return list(range(_FIRST, _FIRST + int(os.environ.get("FIVESPOT_SIMULATION_SEEDS", str(_USUAL)))))


@pytest.mark.parametrize("seed", _seeds())
def test_a_random_day_breaks_no_promise_and_ends_well(seed: int) -> None:
    run_virtual(Chaos(seed).run())
