"""Types of a spec: the definition has them, and stored objects are read as them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from fivespot.providers.sdk import ApiModel, Context, Instant, Provider, Verdict
from fivespot.providers.sdk.decider import Decider


class Colour(StrEnum):
    """An enumeration."""

    RED = "red"
    GREEN = "green"


class TypesSpec(ApiModel):
    """A field of each type."""

    instant: Instant | None = None
    moment: datetime | None = None
    day: date | None = None
    clock: time | None = None
    colour: Colour = Colour.RED
    level: Literal["low", "high"] = "low"
    pair: tuple[int, int] = (1, 2)
    names: Annotated[set[str], Field(max_length=4)] = Field(default=set())
    ratio: float = 1.0


def decide(spec: TypesSpec, at: datetime) -> Verdict:
    return Verdict(True, message=repr(spec))


PROVIDER = Provider("TypesSchedule", spec=TypesSpec, decide=decide)
FIELDS: dict[str, tuple[Any, Any]] = {
    "instant": ("2027-01-31T06:00:00+01:00", datetime(2027, 1, 31, 5, tzinfo=UTC)),
    "moment": ("2027-01-31T06:00:00Z", datetime(2027, 1, 31, 6, tzinfo=UTC)),
    "day": ("2027-01-31", date(2027, 1, 31)),
    "clock": ("08:30", time(8, 30)),
    "colour": ("green", Colour.GREEN),
    "level": ("high", "high"),
    "pair": ([3, 4], (3, 4)),
    "names": (["b", "a"], {"a", "b"}),
    "ratio": (2, 2.0),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_stored_value_becomes_the_python_value(name: str) -> None:
    stored, expected = FIELDS[name]
    prepared = Decider(PROVIDER).prepare("u", 1, {name: stored})
    assert prepared.failure is None, prepared.failure
    assert getattr(prepared.rule, name) == expected
    assert isinstance(
        Decider(PROVIDER).decide_now(prepared, datetime(2027, 1, 1, tzinfo=UTC), Context("n", "o")), Verdict
    )


BAD: dict[str, tuple[str, Any, str]] = {
    "instant": ("instant", "2027-01-31", 'did you mean "2027-01-31T00:00:00Z"?'),
    "instant without offset": ("instant", "2027-01-31T06:00:00", "must be an instant"),
    "instant as a number": ("instant", 1801375200, "must be an instant"),
    "instant that does not exist": ("instant", "2027-02-30T06:00:00Z", "must be an instant"),
    "datetime": ("moment", "tomorrow", "must be an instant"),
    "date": ("day", "31.1.2027", "must be a date YYYY-MM-DD"),
    "date as a number": ("day", 20270131, "must be a date YYYY-MM-DD"),
    "time": ("clock", "8:30", 'must be a time of day "HH:MM"'),
    "enum": ("colour", "rde", "must be 'red' or 'green'; did you mean \"red\"?"),
    "literal": ("level", "hihg", 'did you mean "high"?'),
    "tuple": ("pair", [1], "is required"),
    "set": ("names", "a", "must be a list: write [a]"),
}


@pytest.mark.parametrize("case", BAD)
def test_another_value_is_refused_with_its_field_and_what_to_write(case: str) -> None:
    name, value, words = BAD[case]
    failure = Decider(PROVIDER).prepare("u", 1, {name: value}).failure
    assert failure is not None
    assert failure.reason == "InvalidSpec"
    assert failure.message.startswith(f"spec.{name}"), failure.message
    assert words in failure.message


def test_the_definition_says_what_the_server_can_check() -> None:
    schema = PROVIDER.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = schema["properties"]["spec"]["properties"]
    assert found["instant"]["type"] == "string"
    assert "RFC 3339" in found["instant"]["x-kubernetes-validations"][0]["message"]
    assert found["moment"]["format"] == "date-time"
    assert found["day"]["format"] == "date"
    assert found["colour"]["enum"] == ["red", "green"]
    assert (found["pair"]["minItems"], found["pair"]["maxItems"]) == (2, 2)
    assert found["names"]["x-kubernetes-list-type"] == "set"


def test_an_instant_in_python_is_taken_as_it_is_and_needs_an_offset() -> None:
    at = datetime(2027, 1, 31, 6, tzinfo=UTC)
    assert TypesSpec(instant=at).instant == at
    with pytest.raises(ValueError, match="timezone"):
        TypesSpec(instant=datetime(2027, 1, 31, 6))  # noqa: DTZ001 - without one on purpose
