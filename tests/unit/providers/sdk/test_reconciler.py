"""The controller of a provider in virtual time: statuses, wake-ups, trouble of one object, clocks that are set."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import structlog.testing

from fivespot.providers.sdk import (
    ApiModel,
    Context,
    EventNote,
    NoVerdict,
    Provider,
    SpecError,
    Verdict,
    hysteresis,
)
from fivespot.runtime import Key, Resource
from fivespot.runtime.errors import ConnectError

from .stage import START, Stage, at, on_stage

pytestmark = pytest.mark.looptime


class BellSpec(ApiModel):
    """Rings at an instant."""

    rings: str
    fail: str = ""
    enabled: bool = True


def prepare(spec: BellSpec) -> tuple[datetime, BellSpec]:
    if spec.fail == "prepare":
        raise KeyError("a mistake in prepare")
    try:
        return datetime.fromisoformat(spec.rings).astimezone(UTC), spec
    except ValueError:
        raise SpecError(f'spec.rings: "{spec.rings}" is no instant') from None


def decide(rule: tuple[datetime, BellSpec], at: datetime) -> Verdict:
    rings, spec = rule
    if spec.fail == "decide":
        raise ZeroDivisionError("a mistake in decide")
    if not spec.enabled:
        return Verdict(False, None, "Disabled", final=True)
    if at >= rings:
        note = EventNote(reason="Heard", message="it rang", warning=True, once="heard")
        return Verdict(True, None, "Rang", notes=(note,))
    until = at if spec.fail == "until" else rings
    return Verdict(False, until, "Silent", "it will ring")


BELL: Final = Provider("Bell", spec=BellSpec, prepare=prepare, decide=decide)
BELLS: Final = BELL.resource


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.serve(BELLS)
    return stage


def rings(**after: float) -> dict[str, Any]:
    return {"rings": at(**after).isoformat()}


async def test_a_verdict_is_written_once_and_again_at_the_instant_of_its_change(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=3))
    async with on_stage(stage, BELL):
        assert stage.status(BELLS, "noon") == {
            "active": False,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Silent",
                    "message": "it will ring",
                    "lastTransitionTime": "2026-12-01T12:00:00Z",
                    "observedGeneration": 1,
                }
            ],
            "observedGeneration": 1,
            "lastTransitionTime": "2026-12-01T12:00:00Z",
            "nextTransitionTime": "2026-12-01T15:00:00Z",
        }
        await asyncio.sleep(3 * 3600 - 1)
        assert len(stage.writes) == 1
        await asyncio.sleep(2)
        [_, (moment, change)] = stage.writes
        assert 0 <= moment - 3 * 3600 < 0.1
        assert (change["active"], change["nextTransitionTime"]) == (True, None)
        assert stage.status(BELLS, "noon")["lastTransitionTime"] == "2026-12-01T15:00:00Z"
        assert stage.status(BELLS, "noon")["conditions"][0]["lastTransitionTime"] == "2026-12-01T12:00:00Z"
        await asyncio.sleep(7200)
        assert len(stage.writes) == 2
    assert stage.told() == ["Rang", "Heard"]


async def test_a_restart_writes_nothing_and_catches_up_with_what_is_true_now(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=3))
    async with on_stage(stage, BELL):
        pass
    async with on_stage(stage, BELL):
        await asyncio.sleep(60)
    assert len(stage.writes) == 1
    await asyncio.sleep(4 * 3600)
    async with on_stage(stage, BELL):
        assert stage.status(BELLS, "noon")["active"] is True
    assert stage.status(BELLS, "noon")["lastTransitionTime"] == "2026-12-01T16:01:00Z"


async def test_an_edit_takes_effect_at_once_and_a_foreign_status_is_put_right(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=3))
    async with on_stage(stage, BELL):
        stage.apply(BELLS, "noon", rings(hours=-1))
        await asyncio.sleep(1)
        assert stage.status(BELLS, "noon")["active"] is True
        assert stage.status(BELLS, "noon")["observedGeneration"] == 2
        foreign = {"type": "Theirs", "status": "True"}
        status = stage.status(BELLS, "noon")
        stage.put(BELLS, "noon", status={**status, "active": False, "conditions": [foreign, *status["conditions"]]})
        await asyncio.sleep(1)
        assert stage.status(BELLS, "noon")["active"] is True
        assert foreign in stage.status(BELLS, "noon")["conditions"]
        assert all("active" in change for _, change in stage.writes)


@pytest.mark.contract("C10")
@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"rings": "noon"}, "InvalidSpec", 'spec.rings: "noon" is no instant'),
        ({}, "InvalidSpec", "spec.rings: is required"),
        ({"rings": 7}, "InvalidSpec", "spec.rings: 7:"),
        ({**rings(hours=1), "fail": "prepare"}, "DecisionFailed", "reading the spec failed: KeyError: 'a mistake"),
        ({**rings(hours=1), "fail": "decide"}, "DecisionFailed", "failed: ZeroDivisionError: a mistake in decide"),
        ({**rings(hours=1), "fail": "until"}, "DecisionFailed", "which is not after"),
    ],
)
async def test_trouble_is_told_on_the_object_and_leaves_active_as_it_was(
    stage: Stage, spec: dict[str, Any], reason: str, words: str
) -> None:
    stage.apply(BELLS, "was-on", rings(hours=-1))
    stage.apply(BELLS, "good", rings(hours=-1))
    stage.apply(BELLS, "new", spec)
    with structlog.testing.capture_logs():
        async with on_stage(stage, BELL):
            stage.apply(BELLS, "was-on", spec)
            await asyncio.sleep(1)
            assert stage.ready(BELLS, "was-on") == ("False", reason)
            assert stage.status(BELLS, "was-on")["active"] is True
            assert stage.status(BELLS, "was-on")["observedGeneration"] == 2
            assert words in stage.status(BELLS, "was-on")["conditions"][0]["message"]
            assert stage.ready(BELLS, "new") == ("False", reason)
            assert stage.status(BELLS, "new")["active"] is False, "false if it never was"
            assert stage.ready(BELLS, "good") == ("True", "Rang")
            settled = len(stage.writes)
            await asyncio.sleep(7200)
            again = [change for _, change in stage.writes[settled:]]
            assert len(again) <= 2 * 34, "other words for the same, about every five minutes"
            assert reason == "DecisionFailed" or not again, "it is said once"
            stage.apply(BELLS, "was-on", rings(hours=-1))
            await asyncio.sleep(1)
            assert stage.ready(BELLS, "was-on") == ("True", "Rang")
    assert stage.told().count(reason) == 2


async def test_a_spec_that_is_no_object_is_an_invalid_one(stage: Stage) -> None:
    stage.put(BELLS, "odd", spec=None)
    stage.put(BELLS, "none")
    async with on_stage(stage, BELL):
        for name in ("odd", "none"):
            assert stage.ready(BELLS, name) == ("False", "InvalidSpec")


async def test_overrides_are_laid_over_and_remembered_in_status(stage: Stage) -> None:
    stage.apply(BELLS, "noon", {**rings(hours=3), "overrides": [{"name": "now", "active": True}]})
    async with on_stage(stage, BELL):
        status = stage.status(BELLS, "noon")
        assert (status["active"], stage.ready(BELLS, "noon")) == (True, ("True", "Overridden"))
        assert status["overrides"] == [
            {
                "name": "now",
                "active": True,
                "state": "InForce",
                "until": "nextTransition",
                "startedAt": "2026-12-01T12:00:00Z",
                "endsAt": "2026-12-01T15:00:00Z",
            }
        ]
        assert "nextTransitionTime" not in status, "it goes over into the open window"
    await asyncio.sleep(60)
    async with on_stage(stage, BELL):
        await asyncio.sleep(60)
        assert len(stage.writes) == 1, "a restart forgets nothing"
        await asyncio.sleep(3 * 3600)
        assert stage.ready(BELLS, "noon") == ("True", "Rang")
        assert stage.status(BELLS, "noon")["overrides"][0]["state"] == "Expired"
        stage.apply(BELLS, "noon", rings(hours=3))
        await asyncio.sleep(1)
        assert "overrides" not in stage.status(BELLS, "noon")
    assert stage.told() == ["OverrideStarted", "Heard", "OverrideExpired"]


async def test_a_booked_override_starts_and_ends_to_the_second(stage: Stage) -> None:
    booked = {"name": "b", "active": True, "from": "2026-12-01T12:10:00Z", "until": "2026-12-01T12:20:30Z"}
    stage.apply(BELLS, "noon", {**rings(hours=3), "overrides": [booked]})
    async with on_stage(stage, BELL):
        assert stage.status(BELLS, "noon")["nextTransitionTime"] == "2026-12-01T12:10:00Z"
        await asyncio.sleep(3000)
        flips = [(moment, change["active"]) for moment, change in stage.writes]
    assert [active for _, active in flips] == [False, True, False]
    assert [round(moment, 1) for moment, _ in flips[1:]] == [600.0, 1230.0]


async def test_an_override_ends_at_its_instant_also_shortly_after_another_decision(stage: Stage) -> None:
    short = {"name": "short", "active": True, "until": "2026-12-01T12:00:20Z"}
    later = {"name": "later", "active": True, "from": "2026-12-01T12:00:30Z", "until": "2026-12-01T12:00:40Z"}
    stage.apply(BELLS, "noon", {**rings(hours=3), "overrides": [short, later]})
    async with on_stage(stage, BELL) as context:
        await asyncio.sleep(58)
        flips = [(round(moment, 1), change["active"]) for moment, change in stage.writes]
        assert flips == [(0.0, True), (20.0, False), (30.0, True), (40.0, False)]
        assert _runs(context.metrics, "bell") <= 12


async def test_a_final_verdict_beats_overrides_and_a_failing_decision_does_not(stage: Stage) -> None:
    override = [{"name": "now", "active": True, "until": "forever"}]
    stage.apply(BELLS, "final", {**rings(hours=3), "enabled": False, "overrides": override})
    stage.apply(BELLS, "fails", {**rings(hours=3), "fail": "decide", "overrides": override})
    with structlog.testing.capture_logs():
        async with on_stage(stage, BELL):
            assert stage.status(BELLS, "final")["active"] is False
            assert stage.status(BELLS, "final")["overrides"][0]["state"] == "Overruled"
            assert stage.status(BELLS, "fails")["active"] is True
            assert stage.ready(BELLS, "fails") == ("True", "Overridden")
            stage.apply(BELLS, "fails", {**rings(hours=3), "fail": "decide"})
            await asyncio.sleep(1)
            assert stage.ready(BELLS, "fails") == ("False", "DecisionFailed")
            assert stage.status(BELLS, "fails")["active"] is True


async def test_a_clock_that_is_set_is_noticed_for_all_objects(stage: Stage) -> None:
    for number in range(5):
        stage.apply(BELLS, f"bell-{number}", rings(hours=3))
    with structlog.testing.capture_logs() as logs:
        async with on_stage(stage, BELL):
            await asyncio.sleep(100)
            stage.clock.step = timedelta(hours=4)
            await asyncio.sleep(16)
            assert [stage.status(BELLS, f"bell-{number}")["active"] for number in range(5)] == [True] * 5
            stage.clock.step = timedelta(hours=1)
            await asyncio.sleep(16)
            assert not any(stage.status(BELLS, f"bell-{number}")["active"] for number in range(5))
            await asyncio.sleep(2 * 3600)
            assert all(stage.status(BELLS, f"bell-{number}")["active"] for number in range(5))
    assert [record["seconds"] for record in logs if record["event"] == "the wall clock was set"] == [
        14_400.0,
        -10_800.0,
    ]


async def test_a_clock_that_is_set_is_noticed_though_a_check_of_it_was_interrupted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.apply(BELLS, "bell", rings(hours=3))
    pause, reads = 0.0, 0
    monotonic = stage.clock.monotonic

    def interrupted() -> float:
        nonlocal reads
        reads += 1
        return monotonic() + pause * reads

    with structlog.testing.capture_logs() as logs:
        async with on_stage(stage, BELL):
            await asyncio.sleep(20)
            monkeypatch.setattr(stage.clock, "monotonic", interrupted)
            pause, stage.clock.step = 0.1, timedelta(hours=4)
            await asyncio.sleep(15)
            monkeypatch.undo()
            await asyncio.sleep(16)
            assert stage.status(BELLS, "bell")["active"] is True
    assert [record["event"] for record in logs].count("the wall clock was set") == 1


async def test_a_steady_provider_wakes_up_seldom_and_writes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fivespot.providers.sdk.reconciler.LONGEST_SLEEP", 7200.0)
    for number in range(20):
        stage.apply(BELLS, f"bell-{number}", rings(days=90))
    async with on_stage(stage, BELL) as context:
        for number in range(20):
            assert stage.status(BELLS, f"bell-{number}")["active"] is False
        before, written = _runs(context.metrics, "bell"), len(stage.writes)
        await asyncio.sleep(4 * 3600)
        assert len(stage.writes) == written
        assert 20 <= _runs(context.metrics, "bell") - before <= 20 * 4


async def test_many_of_one_instant_are_decided_before_the_first_of_them_is_written(stage: Stage) -> None:
    decided: list[float] = []
    slow = 0.5

    def counted(rule: tuple[datetime, BellSpec], at: datetime) -> Verdict:
        decided.append(asyncio.get_running_loop().time())
        return decide(rule, at)

    provider = Provider("Bell", spec=BellSpec, prepare=prepare, decide=counted)
    for number in range(200):
        stage.apply(BELLS, f"bell-{number}", rings(hours=1))
    async with on_stage(stage, provider):
        await asyncio.sleep(1)
        decided.clear()
        answer = stage._answer

        async def slowly(request: Any) -> Any:
            await asyncio.sleep(slow)
            return answer(request)

        stage.request = slowly  # type: ignore[method-assign]
        await asyncio.sleep(3600 - 1 + 60)
        assert len(decided) == 200
        assert max(decided) - min(decided) < 0.1
        flips = [moment for moment, change in stage.writes if change["active"]]
        assert len(flips) == 200
        assert max(flips) - min(flips) > slow, "writes take turns"
        # Events waited until the statuses were written.
        assert sorted(stage.told()) == sorted(["Rang", "Heard"] * 200)


async def test_an_edit_between_decision_and_write_is_not_written_over(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=3))
    async with on_stage(stage, BELL):
        stage.lagging = True
        stage.apply(BELLS, "noon", rings(hours=-1))
        stage.put(BELLS, "noon", status={**stage.status(BELLS, "noon"), "note": "theirs"})
        stage.apply(BELLS, "noon", rings(hours=5))
        stage.catch_up()
        stage.lagging = False
        await asyncio.sleep(5)
        assert stage.status(BELLS, "noon")["nextTransitionTime"] == "2026-12-01T17:00:00Z"
        assert stage.status(BELLS, "noon")["note"] == "theirs"


async def test_a_server_that_is_away_is_asked_again_and_the_verdict_arrives(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(seconds=10))
    async with on_stage(stage, BELL):
        fault = stage.fault_while(lambda request: request.method == "PATCH", ConnectError("refused"))
        with structlog.testing.capture_logs():
            await asyncio.sleep(40)
            assert stage.status(BELLS, "noon")["active"] is False
            stage.faults.remove(fault)
            await asyncio.sleep(31)
        assert stage.status(BELLS, "noon")["active"] is True


async def test_a_dry_run_writes_nothing_and_shows_what_it_would(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=-1))
    async with on_stage(stage, BELL, dry_run=True) as context:
        [plan] = context.plans.snapshot()
        assert plan["object"] == "ns/noon"
        assert plan["plan"]["status"]["active"] is True
        stage.delete(BELLS, "noon")
        await asyncio.sleep(1)
        assert context.plans.snapshot() == []
    assert stage.writes == []


async def test_metrics_follow_the_objects(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=1))
    async with on_stage(stage, BELL) as context:
        assert 'fivespot_bell_active{name="noon",namespace="ns"} 0.0' in _metrics(context.metrics)
        await asyncio.sleep(3601)
        assert 'fivespot_bell_active{name="noon",namespace="ns"} 1.0' in _metrics(context.metrics)
        assert 'fivespot_bell_transitions_total{name="noon",namespace="ns"} 1.0' in _metrics(context.metrics)
        stage.delete(BELLS, "noon")
        await asyncio.sleep(1)
        assert 'name="noon"' not in _metrics(context.metrics)


# Asking the outside world --------------------------------------------------------------------------------------------


class GaugeSpec(ApiModel):
    """Active while a load is high."""

    source: str = "world"


class World:
    """An outside service that an asynchronous provider asks."""

    def __init__(self) -> None:
        self.load = 0.0
        self.takes = 0.0
        self.error: Exception | None = None
        self.asked: list[float] = []
        self.seen: list[tuple[Any, Any]] = []

    async def decide(self, spec: GaugeSpec, at: datetime, context: Context) -> Verdict:
        self.asked.append(asyncio.get_running_loop().time())
        self.seen.append((context.active, context.since))
        await asyncio.sleep(self.takes if spec.source == "world" else 0)
        if self.error is not None and spec.source == "world":
            raise self.error
        active = hysteresis(self.load, on=0.8, off=0.2, active=context.active)
        return Verdict(active, None, "Busy" if active else "Idle")

    def provider(self, **options: Any) -> Provider[GaugeSpec]:
        return Provider("Gauge", spec=GaugeSpec, decide=self.decide, **options)


GAUGES: Final = Resource("spotschedules.5spot.finos.org", "v1alpha1", "gauges", "Gauge")


async def test_an_asynchronous_provider_is_asked_at_its_interval_and_remembers_what_it_said(stage: Stage) -> None:
    world = World()
    async with on_stage(stage, world.provider(poll=30.0)):
        stage.apply(GAUGES, "load", {})
        await asyncio.sleep(301)
        assert 9 <= len(world.asked) - 1 <= 12, "every 30 s, give or take a tenth"
        assert len(stage.writes) == 1
        for load, active in ((0.5, False), (0.9, True), (0.5, True), (0.1, False)):
            world.load = load
            await asyncio.sleep(34)
            assert stage.status(GAUGES, "load")["active"] is active
    assert world.seen[0] == (None, None)
    assert world.seen[1] == (False, START)
    assert stage.told() == ["Busy", "Idle"]


async def test_the_event_of_its_own_write_that_overtakes_the_answer_asks_nobody_and_others_do(stage: Stage) -> None:
    """A real server often tells its watchers first."""
    world, answer = World(), stage._answer

    async def later(request: Any) -> Any:
        answered = answer(request)
        await asyncio.sleep(1 if request.method == "PATCH" else 0)
        return answered

    stage.request = later  # type: ignore[method-assign]
    async with on_stage(stage, world.provider(poll=3600.0)):
        stage.apply(GAUGES, "load", {})
        await asyncio.sleep(10)
        assert (len(world.asked), len(stage.writes)) == (1, 1)
        # While its write is on its way and the watchers know: another status, and an edit.
        stage.put(GAUGES, "load", status={"active": True})
        await asyncio.sleep(0.5)
        assert len(world.asked) == 2
        stage.put(GAUGES, "load", status={**stage.status(GAUGES, "load"), "note": "theirs"})
        await asyncio.sleep(5)
        assert len(world.asked) == 3
        stage.put(GAUGES, "load", status={"active": True})
        await asyncio.sleep(0.5)
        stage.apply(GAUGES, "load", {"source": "elsewhere"})
        await asyncio.sleep(5)
        assert len(world.asked) == 5
        assert stage.status(GAUGES, "load")["observedGeneration"] == 2


async def test_what_it_said_is_known_after_a_restart_but_not_what_an_override_said(stage: Stage) -> None:
    world = World()
    world.load = 0.9
    async with on_stage(stage, world.provider()):
        stage.apply(GAUGES, "load", {})
        await asyncio.sleep(1)
    async with on_stage(stage, world.provider()):
        assert world.seen[-1] == (True, START)
        stage.apply(GAUGES, "load", {"overrides": [{"name": "no", "active": False, "until": "forever"}]})
        await asyncio.sleep(1)
        assert stage.status(GAUGES, "load")["active"] is False
        assert world.seen[-1] == (True, START), "an override is no word of the provider's"
    async with on_stage(stage, world.provider()):
        assert list(world.seen[-1]) == [None, None]


async def test_an_override_until_the_next_transition_ends_with_the_first_change_that_is_seen(stage: Stage) -> None:
    world = World()
    async with on_stage(stage, world.provider(poll=30.0)):
        stage.apply(GAUGES, "load", {"overrides": [{"name": "now", "active": True}]})
        await asyncio.sleep(120)
        assert stage.ready(GAUGES, "load") == ("True", "Overridden")
        assert stage.status(GAUGES, "load")["overrides"][0]["baseActive"] is False
        world.load = 0.9
        await asyncio.sleep(34)
        assert stage.ready(GAUGES, "load") == ("True", "Busy")
        assert stage.status(GAUGES, "load")["overrides"][0]["state"] == "Expired"


@pytest.mark.parametrize(
    ("error", "takes", "ready"),
    [
        (NoVerdict("SourceDown", "the source is down"), 0.0, ("False", "SourceDown")),
        (NoVerdict("SourceDown", "the source is down", ready="Unknown"), 0.0, ("Unknown", "SourceDown")),
        (RuntimeError("boom"), 0.0, ("False", "DecisionFailed")),
        (TimeoutError("its own"), 0.0, ("False", "DecisionFailed")),
        (None, 60.0, ("False", "DecisionTimedOut")),
    ],
)
async def test_a_source_that_fails_is_told_and_asked_less_and_less_often(
    stage: Stage, error: Exception | None, takes: float, ready: tuple[str, str]
) -> None:
    world = World()
    world.load = 0.9
    with structlog.testing.capture_logs():
        async with on_stage(stage, world.provider(poll=30.0, timeout=5.0)):
            stage.apply(GAUGES, "load", {})
            await asyncio.sleep(1)
            world.error, world.takes = error, takes
            await asyncio.sleep(45)
            assert stage.ready(GAUGES, "load") == ready
            assert stage.status(GAUGES, "load")["active"] is True, "as it was"
            failing, written = len(world.asked), len(stage.writes)
            await asyncio.sleep(3600)
            assert 8 <= len(world.asked) - failing <= 30, "up to five minutes apart"
            assert len(stage.writes) == written, "it is said once"
            world.error, world.takes = None, 0.0
            await asyncio.sleep(301)
            assert stage.ready(GAUGES, "load") == ("True", "Busy")
            assert stage.status(GAUGES, "load")["lastTransitionTime"] == "2026-12-01T12:00:00Z", "no flip came of it"


async def test_an_edited_spec_is_decided_again_soon_however_long_the_one_before_has_failed(stage: Stage) -> None:
    world = World()
    with structlog.testing.capture_logs():
        async with on_stage(stage, world.provider(poll=1.0)):
            world.error = RuntimeError("boom")
            stage.apply(GAUGES, "load", {})
            await asyncio.sleep(1800)
            failing = len(world.asked)
            stage.apply(GAUGES, "load", {"source": "world"})
            await asyncio.sleep(10)
            assert len(world.asked) - failing >= 3, "the back-off begins anew"


async def test_slow_answers_to_many_do_not_keep_the_others_waiting(stage: Stage) -> None:
    world = World()
    async with on_stage(stage, world.provider(timeout=30.0)):
        world.takes = 29.0
        for number in range(100):
            stage.apply(GAUGES, f"slow-{number}", {})
        stage.apply(GAUGES, "quick", {"source": "here"})
        await asyncio.sleep(1)
        assert stage.status(GAUGES, "quick")["active"] is False
        assert "active" not in stage.status(GAUGES, "slow-99")


async def test_words_that_change_with_every_answer_are_written_every_five_minutes_in_the_long_run(stage: Stage) -> None:
    count = 0

    async def counting(spec: GaugeSpec, at: datetime) -> Verdict:
        nonlocal count
        count += 1
        return Verdict(count > 100, None, "Counted", f"asked {count} times")

    provider = Provider("Gauge", spec=GaugeSpec, decide=counting, poll=30.0)
    async with on_stage(stage, provider):
        stage.apply(GAUGES, "load", {})
        await asyncio.sleep(1500)
        assert 13 <= len(stage.writes) <= 17
        await asyncio.sleep(1800)
        flipped = next(moment for moment, change in stage.writes if change["active"])
        assert stage.status(GAUGES, "load")["active"] is True
        assert count > 100
        assert 2700 < flipped < 3300, "a change of the verdict does not wait"


async def test_a_short_trouble_that_asks_for_patience_is_not_told(stage: Stage) -> None:
    world = World()
    world.error = NoVerdict("NotYet", "wait", ready="Unknown", patience=30.0, retry=5.0)
    with structlog.testing.capture_logs():
        async with on_stage(stage, world.provider()):
            stage.apply(GAUGES, "load", {})
            await asyncio.sleep(25)
            assert stage.writes == []
            world.error = None
            await asyncio.sleep(8)
            assert stage.ready(GAUGES, "load") == ("True", "Idle")
            world.error = NoVerdict("NotYet", "wait", ready="Unknown", patience=30.0, retry=5.0)
            stage.apply(GAUGES, "load", {"source": "world", "overrides": []})
            await asyncio.sleep(40)
            assert stage.ready(GAUGES, "load") == ("Unknown", "NotYet")


def _runs(metrics: Any, controller: str) -> float:
    return sum(
        float(line.rpartition(" ")[2])
        for line in _metrics(metrics).splitlines()
        if line.startswith(f'controller_runtime_reconcile_total{{controller="{controller}"')
    )


def _metrics(metrics: Any) -> str:
    rendered: bytes = metrics.render()
    return rendered.decode()


async def test_an_object_that_is_being_deleted_keeps_its_verdict_true_until_it_is_gone(stage: Stage) -> None:
    stage.apply(BELLS, "noon", rings(hours=1))
    async with on_stage(stage, BELL):
        spec = stage.get(BELLS, "noon")["spec"]
        stage.put(BELLS, "noon", spec=spec, deletionTimestamp="2026-12-01T12:00:00Z", finalizers=["example.com/hold"])
        await asyncio.sleep(2 * 3600)
        assert stage.status(BELLS, "noon")["active"] is True, "it rang at 13:00 although a finalizer holds it"
        assert stage.ready(BELLS, "noon") == ("True", "Rang")
        stage.delete(BELLS, "noon")
        await asyncio.sleep(1)
        assert Key("ns", "noon") not in stage.objects[BELLS.collection_path()]


class BulkySpec(ApiModel):
    """As large as a schedule can be."""

    text: str


async def test_edits_of_many_large_objects_leave_the_loop_to_others_after_each_of_them(stage: Stage) -> None:
    turn, prepared, decided = 0, list[int](), list[int]()

    def prepare_bulky(spec: BulkySpec) -> BulkySpec:
        prepared.append(turn)
        return spec

    def decide_bulky(spec: BulkySpec, at: datetime) -> Verdict:
        decided.append(turn)
        return Verdict(True)

    bulky = Provider("Bulky", spec=BulkySpec, prepare=prepare_bulky, decide=decide_bulky)
    async with on_stage(stage, bulky):
        for number in range(8):
            stage.apply(bulky.resource, f"b{number}", {"text": "x" * 60_000})
        while len(decided) < 8:
            turn += 1
            assert turn < 5000
            await asyncio.sleep(0)
            if turn % 100 == 0:
                await asyncio.sleep(0.01)
    assert len(set(prepared)) == len(prepared) == 8
    assert len(set(decided)) == len(decided) == 8
