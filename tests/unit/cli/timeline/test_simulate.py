"""Schedules decide as their controllers would: overrides, bases, and what a file cannot tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fivespot.cli.timeline.forecast import DecisionFailed, Forecast, Period, Transition
from fivespot.cli.timeline.schedules import Schedule, find_schedules, select, zone_name
from fivespot.cli.timeline.simulate import Simulation, prepare
from fivespot.providers.registry import shipped_provider
from fivespot.providers.sdk import ApiModel, Context, NoVerdict, Provider, Verdict
from fivespot.runtime import ConfigError, Resource
from unit.cli.timeline.samples import Json, forecast, manual, schedule, timebased

MONDAY = datetime(2027, 1, 4, tzinfo=UTC)
HOURS: Json = {"windows": [{"days": ["mon-sun"], "start": "08:00", "end": "18:00"}]}


def at(hour: float, day: int = 4) -> datetime:
    return datetime(2027, 1, day, tzinfo=UTC) + timedelta(hours=hour)


def changes(found: Forecast, end: datetime) -> list[tuple[datetime, bool]]:
    return [(change.at, change.active) for change in found.changes(end)]


def with_override(**entry: object) -> Json:
    return timebased(spec={**HOURS, "overrides": [{"name": "o", **entry}]})


# Overrides -----------------------------------------------------------------------------------------------------------


def test_an_override_with_instants_decides_between_them() -> None:
    body = with_override(active=True, **{"from": "2027-01-04T20:00:00Z"}, until="2027-01-04T22:00:00Z")
    assert changes(forecast([body], MONDAY), at(12, 5)) == [
        (at(8), True),
        (at(18), False),
        (at(20), True),
        (at(22), False),
        (at(8, 5), True),
    ]


def test_an_override_until_the_next_transition_starts_when_the_period_does() -> None:
    found = forecast([with_override(active=True, until="nextTransition")], MONDAY)
    assert found.initial is True
    assert changes(found, at(24)) == [(at(18), False)], "at 08:00 the rule takes over, and says the same"
    [started] = [note for note in found.notes if note.reason == "OverrideStarted"]
    assert "2027-01-04T00:00:00Z" in started.message


def test_an_override_that_status_remembers_keeps_its_end() -> None:
    """It is a file from a cluster: the override was seen a day before, and ended at the change after that."""
    body = with_override(active=True, until="nextTransition")
    body["status"] = {
        "active": True,
        "overrides": [
            {
                "name": "o",
                "active": True,
                "state": "InForce",
                "until": "nextTransition",
                "startedAt": "2027-01-02T20:00:00Z",
                "endsAt": "2027-01-03T08:00:00Z",
            }
        ],
    }
    assert forecast([body], MONDAY).initial is False


def test_an_override_for_ever_never_ends() -> None:
    found = forecast([with_override(active=False, until="forever")], MONDAY)
    assert (found.initial, changes(found, at(0, 30)), found.settled) == (False, [], True)


def test_a_disabled_schedule_beats_its_overrides() -> None:
    body = timebased(spec={**HOURS, "enabled": False, "overrides": [{"name": "o", "active": True, "until": "forever"}]})
    assert forecast([body], MONDAY).initial is False


# Bases ---------------------------------------------------------------------------------------------------------------


def test_a_manual_schedule_follows_its_base_of_the_same_file() -> None:
    objects = [manual("m", {"base": {"kind": "TimeBasedSpotSchedule", "name": "hours"}}), timebased(spec=HOURS)]
    assert changes(forecast(objects, MONDAY), at(12, 5)) == changes(forecast(objects[1:], MONDAY), at(12, 5))


def test_overrides_of_the_base_and_of_the_follower_both_count() -> None:
    base = with_override(active=True, **{"from": "2027-01-04T20:00:00Z"}, until="2027-01-04T22:00:00Z")
    spec = {
        "base": {"kind": "TimeBasedSpotSchedule", "name": "hours"},
        "overrides": [
            {"name": "off", "active": False, "from": "2027-01-04T21:00:00Z", "until": "2027-01-05T09:00:00Z"}
        ],
    }
    found = forecast([manual("m", spec), base], MONDAY)
    assert changes(found, at(12, 5)) == [
        (at(8), True),
        (at(18), False),
        (at(20), True),
        (at(21), False),
        (at(9, 5), True),
    ]


def test_an_override_until_the_next_transition_of_a_base_ends_with_it() -> None:
    spec = {
        "base": {"kind": "TimeBasedSpotSchedule", "name": "hours"},
        "overrides": [{"name": "on", "active": True, "until": "nextTransition"}],
    }
    found = forecast([manual("m", spec), timebased(spec=HOURS)], MONDAY)
    assert found.initial is True
    assert changes(found, at(24)) == [(at(18), False)]


def test_a_switch_is_the_same_for_ever() -> None:
    found = forecast([manual("m", {"enabled": True})], MONDAY)
    assert (found.initial, found.next_change(at(1)), found.settled) == (True, None, True)


def test_a_switch_with_a_base_beneath_an_override_for_ever_has_no_change_in_sight() -> None:
    spec = {
        "base": {"kind": "TimeBasedSpotSchedule", "name": "hours"},
        "overrides": [{"name": "on", "active": True, "until": "forever"}],
    }
    found = forecast([manual("m", spec), timebased(spec=HOURS)], MONDAY)
    assert (found.initial, changes(found, at(0, 30)), found.next_change(at(0, 30))) == (True, [], None)
    assert not found.settled, "its base goes on"


def test_a_base_that_is_not_in_the_file_is_asked_for() -> None:
    with pytest.raises(
        ConfigError, match=r"spec\.base names TimeBasedSpotSchedule/gone, which the files do not contain"
    ):
        forecast([manual("m", {"base": {"kind": "TimeBasedSpotSchedule", "name": "gone"}})], MONDAY)


def test_bases_in_a_circle_are_told_as_such() -> None:
    def follow(name: str) -> Json:
        return {"base": {"kind": "ManualSchedule", "name": name}}

    with pytest.raises(ConfigError, match=r"ManualSchedule/a: .*BaseCycle: .*"):
        forecast([manual("a", follow("b")), manual("b", follow("c")), manual("c", follow("a"))], MONDAY)
    chain = [manual(f"m{number}", follow(f"m{number + 1}")) for number in range(12)]
    with pytest.raises(ConfigError, match=r"ManualSchedule/m0: .*BaseCycle: .*8"):
        forecast([*chain, manual("m12", {"enabled": True})], MONDAY)


def test_the_zone_of_a_base_is_that_of_its_followers() -> None:
    follower = manual("m", {"base": {"kind": "TimeBasedSpotSchedule", "name": "hours"}})
    schedules = find_schedules([follower, timebased()])
    assert [zone_name(each, schedules) for each in schedules] == ["Europe/Berlin", "Europe/Berlin"]
    [alone] = find_schedules([manual("m", {"enabled": True})])
    assert zone_name(alone, [alone]) == "UTC"
    circle = find_schedules([manual("m", {"base": {"kind": "ManualSchedule", "name": "m"}})])
    assert zone_name(circle[0], circle) == "UTC"


# Which one -----------------------------------------------------------------------------------------------------------


def named(*bodies: Json) -> list[Schedule]:
    return find_schedules(bodies)


def test_schedules_are_found_among_other_objects_and_chosen_by_name() -> None:
    other = {"apiVersion": "5spot.finos.org/v1beta1", "kind": "ScheduledMachine", "metadata": {"name": "web"}}
    found = named(other, timebased("a"), manual("a", {"enabled": True}), timebased("b"))
    assert [str(each) for each in found] == ["TimeBasedSpotSchedule/a", "ManualSchedule/a", "TimeBasedSpotSchedule/b"]
    assert [each.kind for each in select(found, "a", where="f")] == ["TimeBasedSpotSchedule", "ManualSchedule"]
    assert [each.kind for each in select(found, "manualschedule/a", where="f")] == ["ManualSchedule"]
    with pytest.raises(ConfigError, match="--name bb: f contains no such schedule; did you mean b"):
        select(found, "bb", where="f")
    with pytest.raises(ConfigError, match="f contains no schedule"):
        select(named(other), None, where="f")


def test_of_many_schedules_a_message_names_some() -> None:
    found = named(*(timebased(f"s{number:02}") for number in range(12)))
    with pytest.raises(ConfigError, match=r"TimeBasedSpotSchedule/s09 and 2 more$"):
        select(found, "x", where="f")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({**timebased(), "metadata": {}}, "metadata.name is required"),
        (
            {**timebased(), "apiVersion": "5spot.finos.org/v1beta1"},
            "apiVersion is '5spot.finos.org/v1beta1', it must be",
        ),
    ],
)
def test_an_object_that_cannot_be_a_schedule_is_a_mistake(body: Json, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        named(body)


def test_two_of_one_name_are_a_mistake_unless_in_two_namespaces() -> None:
    with pytest.raises(ConfigError, match="TimeBasedSpotSchedule hours occurs twice"):
        named(timebased(), timebased())
    elsewhere = timebased()
    elsewhere["metadata"]["namespace"] = "team-b"
    assert len(named(timebased(), elsewhere)) == 2


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"timezone": "W. Europe Standard Time"}, "Europe/Berlin"),
        ({"timezone": "Europe/Berlni"}, 'spec.timezone: "Europe/Berlni" .*did you mean "Europe/Berlin"'),
        ({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-25"]}, r"spec\.hoursOfDay"),
        ({"daysofWeek": ["mon-fri"]}, r"spec\.daysofWeek: there is no such field; did you mean daysOfWeek\?"),
        ({"windows": [{"days": ["mon"], "start": "08:00", "end": "08:00"}]}, r"spec\.windows\[0\]"),
        ({"overrides": [{"name": "o"}]}, r"spec\.overrides\[0\]\.active"),
    ],
)
def test_a_bad_spec_is_told_in_the_words_of_its_provider(spec: Json, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"TimeBasedSpotSchedule/hours: .*{words}"):
        forecast([timebased(spec=spec)], MONDAY)


class NothingSpec(ApiModel):
    """A spec that says nothing."""


def of(provider: Provider[NothingSpec], at_: datetime = MONDAY) -> Forecast:
    [found] = find_schedules([schedule(provider.kind, "x", {})])
    return Simulation([found], lambda each: prepare(each, provider), at_).forecast(found)


def test_a_provider_that_asks_a_source_outside_the_cluster_has_no_timeline() -> None:
    async def decide(spec: NothingSpec, at: datetime) -> Verdict:
        return Verdict(True)

    with pytest.raises(ConfigError, match="Asking/x: Asking asks a source outside the cluster"):
        of(Provider("Asking", spec=NothingSpec, decide=decide))


def test_a_provider_that_reads_other_objects_has_no_timeline() -> None:
    nodes = Resource("", "v1", "nodes", "Node", namespaced=False)

    def decide(spec: NothingSpec, at: datetime, context: Context) -> Verdict:
        return Verdict(context.get(nodes, "n") is not None)

    with pytest.raises(ConfigError, match="it depends on nodes"):
        of(Provider("Reading", spec=NothingSpec, decide=decide, reads=(nodes,)))


def test_a_provider_that_gives_no_verdict_says_why() -> None:
    def decide(spec: NothingSpec, at: datetime) -> Verdict:
        raise NoVerdict("SourceUnavailable", "nobody knows")

    with pytest.raises(
        ConfigError, match="Silent/x: no verdict at 2027-01-04T00:00:00Z: SourceUnavailable: nobody knows"
    ):
        of(Provider("Silent", spec=NothingSpec, decide=decide))


def test_what_a_decision_raises_is_told() -> None:
    def decide(spec: NothingSpec, at: datetime) -> Verdict:
        raise KeyError("oh")

    with pytest.raises((ConfigError, DecisionFailed), match=r"Broken/x: .*KeyError"):
        of(Provider("Broken", spec=NothingSpec, decide=decide))


def test_a_provider_learns_what_it_last_decided() -> None:
    """Active for three hours after each change of its own, inactive for two."""
    seen: list[tuple[bool | None, datetime | None]] = []

    def decide(spec: NothingSpec, at: datetime, context: Context) -> Verdict:
        seen.append((context.active, context.since))
        return Verdict(not context.active, at + timedelta(hours=2 if context.active else 3))

    found = of(Provider("Dwelling", spec=NothingSpec, decide=decide))
    assert found.changes(at(9)) == [Transition(at(3), False), Transition(at(5), True), Transition(at(8), False)]
    assert seen[:3] == [(None, None), (True, at(0)), (False, at(3))]


@pytest.mark.parametrize("spec", [{"spec": None}, {}])
def test_a_schedule_without_spec_is_refused_as_the_server_refuses_it(spec: Json) -> None:
    body = {"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", **spec}
    with pytest.raises(ConfigError, match="TimeBasedSpotSchedule/x: spec: is required"):
        prepare(Schedule("TimeBasedSpotSchedule", "x", "", body), shipped_provider("TimeBasedSpotSchedule"))


def test_a_null_counts_as_absent_as_on_the_server() -> None:
    body = {
        "spec": {"timezone": None, "enabled": None, "windows": [{"days": ["mon"], "start": "08:00", "end": "09:00"}]}
    }
    prepare(Schedule("TimeBasedSpotSchedule", "x", "", body), shipped_provider("TimeBasedSpotSchedule"))


def test_advice_on_the_spec_is_among_the_notes() -> None:
    body = timebased(spec={**HOURS, "exceptions": [{"date": "2027-01-05"}], "validUntil": "2026-01-01T00:00:00Z"})
    found = find_schedules([body])
    known = shipped_provider("TimeBasedSpotSchedule")
    simulation = Simulation(found, lambda each: prepare(each, known), MONDAY)
    notes = simulation.notes(found[0], Period(MONDAY, at(1)))
    assert [note.reason for note in notes] == ["SpecWarnings"]
    assert "has no effect: the schedule is not valid on that date" in notes[0].message
