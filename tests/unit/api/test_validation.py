"""Models against schemas, and what a person is told about a stored object that breaks a rule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from enum import Enum, IntEnum
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from fivespot.api import ApiModel, InvalidObject, ScheduledMachine, validate, validate_machine, validate_spec
from fivespot.providers.timebased.spec import TimeBasedSpotSchedule, TimeBasedSpotScheduleSpec
from fivespot.runtime.crd import RULE_BROKEN, structural_schema

Json = dict[str, Any]


def machine(**changes: Any) -> Json:
    """A ScheduledMachine's spec that breaks no rule."""
    spec: Json = {
        "schedule": {"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "Manual", "name": "a"},
        "clusterName": "prod",
        "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "Boot", "spec": {}},
        "infrastructureSpec": {"apiVersion": "k0smotron.io/v1", "kind": "Infra", "spec": {"password": "hunter2"}},
    }
    return {**copy.deepcopy(spec), **changes}


def test_defaults_are_read_where_the_server_did_not_write_them() -> None:
    spec = validate_spec(machine())
    assert (spec.enabled, spec.priority, spec.kill_switch) == (True, 50, False)
    assert (spec.graceful_shutdown_timeout, spec.node_drain_timeout) == ("5m", "5m")
    assert (spec.node_taints, spec.kill_if_commands, spec.kata, spec.machine_template) == ([], [], None, None)


BROKEN: dict[str, tuple[Json, str, str]] = {
    "no schedule": ({"schedule": None}, "spec.schedule", ""),
    "foreign group": (
        {"schedule": {"apiVersion": "batch/v1", "kind": "Job", "name": "a"}},
        "spec.schedule.apiVersion",
        "spotschedules",
    ),
    "missing name": (
        {"schedule": {"apiVersion": "spotschedules.5spot.finos.org/v1", "kind": "Job"}},
        "spec.schedule.name",
        "is required",
    ),
    "core version": (
        {"bootstrapSpec": {"apiVersion": "v1", "kind": "Secret", "spec": {}}},
        "spec.bootstrapSpec.apiVersion",
        "core versions are refused",
    ),
    "embedded name": (
        {"bootstrapSpec": {**machine()["bootstrapSpec"], "metadata": {"name": "x"}}},
        "spec.bootstrapSpec.metadata",
        "must not be set",
    ),
    "embedded namespace": (
        {"infrastructureSpec": {**machine()["infrastructureSpec"], "metadata": {"namespace": "x"}}},
        "spec.infrastructureSpec.metadata",
        "must not be set",
    ),
    "reserved label": (
        {"machineTemplate": {"labels": {"cluster.x-k8s.io/cluster-name": "x"}}},
        "spec.machineTemplate.labels",
        "reserved prefixes",
    ),
    "reserved annotation": (
        {"bootstrapSpec": {**machine()["bootstrapSpec"], "metadata": {"annotations": {"k8s.io/x": "x"}}}},
        "spec.bootstrapSpec.metadata.annotations",
        "reserved prefixes",
    ),
    "priority": ({"priority": 256}, "spec.priority", "256: "),
    "grace": ({"gracefulShutdownTimeout": "1h30m"}, "spec.gracefulShutdownTimeout", '"1h30m": '),
    "grace over a day": ({"gracefulShutdownTimeout": "25h"}, "spec.gracefulShutdownTimeout", "at most 24h"),
    "drain over a day": ({"nodeDrainTimeout": "1441m"}, "spec.nodeDrainTimeout", "at most 24h"),
    "reserved taint": (
        {"nodeTaints": [{"key": "node.kubernetes.io/x", "effect": "NoExecute"}]},
        "spec.nodeTaints[0].key",
        "reserved prefixes",
    ),
    "taint of Cluster API": (
        {"nodeTaints": [{"key": "node.cluster.x-k8s.io/x", "effect": "NoExecute"}]},
        "spec.nodeTaints[0].key",
        "reserved prefixes",
    ),
    "taint effect": ({"nodeTaints": [{"key": "a", "effect": "Never"}]}, "spec.nodeTaints[0].effect", '"Never": '),
    "taint twice": (
        {"nodeTaints": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
        "spec.nodeTaints",
        "twice",
    ),
    "taints without number": (
        {"nodeTaints": [{"key": f"k{n}", "effect": "NoExecute"} for n in range(65)]},
        "spec.nodeTaints",
        "at most 64",
    ),
}


@pytest.mark.parametrize(("changes", "field", "part"), BROKEN.values(), ids=BROKEN.keys())
def test_each_broken_rule_is_told_with_its_field(changes: Json, field: str, part: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        validate_spec(machine(**changes))
    assert [problem.field for problem in caught.value.problems] == [field] * len(caught.value.problems)
    assert any(part in problem.message for problem in caught.value.problems)
    assert str(caught.value).startswith(f"{field}: ")


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidObject) as caught:
        validate_spec(machine(priority=-1, clusterName=""))
    assert [problem.field for problem in caught.value.problems] == ["spec.clusterName", "spec.priority"]


@pytest.mark.parametrize("spec", [None, [], "text", 7])
def test_a_spec_that_is_no_object_is_told(spec: object) -> None:
    with pytest.raises(InvalidObject, match=r"^spec: "):
        validate_spec(spec)


def test_what_an_embedded_spec_holds_is_never_quoted() -> None:
    with pytest.raises(InvalidObject) as caught:
        validate_spec(machine(bootstrapSpec={**machine()["bootstrapSpec"], "spec": "hunter2"}))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__cause__)


class Mode(Enum):
    FAST = "fast"


class Level(IntEnum):
    HIGH = 2


class EveryType(ApiModel):
    """Types that JSON has no values for."""

    at: datetime
    day: date
    clock: time
    mode: Mode
    level: Level
    names: set[str]
    frozen: frozenset[int]
    days: tuple[date, ...]
    pair: tuple[int, int]
    by_name: dict[str, date]


EVERY_TYPE: Json = {
    "at": "2027-01-31T06:00:00Z",
    "day": "2027-01-31",
    "clock": "08:30",
    "mode": "fast",
    "level": 2,
    "names": ["a", "b"],
    "frozen": [1],
    "days": ["2027-01-31"],
    "pair": [1, 2],
    "byName": {"a": "2027-01-31"},
}


def test_types_without_a_json_value_are_read_from_json() -> None:
    assert validate(EveryType, EVERY_TYPE) == EveryType(
        at=datetime(2027, 1, 31, 6, tzinfo=UTC),
        day=date(2027, 1, 31),
        clock=time(8, 30),
        mode=Mode.FAST,
        level=Level.HIGH,
        names={"a", "b"},
        frozen=frozenset({1}),
        days=(date(2027, 1, 31),),
        pair=(1, 2),
        by_name={"a": date(2027, 1, 31)},
    )
    assert jsonschema_rs.validator_for(structural_schema(EveryType)).is_valid(EVERY_TYPE)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("day", "2027-02-31", "spec.day: "),
        ("mode", "slow", "'fast'"),
        ("level", "2", "spec.level"),
        ("pair", [1], "spec.pair[1]: is required"),
        ("clock", 830, "spec.clock"),
        ("names", "a", "spec.names"),
    ],
)
def test_nothing_else_is_converted(field: str, value: object, words: str) -> None:
    with pytest.raises(InvalidObject) as invalid:
        validate(EveryType, {**EVERY_TYPE, field: value})
    assert words in str(invalid.value)
    assert len(invalid.value.problems) == 1


