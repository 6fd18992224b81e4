"""Random days of the whole system: no invariant is violated, and each day ends in the required state.

``./dev simulate`` runs more of them; ``FIVESPOT_SIMULATION_SEED=17`` runs one under a debugger.
"""

from __future__ import annotations

import pytest

from .random_day import RandomDay
from .runner import chosen_seeds


@pytest.mark.parametrize("seed", chosen_seeds())
def test_a_random_day_violates_no_invariant_and_settles(seed: int) -> None:
    RandomDay(seed).play()
