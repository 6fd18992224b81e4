"""The functions of a provider are foreign code: whatever they do has an outcome that can be reported."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.providers.sdk import ApiModel, Context, NoVerdict, Provider, SpecError, Verdict
from fivespot.providers.sdk.decider import DECISION_TIMED_OUT, Decider, DecisionFailure
from fivespot.testing.virtual_time import run_virtual

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
HERE = Context("ns", "x")


class Switch(ApiModel):
    enabled: bool


def provider(decide: Any = lambda spec, at: Verdict(spec.enabled), **options: Any) -> Decider[Switch]:
    return Decider(Provider("Switch", spec=Switch, decide=decide, **options))


def now(decider: Decider[Switch], **spec: Any) -> Verdict | DecisionFailure:
    return decider.decide_now(decider.prepare("u", 1, {"enabled": True} | spec), NOW, HERE)


def test_a_verdict_is_passed_on() -> None:
    assert now(provider()) == Verdict(True)
    assert now(provider(), enabled=False) == Verdict(False)


@pytest.mark.parametrize(
    ("decide", "reason", "said"),
    [
        (lambda spec, at: None, "DecisionFailed", "instead of a Verdict"),
        (lambda spec, at: True, "DecisionFailed", "instead of a Verdict"),
        (lambda spec, at: Verdict(True, at), "DecisionFailed", "not after"),
        (lambda spec, at: Verdict(True, at - HOUR), "DecisionFailed", "not after"),
        (lambda spec, at: 1 // 0, "DecisionFailed", "ZeroDivisionError"),
        (lambda spec, at: (_ for _ in ()).throw(RecursionError("deep")), "DecisionFailed", "RecursionError"),
    ],
    ids=["nothing", "a boolean", "a change now", "a change in the past", "an error", "too deep"],
)
def test_a_decision_that_fails_is_a_failure_of_this_object(decide: Any, reason: str, said: str) -> None:
    found = now(provider(decide))
    assert isinstance(found, DecisionFailure)
    assert found.reason == reason
    assert said in found.message


def test_no_verdict_keeps_all_that_the_provider_said() -> None:
    def decide(spec: Switch, at: datetime) -> Verdict:
        raise NoVerdict("SourceUnavailable", "no answer", ready="Unknown", patience=30, retry=5)

    assert now(provider(decide)) == DecisionFailure("SourceUnavailable", "no answer", "Unknown", 30, 5)


@pytest.mark.parametrize("spec", [{}, {"enabled": "yes"}, {"enabled": None}])
def test_a_spec_that_the_model_refuses_is_invalid_and_names_the_field(spec: dict[str, Any]) -> None:
    found = provider().prepare("u", 1, spec)
    assert found.failure is not None
    assert found.failure.reason == "InvalidSpec"
    assert "spec." in found.failure.message


def test_what_prepare_raises_is_told_apart() -> None:
    def invalid(spec: Switch) -> Switch:
        raise SpecError("spec.enabled: cannot be followed")

    def broken(spec: Switch) -> Switch:
        raise KeyError("x")

    found = provider(prepare=invalid).prepare("u", 1, {"enabled": True}).failure
    assert found is not None
    assert (found.reason, found.message) == ("InvalidSpec", "spec.enabled: cannot be followed")
    found = provider(prepare=broken).prepare("u", 1, {"enabled": True}).failure
    assert found is not None
    assert found.reason == "DecisionFailed"


# Providers that ask others -------------------------------------------------------------------------------------------


def ask(decide: Any, **options: Any) -> Verdict | DecisionFailure:
    async def main() -> Verdict | DecisionFailure:
        decider = provider(decide, **options)
        return await decider.decide(decider.prepare("u", 1, {"enabled": True}), NOW, HERE)

    return run_virtual(main())


def test_an_answer_that_takes_too_long_is_cut_off_and_said() -> None:
    async def decide(spec: Switch, at: datetime) -> Verdict:
        await asyncio.sleep(100)
        return Verdict(True)

    found = ask(decide, timeout=5)
    assert isinstance(found, DecisionFailure)
    assert found.reason == DECISION_TIMED_OUT
    assert "5 s" in found.message


def test_a_time_out_of_the_providers_own_is_not_taken_for_ours() -> None:
    async def decide(spec: Switch, at: datetime) -> Verdict:
        raise TimeoutError("the source")

    found = ask(decide, timeout=5)
    assert isinstance(found, DecisionFailure)
    assert found.reason == "DecisionFailed"


def test_an_answer_without_an_end_may_change_at_any_time() -> None:
    async def endless(spec: Switch, at: datetime) -> Verdict:
        return Verdict(True)

    async def until(spec: Switch, at: datetime) -> Verdict:
        return Verdict(True, at + HOUR)

    found = ask(endless)
    assert isinstance(found, Verdict)
    assert not found.foreseen
    found = ask(until)
    assert isinstance(found, Verdict)
    assert found.foreseen


# The verdict at other instants ---------------------------------------------------------------------------------------


def test_a_pure_provider_is_asked_for_other_instants() -> None:
    decider = provider(lambda spec, at: Verdict(at >= NOW + HOUR))
    rule = decider.rule(decider.prepare("u", 1, {"enabled": True}), Verdict(False, NOW + HOUR), NOW, HERE)
    assert [rule(NOW).active, rule(NOW + HOUR).active, rule(NOW + 3 * HOUR).active] == [False, True, True]


def test_where_it_cannot_be_asked_the_announced_change_is_assumed() -> None:
    def decide(spec: Switch, at: datetime, context: Context) -> Verdict:
        raise AssertionError("what others say cannot be known for another instant")

    decider = provider(decide)
    rule = decider.rule(decider.prepare("u", 1, {"enabled": True}), Verdict(True, NOW + HOUR), NOW, HERE)
    assert [rule(NOW).active, rule(NOW + HOUR / 2).active, rule(NOW + HOUR).active] == [True, True, False]
