"""The checker detects mutants of the product, as the invariant that they violate.

``test_random_days.py`` shows that it reports nothing for the same seeds without a mutant. Here is one mutant for each
invariant; ``./dev prove mutants`` runs all.
"""

from __future__ import annotations

import re

import pytest

from .invariants import Invariant
from .mutants import MUTANTS, Mutant
from .random_day import RandomDay
from .runner import TEST_SEEDS

FIRST = {row[1]: row for row in reversed(MUTANTS)}.values()


@pytest.mark.parametrize(
    ("mutant", "invariant", "seed"),
    [pytest.param(*row, id=row[0].__name__) for row in FIRST],
)
def test_a_mutant_is_detected(mutant: Mutant, invariant: Invariant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=re.escape(f": {invariant.value}: ")):
        RandomDay(seed).play()


def test_every_invariant_has_a_mutant_and_every_seed_is_one_of_the_tests() -> None:
    assert {invariant for _, invariant, _ in MUTANTS} == set(Invariant)
    assert {seed for _, _, seed in MUTANTS} <= set(TEST_SEEDS)
