"""ManualSchedule: a switch, and going by other schedules that come, go, change, fail and form circles."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
import structlog.testing

from fivespot.api import InvalidObject, validate
from fivespot.contract import Display, Reference, Resolution, Resolved, Unreadable, Unresolved
from fivespot.providers.manual.provider import (
    BASE_CYCLE,
    BASE_UNRESOLVED,
    MANUAL_SCHEDULES,
    PROVIDER,
    ManualScheduleSpec,
    decide,
)
from fivespot.providers.sdk import Context, NoVerdict
from fivespot.runtime import Key, Resource
from unit.providers.sdk.stage import START, Stage, on_stage

pytestmark = pytest.mark.looptime

PLAYED: Final = Resource("spotschedules.5spot.finos.org", "v1alpha1", "playedschedules", "PlayedSchedule")


def base(name: str, kind: str = "PlayedSchedule", **more: Any) -> dict[str, Any]:
    return {"base": {"kind": kind, "name": name}, **more}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "exactly one of enabled and base"),
        ({"enabled": True, "base": {"kind": "K", "name": "n"}}, "exactly one of enabled and base"),
        ({"base": {"kind": "k", "name": "n"}}, 'spec.base.kind: "k": must be a kind'),
        ({"base": {"kind": "K", "name": "A/b"}}, 'spec.base.name: "A/b": must be the name'),
        ({"base": {"kind": "K"}}, "spec.base.name: is required"),
        ({"enabled": "yes"}, "spec.enabled"),
    ],
)
def test_exactly_one_of_switch_and_base_is_given(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidObject) as refused:
        validate(PROVIDER.model, spec)
    assert words in str(refused.value)


# Decisions -----------------------------------------------------------------------------------------------------------


class Others:
    """Other schedules, as a context shows them."""

    def __init__(self, reading: Resolution | None = None, /, **chain: dict[str, Any]) -> None:
        self.reading = reading or Resolved(True)
        self.chain = chain

    def schedule(self, namespace: str, reference: Reference, field: str, /) -> Resolution:
        assert field == "spec.base"
        return self.reading

    def get(self, resource: Resource, key: Key, /) -> dict[str, Any] | None:
        assert resource == MANUAL_SCHEDULES
        spec = self.chain.get(key.name)
        return None if spec is None else {"spec": spec}


def decided(spec: dict[str, Any], others: Others, name: str = "m0") -> Any:
    return decide(validate(ManualScheduleSpec, spec), START, Context("ns", name, reader=others))


@pytest.mark.parametrize("on", [True, False])
def test_the_switch_says(on: bool) -> None:
    verdict = decided({"enabled": on}, Others())
    assert (verdict.active, verdict.until, verdict.foreseen) == (on, None, True)
    assert verdict.reason == ("Enabled" if on else "Disabled")


@pytest.mark.parametrize("on", [True, False])
def test_the_base_says_and_its_texts_are_not_copied(on: bool) -> None:
    verdict = decided(base("b"), Others(Resolved(on, Display(message="whatever it says"))))
    assert (verdict.active, verdict.until, verdict.foreseen) == (on, None, False)
    assert verdict.reason == ("BaseActive" if on else "BaseInactive")
    assert "whatever" not in verdict.message


def test_a_base_without_a_verdict_is_told_with_the_reason_of_the_contract_and_none_of_its_texts() -> None:
    with pytest.raises(NoVerdict) as none:
        decided(base("b"), Others(Unresolved("ProviderNotFound", "PlayedSchedule/b does not exist")))
    assert (none.value.reason, none.value.ready, none.value.patience) == (BASE_UNRESOLVED, "False", 0)
    assert none.value.message == "ProviderNotFound: PlayedSchedule/b does not exist"
    with pytest.raises(NoVerdict) as none:
        decided(base("b"), Others(Unresolved("ProviderNotReady", "PlayedSchedule/b is not Ready: a hostile text")))
    assert none.value.message == "ProviderNotReady: PlayedSchedule/b is not Ready; its own condition says why"


def test_a_base_that_cannot_be_read_says_nothing_and_is_told_when_it_lasts() -> None:
    with pytest.raises(NoVerdict) as none:
        decided(base("b"), Others(Unreadable("not listed yet")))
    assert (none.value.reason, none.value.ready, none.value.patience) == (BASE_UNRESOLVED, "Unknown", 30)


def chain(length: int) -> dict[str, dict[str, Any]]:
    """ManualSchedules m1 to m<length>, each going by the next, and the last by a schedule of another kind."""
    links: dict[str, dict[str, Any]] = {
        f"m{number}": base(f"m{number + 1}", "ManualSchedule") for number in range(1, length)
    }
    return {**links, f"m{length}": base("end")} if length else {}


@pytest.mark.contract("C3")
def test_eight_bases_may_follow_one_another_and_no_more() -> None:
    assert decided(base("m1", "ManualSchedule"), Others(None, **chain(7))).active
    with pytest.raises(NoVerdict) as none:
        decided(base("m1", "ManualSchedule"), Others(None, **chain(8)))
    assert none.value.reason == BASE_CYCLE
    assert "more than 8" in none.value.message


@pytest.mark.parametrize(
    ("links", "path"),
    [
        ({}, "m0 -> m0"),
        ({"m1": base("m0", "ManualSchedule")}, "m0 -> m1 -> m0"),
        ({"m1": base("m2", "ManualSchedule"), "m2": base("m1", "ManualSchedule")}, "m0 -> m1 -> m2 -> m1"),
    ],
)
def test_a_chain_that_returns_is_a_cycle_whoever_is_in_it(links: dict[str, Any], path: str) -> None:
    first = "m1" if links else "m0"
    with pytest.raises(NoVerdict) as none:
        decided(base(first, "ManualSchedule"), Others(None, **links))
    assert none.value.reason == BASE_CYCLE
    assert none.value.message.endswith(path)


@pytest.mark.parametrize(
    "broken", [{"base": None}, {"base": []}, {"base": {"kind": 1, "name": "x"}}, {"enabled": True}]
)
def test_a_chain_ends_where_there_is_no_base(broken: dict[str, Any]) -> None:
    assert decided(base("m1", "ManualSchedule"), Others(m1=broken)).active


# Going by others -----------------------------------------------------------------------------------------------------


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.serve(PLAYED)
    stage.serve(MANUAL_SCHEDULES)
    return stage


def says(stage: Stage, name: str, active: Any, **status: Any) -> None:
    stage.put(PLAYED, name, spec={}, status={"active": active, **status})


async def test_it_follows_its_base_through_verdicts_trouble_and_absence(stage: Stage) -> None:
    says(stage, "b", True)
    stage.apply(MANUAL_SCHEDULES, "m", base("b"))
    with structlog.testing.capture_logs():
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(2)
            assert (stage.status(MANUAL_SCHEDULES, "m")["active"], stage.ready(MANUAL_SCHEDULES, "m")) == (
                True,
                ("True", "BaseActive"),
            )
            says(stage, "b", False)
            await asyncio.sleep(0.2)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseInactive")
            says(stage, "b", True)
            await asyncio.sleep(0.2)
            not_ready = [{"type": "Ready", "status": "False", "reason": "X", "message": "y"}]
            says(stage, "b", False, conditions=not_ready)
            await asyncio.sleep(0.2)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("False", BASE_UNRESOLVED)
            assert stage.status(MANUAL_SCHEDULES, "m")["active"] is True, "as it was"
            # A flapping text of the base reaches nobody.
            written = len(stage.writes)
            for number in range(20):
                says(stage, "b", False, conditions=[{**not_ready[0], "message": f"y{number}"}])
                await asyncio.sleep(0.2)
            assert len(stage.writes) == written
            stage.delete(PLAYED, "b")
            await asyncio.sleep(0.2)
            assert "ProviderNotFound" in stage.status(MANUAL_SCHEDULES, "m")["conditions"][0]["message"]
            says(stage, "b", False)
            await asyncio.sleep(0.2)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseInactive")
            stage.apply(MANUAL_SCHEDULES, "m", {"enabled": True})
            await asyncio.sleep(0.2)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "Enabled")
            written = len(stage.writes)
            says(stage, "b", True)
            await asyncio.sleep(60)
            assert len(stage.writes) == written, "it is its base no longer"


async def test_a_kind_that_is_installed_later_is_followed_and_one_that_is_withdrawn_is_told(stage: Stage) -> None:
    stage.withdraw(PLAYED)
    stage.apply(MANUAL_SCHEDULES, "m", base("b"))
    with structlog.testing.capture_logs():
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(2)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("False", BASE_UNRESOLVED)
            assert "ProviderCRDNotInstalled" in stage.status(MANUAL_SCHEDULES, "m")["conditions"][0]["message"]
            stage.serve(PLAYED)
            says(stage, "b", True)
            await asyncio.sleep(5)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseActive")
            stage.withdraw(PLAYED)
            await asyncio.sleep(5)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("False", BASE_UNRESOLVED)
            assert stage.status(MANUAL_SCHEDULES, "m")["active"] is True


@pytest.mark.contract("C3")
async def test_what_cannot_be_read_is_no_verdict_and_is_told_after_half_a_minute(stage: Stage) -> None:
    says(stage, "b", True)
    stage.apply(MANUAL_SCHEDULES, "m", base("b"))
    with structlog.testing.capture_logs():
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(2)
        collection = PLAYED.collection_path()
        refused = stage.objects.pop(collection)
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(20)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseActive"), "a restart reports nothing"
            await asyncio.sleep(20)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("Unknown", BASE_UNRESOLVED)
            assert stage.status(MANUAL_SCHEDULES, "m")["active"] is True
            stage.objects[collection] = refused
            await asyncio.sleep(40)
            assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseActive")


async def test_a_chain_passes_verdicts_on_and_a_circle_is_told_to_all_in_it_until_it_is_cut(stage: Stage) -> None:
    says(stage, "end", False)
    for number in range(3):
        stage.apply(MANUAL_SCHEDULES, f"m{number}", base(f"m{number + 1}", "ManualSchedule"))
    stage.apply(MANUAL_SCHEDULES, "m3", base("end"))
    names = [f"m{number}" for number in range(4)]
    with structlog.testing.capture_logs():
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(5)
            says(stage, "end", True)
            await asyncio.sleep(1)
            assert [stage.ready(MANUAL_SCHEDULES, name) for name in names] == [("True", "BaseActive")] * 4
            stage.apply(MANUAL_SCHEDULES, "m3", base("m1", "ManualSchedule"))
            await asyncio.sleep(5)
            assert [stage.ready(MANUAL_SCHEDULES, name) for name in names] == [("False", BASE_CYCLE)] * 4
            assert all(stage.status(MANUAL_SCHEDULES, name)["active"] for name in names)
            written = len(stage.writes)
            await asyncio.sleep(600)
            assert len(stage.writes) == written, "a circle does not spin"
            # An override cuts through it, and those that go by it follow.
            override = {"overrides": [{"name": "cut", "active": False, "until": "forever"}]}
            stage.apply(MANUAL_SCHEDULES, "m2", base("m3", "ManualSchedule", **override))
            await asyncio.sleep(1)
            assert stage.ready(MANUAL_SCHEDULES, "m2") == ("True", "Overridden")
            stage.apply(MANUAL_SCHEDULES, "m2", base("m3", "ManualSchedule"))
            stage.apply(MANUAL_SCHEDULES, "m3", {"enabled": False})
            await asyncio.sleep(5)
            assert stage.ready(MANUAL_SCHEDULES, "m3") == ("True", "Disabled")
            assert [stage.ready(MANUAL_SCHEDULES, name) for name in names[:3]] == [("True", "BaseInactive")] * 3


async def test_a_chain_that_gets_too_long_far_away_is_noticed(stage: Stage) -> None:
    says(stage, "end", True)
    for number in range(7):
        stage.apply(MANUAL_SCHEDULES, f"m{number}", base(f"m{number + 1}", "ManualSchedule"))
    stage.apply(MANUAL_SCHEDULES, "m7", base("end"))
    stage.apply(MANUAL_SCHEDULES, "extra", base("end"))
    with structlog.testing.capture_logs():
        async with on_stage(stage, PROVIDER):
            await asyncio.sleep(5)
            assert stage.ready(MANUAL_SCHEDULES, "m0") == ("True", "BaseActive")
            stage.apply(MANUAL_SCHEDULES, "m7", base("extra", "ManualSchedule"))
            await asyncio.sleep(1)
            assert stage.ready(MANUAL_SCHEDULES, "m0") == ("False", BASE_CYCLE)
            assert stage.ready(MANUAL_SCHEDULES, "m1") == ("True", "BaseActive")


async def test_an_override_to_the_next_transition_ends_with_the_base(stage: Stage) -> None:
    says(stage, "b", False)
    stage.apply(MANUAL_SCHEDULES, "m", base("b", overrides=[{"name": "now", "active": True}]))
    async with on_stage(stage, PROVIDER):
        await asyncio.sleep(60)
        assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "Overridden")
        says(stage, "b", True)
        await asyncio.sleep(1)
        assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseActive")
        says(stage, "b", False)
        await asyncio.sleep(1)
        assert stage.ready(MANUAL_SCHEDULES, "m") == ("True", "BaseInactive"), "it is over"