def test_deep_nesting_is_no_obstacle_to_reading_a_spec() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"x": deep}
    embedded = {**machine()["bootstrapSpec"], "spec": deep}
    assert validate_spec(machine(bootstrapSpec=embedded)).bootstrap_spec.spec is not None
    with pytest.raises(InvalidObject) as invalid:
        validate_spec(machine(bootstrapSpec=embedded, clusterName=7))
    assert [problem.field for problem in invalid.value.problems] == ["spec.clusterName"]


def test_a_name_that_no_label_holds_is_told() -> None:
    assert validate_machine({"metadata": {"name": "a" * 63}, "spec": machine()}).cluster_name == "prod"
    with pytest.raises(InvalidObject, match=r"^metadata\.name: must be at most 63 characters.* 64$"):
        validate_machine({"metadata": {"name": "a" * 64}, "spec": machine()})


GOOD_SCHEDULES: dict[str, Json] = {
    "empty": {},
    "existing grammar": {"daysOfWeek": ["mon-thu", "fri , sat"], "hoursOfDay": ["08-11", "13 - 17", "22-6", "9,10"]},
    "wrapping days": {"daysOfWeek": ["fri-mon"]},
    "daily window": {"windows": [{"days": ["mon-fri"], "start": "22:00", "end": "06:00"}]},
    "whole day": {"windows": [{"days": ["mon"], "start": "00:00", "end": "24:00"}]},
    "span": {"windows": [{"from": "mon 06:00", "until": "fri 24:00"}]},
    "whole week": {"windows": [{"from": "mon 00:00", "until": "sun 24:00"}]},
    "exceptions": {"exceptions": [{"date": "2027-12-24", "windows": []}, {"date": "2028-02-29"}]},
    "clipped": {"validFrom": "2027-01-01T00:00:00Z", "validUntil": "2027-01-01T00:00:00-01:00"},
    "lead": {"leadTime": "168h"},
}


