"""Back-off as a pure function."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.workqueue import Backoff


@given(
    failures=st.integers(min_value=0, max_value=10**9),
    seed=st.integers(),
    base=st.floats(min_value=1e-6, max_value=10),
    factor=st.floats(min_value=1, max_value=100),
    cap=st.floats(min_value=10, max_value=1e6),
    jitter=st.floats(min_value=0, max_value=0.99),
)
def test_a_wait_is_positive_and_never_above_the_cap(
    failures: int, seed: int, base: float, factor: float, cap: float, jitter: float
) -> None:
    backoff = Backoff(base, factor, cap, jitter)
    assert 0 < backoff.delay(failures, random.Random(seed)) <= cap
    assert 0 < backoff.delay(failures, random.Random(seed), unreached=True) <= backoff.connect_cap


def test_waits_double_up_to_the_cap_like_client_go() -> None:
    """The default cap is reached after 18 doublings, not "15 rounds" (operator-framework/operator-sdk#4209)."""
    backoff = Backoff(jitter=0)
    waits = [backoff.delay(failures, random.Random(0)) for failures in range(1, 25)]
    assert waits[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert waits[17] < 1000
    assert waits[18:] == [1000.0] * 6


def test_jitter_spreads_waits_over_its_whole_range() -> None:
    """kube-rs/kube#1897: a jitter option without effect went unnoticed for years."""
    rng = random.Random(7)
    waits = [Backoff(base=1, jitter=0.4).delay(3, rng) for _ in range(4000)]
    assert min(waits) == pytest.approx(4 * 0.6, rel=0.01)
    assert max(waits) == pytest.approx(4.0, rel=0.01)
    assert statistics.mean(waits) == pytest.approx(4 * 0.8, rel=0.02)
    assert statistics.stdev(waits) == pytest.approx(1.6 / 12**0.5, rel=0.05)


@pytest.mark.parametrize(
    "values",
    [
        {"base": 0},
        {"base": -1},
        {"base": float("nan")},
        {"base": 2, "cap": 1},
        {"cap": float("inf")},
        {"factor": 0.5},
        {"jitter": 1},
        {"jitter": -0.1},
        {"connect_cap": 0},
        {"connect_cap": float("nan")},
    ],
)
def test_settings_that_cannot_work_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="needs"):
        Backoff(**values)
