"""Retries of requests."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.client import NO_RETRY, Repeat, RetryPolicy
from fivespot.runtime.errors import (
    BrokenStreamError,
    ConnectError,
    DeadlineError,
    FivespotError,
    ProtocolError,
    TransportError,
    api_error,
)
from support.faulty_servers import FixedRandom

POLICY = RetryPolicy()
FREELY, REFUSED, UNSENT = Repeat.ALWAYS, Repeat.REFUSED, Repeat.UNSENT


def refusal(status: int, retry_after: float | None = None) -> FivespotError:
    return api_error(status, "", "no", request="x", retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "repeated_for"),
    [
        (ConnectError("x"), {FREELY, REFUSED, UNSENT}),
        (TransportError("x"), {FREELY}),
        (BrokenStreamError("x"), {FREELY}),
        (DeadlineError("x"), {FREELY}),
        (refusal(429), {FREELY}),
        (refusal(503), {FREELY}),
        (refusal(504), {FREELY}),
        (refusal(429, 1.0), {FREELY, REFUSED}),
        (refusal(503, 1.0), {FREELY, REFUSED}),
        (refusal(504, 1.0), {FREELY, REFUSED}),
        (refusal(500, 1.0), set()),
        (refusal(502), set()),
        (refusal(400), set()),
        (refusal(401), set()),
        (refusal(403), set()),
        (refusal(404), set()),
        (refusal(409), set()),
        (refusal(410), set()),
        (refusal(422), set()),
        (ProtocolError("x"), set()),
    ],
    # A set has no order of its own, and every worker must give a test the same name.
    ids=lambda value: "+".join(sorted(map(str, value))) or "nothing" if isinstance(value, set) else str(value)[:40],
)
def test_which_failures_are_repeated(error: FivespotError, repeated_for: set[Repeat]) -> None:
    chosen = {repeat for repeat in Repeat if POLICY.delay(1, error, FixedRandom(), repeat) is not None}
    assert chosen == repeated_for


def test_the_wait_doubles_to_the_cap_and_then_ends() -> None:
    policy = RetryPolicy(attempts=6, base=1.0, cap=5.0)
    waits = [policy.delay(attempt, ConnectError("x"), FixedRandom()) for attempt in range(1, 7)]
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0, None]


def test_a_deadline_is_repeated_once_only() -> None:
    assert POLICY.delay(1, DeadlineError("x"), FixedRandom()) is not None
    assert POLICY.delay(2, DeadlineError("x"), FixedRandom()) is None


def test_a_server_that_asks_for_more_than_the_cap_gets_no_repetition() -> None:
    assert POLICY.delay(1, refusal(429, POLICY.cap), FixedRandom()) == POLICY.cap
    assert POLICY.delay(1, refusal(429, POLICY.cap + 0.1), FixedRandom()) is None


def test_no_retry_sends_once() -> None:
    assert NO_RETRY.delay(1, ConnectError("x"), FixedRandom()) is None


@given(
    st.integers(1, 50),
    st.floats(0, 100),
    st.integers(0, 2**32),
    st.builds(
        RetryPolicy,
        attempts=st.integers(1, 60),
        base=st.floats(0.001, 10),
        cap=st.floats(0.1, 100),
        jitter=st.floats(0, 1),
    ),
)
def test_no_wait_is_shorter_than_asked_or_longer_than_cap_and_jitter(
    attempt: int, asked: float, seed: int, policy: RetryPolicy
) -> None:
    wait = policy.delay(attempt, refusal(429, asked), random.Random(seed))
    if wait is not None:
        assert asked <= wait <= policy.cap * (1 + policy.jitter)
        assert attempt < policy.attempts
    else:
        assert attempt >= policy.attempts or asked > policy.cap


def test_sixty_throttled_clients_do_not_come_back_together() -> None:
    """kube-rs#717, kube-rs#1897: throttled clients must spread out."""
    waits = [RetryPolicy().delay(1, refusal(429, 7.0), random.Random(seed)) for seed in range(60)]
    assert all(wait is not None and 7.0 <= wait <= 10.5 for wait in waits)
    seconds = sorted(wait for wait in waits if wait is not None)
    assert seconds[-1] - seconds[0] > 2.5
    assert max(sum(1 for other in seconds if second <= other < second + 0.25) for second in seconds) < 15