@pytest.mark.parametrize("spec", GOOD_SCHEDULES.values(), ids=GOOD_SCHEDULES.keys())
def test_a_good_schedule_is_taken(spec: Json) -> None:
    validate(TimeBasedSpotScheduleSpec, spec)


BAD_SCHEDULES: dict[str, tuple[Json, str, str]] = {
    "day by number": ({"daysOfWeek": ["1-7"]}, "spec.daysOfWeek[0]", "mon, tue"),
    "long day": ({"daysOfWeek": ["sunday"]}, "spec.daysOfWeek[0]", "sun"),
    "upper case": ({"daysOfWeek": ["mon", "Tue"]}, "spec.daysOfWeek[1]", "lower case"),
    "empty part": ({"daysOfWeek": ["mon,,tue"]}, "spec.daysOfWeek[0]", "must be days"),
    "hour 24": ({"hoursOfDay": ["9-24"]}, "spec.hoursOfDay[0]", "0 to 23"),
    "minutes": ({"hoursOfDay": ["9:30-17"]}, "spec.hoursOfDay[0]", "for minutes use windows"),
    "zone": ({"timezone": "W. Europe Standard Time"}, "spec.timezone", ""),
    "no length": ({"windows": [{"days": ["mon"], "start": "06:00", "end": "06:00"}]}, "spec.windows[0]", "differ"),
    "half a window": ({"windows": [{"days": ["mon"], "start": "06:00"}]}, "spec.windows[0]", "either"),
    "both forms": (
        {"windows": [{"days": ["mon"], "start": "06:00", "end": "07:00", "from": "mon 06:00", "until": "tue 06:00"}]},
        "spec.windows[0]",
        "either",
    ),
    "rule in small letters": (
        {"windows": [{"recurrence": {"rule": "freq=daily"}, "start": "06:00", "end": "07:00"}]},
        "spec.windows[0].recurrence.rule",
        "RRULE",
    ),
    "days and recurrence": (
        {
            "windows": [
                {"days": ["mon"], "recurrence": {"rule": "FREQ=MONTHLY;BYDAY=1MO"}, "start": "06:00", "end": "07:00"}
            ]
        },
        "spec.windows[0]",
        "either",
    ),
    "neither form": ({"windows": [{}]}, "spec.windows[0]", "either"),
    "no days": ({"windows": [{"days": [], "start": "06:00", "end": "07:00"}]}, "spec.windows[0].days", "at least 1"),
    "start at 24:00": (
        {"windows": [{"days": ["mon"], "start": "24:00", "end": "07:00"}]},
        "spec.windows[0].start",
        "00:00 to 23:59",
    ),
    "short time": ({"windows": [{"days": ["mon"], "start": "6:00", "end": "07:00"}]}, "spec.windows[0].start", "HH:MM"),
    "moment": ({"windows": [{"from": "mon", "until": "tue 06:00"}]}, "spec.windows[0].from", "mon 06:00"),
    "date": ({"exceptions": [{"date": "2026-13-40"}]}, "spec.exceptions[0].date", ""),
    "no leap day": ({"exceptions": [{"date": "2027-02-29"}]}, "spec.exceptions[0].date", ""),
    "date twice": ({"exceptions": [{"date": "2027-12-24"}, {"date": "2027-12-24"}]}, "spec.exceptions", "there twice"),
    "exception without length": (
        {"exceptions": [{"date": "2027-12-24", "windows": [{"start": "06:00", "end": "06:00"}]}]},
        "spec.exceptions[0].windows[0]",
        "differ",
    ),
    "no offset": ({"validFrom": "2027-01-01T00:00:00"}, "spec.validFrom", ""),
    "clipped to nothing": (
        {"validFrom": "2027-01-01T01:00:00+01:00", "validUntil": "2027-01-01T00:00:00Z"},
        "spec",
        "before",
    ),
    "lead": ({"leadTime": "169h"}, "spec.leadTime", "at most 168h"),
    "lag": ({"lagTime": "169h"}, "spec.lagTime", "at most 168h"),
}


