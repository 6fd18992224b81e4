"""Random days of the whole system: what must never happen does not, and in the end all is as it has to be.

``./dev simulate`` plays more of them; ``FIVESPOT_SIMULATION_SEED=17`` plays one under a debugger.
"""

from __future__ import annotations

import pytest

from fivespot.testing.virtual_time import run_virtual

from .chaos import Chaos
from .seeds import chosen


@pytest.mark.parametrize("seed", chosen())
def test_a_random_day_breaks_no_promise_and_ends_well(seed: int) -> None:
    run_virtual(Chaos(seed).run())
