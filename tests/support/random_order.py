"""A fixed random order of tests, for ``--order-seed N``: what one test leaves must not be what another needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from random import Random

import pytest


class RandomOrder:
    """Pytest plugin that shuffles the files, and the tests within each file.

    Pytest groups tests by the parameters of wide fixtures afterwards, so that none is set up more often than needed.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def pytest_report_header(self) -> str:
        return f"order: random, --order-seed {self.seed}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = shuffled(items, self.seed)


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return the items in the order of this seed, which depends on no worker and no earlier run."""
    rng = Random(seed)
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    rng.shuffle(files)
    for file in files:
        rng.shuffle(file)
    return [item for file in files for item in file]