@pytest.mark.parametrize(("spec", "field", "part"), BAD_SCHEDULES.values(), ids=BAD_SCHEDULES.keys())
def test_a_bad_schedule_is_told_with_its_field(spec: Json, field: str, part: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        validate(TimeBasedSpotScheduleSpec, spec)
    assert {problem.field for problem in caught.value.problems} == {field}
    assert any(part in problem.message for problem in caught.value.problems)


def as_json_schema(schema: Json) -> Json:
    """Structural (OpenAPI 3.0) to draft 2020-12; what only the server judges is left out."""
    found = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-") and key != "format"}
    if "properties" in found:
        found["properties"] = {name: as_json_schema(member) for name, member in found["properties"].items()}
    if "items" in found:
        found["items"] = as_json_schema(found["items"])
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = as_json_schema(found["additionalProperties"])
    return found


JUNK = st.one_of(
    st.booleans(),
    st.integers(-5, 400),
    st.floats(0.1, 0.9),
    st.text(max_size=6),
    st.lists(st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


UNHURRIED = settings(max_examples=60)
"""Whole objects take a while to generate, more so on a busy machine; that says nothing about the product."""


def around(schema: Json) -> st.SearchStrategy[Any]:
    """Values that mostly fit the schema, and now and then do not."""
    return st.integers(0, 19).flatmap(lambda dice: JUNK if dice == 0 else _fitting(schema))


def _fitting(schema: Json) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            members = {name: around(member) for name, member in schema["properties"].items()}
            required = {name: members.pop(name) for name in schema.get("required", ())}
            return st.fixed_dictionaries(required, optional={**members, "unknown": JUNK})
        case "object":
            return st.dictionaries(st.text(max_size=5), around(schema.get("additionalProperties", {})), max_size=2)
        case "array":
            return st.lists(around(schema["items"]), max_size=3)
        case "integer":
            return st.integers(schema.get("minimum", 0) - 1, schema.get("maximum", 99) + 1)
        case "boolean":
            return st.booleans()
        case "string":
            some = st.text(max_size=min(schema.get("maxLength", 20), 70) + 1)
            return st.one_of(st.from_regex(schema["pattern"]), some) if "pattern" in schema else some
    return JUNK


def agreement(model: type[BaseModel]) -> Callable[[], None]:
    schema = structural_schema(model)
    validator = jsonschema_rs.validator_for(as_json_schema(schema))

    @UNHURRIED
    @given(around(schema))
    def holds(value: Any) -> None:
        structural = True
        try:
            model.model_validate(value)
        except ValidationError as error:
            # Rules are judged by CEL there, which this validator does not know.
            structural = all(detail["type"] == RULE_BROKEN for detail in error.errors())
        assert validator.is_valid(value) == structural

    return holds


@pytest.mark.parametrize("model", [ScheduledMachine, TimeBasedSpotSchedule], ids=lambda model: model.__name__)
def test_model_and_schema_accept_the_same_objects(model: type[BaseModel]) -> None:
    agreement(model)()


@UNHURRIED
@given(around(structural_schema(ScheduledMachine)))
def test_an_accepted_machine_survives_the_way_there_and_back(value: Any) -> None:
    try:
        read = ScheduledMachine.model_validate(value)
    except ValidationError:
        return
    written = read.model_dump(by_alias=True, exclude_unset=True)
    assert ScheduledMachine.model_validate(written) == read
