"""The witness sees what it is there to see: every fault seeded into the product is reported by its name.

``test_random.py`` shows for the same seeds that it is silent about the product as it is.
"""

from __future__ import annotations

import re

import pytest

from fivespot.testing.virtual_time import run_virtual

from .chaos import Chaos
from .invariants import Invariant
from .mutants import MUTANTS, Mutant
from .seeds import USUAL


@pytest.mark.parametrize(
    ("fault", "promise", "seed"),
    [pytest.param(*row, id=row[0].__name__) for row in MUTANTS],
)
def test_a_fault_in_the_product_is_seen(
    fault: Mutant, promise: Invariant, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError, match=re.escape(f": {promise.value}: ")):
        run_virtual(Chaos(seed).run())


def test_no_promise_is_watched_over_without_proof_and_every_seed_is_a_usual_one() -> None:
    assert {promise for _, promise, _ in MUTANTS} == set(Invariant)
    assert {seed for _, _, seed in MUTANTS} <= set(USUAL)
