"""The checker detects every mutant of the product, as the invariant that it violates.

``test_random_days.py`` shows that it reports nothing for the same seeds without a mutant.
"""

from __future__ import annotations

import re

import pytest

from .invariants import Invariant
from .mutants import MUTANTS, Mutant
from .random_day import RandomDay
from .runner import TEST_SEEDS


@pytest.mark.parametrize(
    ("mutant", "invariant", "seed"),
    [pytest.param(*row, id=row[0].__name__) for row in MUTANTS],
)
def test_a_mutant_is_detected(mutant: Mutant, invariant: Invariant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=re.escape(f": {invariant.value}: ")):
        RandomDay(seed).play()


def test_every_invariant_has_a_mutant_and_every_seed_is_one_of_the_tests() -> None:
    assert {invariant for _, invariant, _ in MUTANTS} == set(Invariant)
    assert {seed for _, _, seed in MUTANTS} <= set(TEST_SEEDS)
