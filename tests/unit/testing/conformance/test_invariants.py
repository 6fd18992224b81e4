"""Violations found in the history of an object, without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.runtime import Key
from fivespot.testing.conformance import invariants
from fivespot.testing.conformance.history import MANAGER, Episode, ObjectHistory, Observation, brief

START = datetime(2027, 1, 31, 6, 0, tzinfo=UTC)
KEY = Key("prod", "hours")

Json = Mapping[str, Any]


def text(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def ready(status: str = "True", since: float = 0, **more: Any) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "reason": "Open", "lastTransitionTime": text(since), **more}


def good(active: bool = True, since: float = 0, generation: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "active": active,
        "lastTransitionTime": text(since),
        "observedGeneration": generation,
        "conditions": [ready()],
        **more,
    }


class Life:
    """Builds the history of one object."""

    def __init__(self, verdict: bool | None = True, ends: float | None = None) -> None:
        self.record = ObjectHistory(KEY)
        self.at = 0.0
        self._body: dict[str, Any] = {"metadata": {"uid": "a", "generation": 1}, "spec": {"open": 1}}
        self._append("ADDED", ours=True)
        boundary = START + timedelta(seconds=ends) if ends is not None else None
        self.record.episodes.append(Episode(1, 1, verdict, boundary))

    def edit(self, verdict: bool | None, after: float = 5) -> Life:
        self.at += after
        generation = self._body["metadata"]["generation"] + 1
        self._body = {**self._body, "metadata": {"uid": "a", "generation": generation}, "spec": {"open": generation}}
        self._append("MODIFIED", ours=True)
        self.record.episodes.append(Episode(self.record.seen[-1].version, generation, verdict))
        return self

    def write(self, status: Any, after: float = 1, **metadata: Any) -> Life:
        self.at += after
        self._body = {**self._body, "status": status, "metadata": {**self._body["metadata"], **metadata}}
        self._append("MODIFIED")
        return self

    def change_spec(self, spec: Json) -> Life:
        self._body = {**self._body, "spec": spec}
        self._append("MODIFIED")
        return self

    def _append(self, kind: str, *, ours: bool = False) -> None:
        version = len(self.record.seen) + 1
        self.record.seen.append(Observation(kind, version, self.at, START + timedelta(seconds=self.at), self._body))
        if ours:
            self.record.ours.add(version)


HistoryCheck = Callable[[ObjectHistory], Iterator[str]]

ALL: list[HistoryCheck] = [
    invariants.active_in_every_write,
    invariants.first_write,
    invariants.condition_shape,
    invariants.flip_once,
    invariants.next_transition,
    invariants.spec_untouched,
    invariants.transition_time,
    invariants.observed_generation,
    invariants.texts,
    invariants.timestamps,
]

CONFORMING: dict[str, Life] = {
    "a verdict": Life().write(good()),
    "a flip": Life().write(good()).edit(False).write(good(False, 6, 2)),
    "both ways": Life().write(good()).edit(False).write(good(False, 6, 2)).edit(True).write(good(True, 12, 3)),
    "an invalid spec that holds the verdict": Life()
    .write(good())
    .edit(None)
    .write({**good(generation=2), "conditions": [ready("False", 6)]})
    .edit(True)
    .write({**good(generation=3), "conditions": [ready("True", 12)]}),
    "an invalid spec from the start": Life(None).write({"active": False, "conditions": [ready("False")]}),
    "no conditions": Life().write({"active": True}),
    "two flips in one second": Life().write(good()).edit(False, 0.1).write(good(False, 0, 2), 0.1),
    "another writer's condition": Life().write(
        {**good(), "conditions": [{"type": "Observation", "status": "True"}, ready()]}
    ),
    "a boundary as announced": Life()
    .write(good(nextTransitionTime=text(9)))
    .write(good(False, 9), 9)
    .write(good(False, 9, note=1)),
    "an edit before the announced instant": Life()
    .write(good(nextTransitionTime=text(600)))
    .edit(False)
    .write(good(False, 6, 2, nextTransitionTime=text(1200)))
    .edit(True)
    .write(good(True, 12, 3, nextTransitionTime=text(600))),
    "a boundary that passes before the first verdict": Life(ends=4).write(good(False, 6), 6),
    "a boundary that nobody announced": Life(ends=9).write(good()).write(good(False, 9), 9),
    "finalizers": Life().write(good(), finalizers=["example.com/mine"]),
    "fractions and offsets": Life().write({"active": True, "lastTransitionTime": "2027-01-31T07:00:00.25+01:00"}),
}


@pytest.mark.parametrize("name", CONFORMING)
def test_conforming_histories_have_no_violations(name: str) -> None:
    assert [problem for check in ALL for problem in check(CONFORMING[name].record)] == []


VIOLATIONS: list[tuple[HistoryCheck, Life, str]] = [
    (invariants.active_in_every_write, Life().write({"conditions": [ready()]}), "without a boolean active"),
    (invariants.active_in_every_write, Life().write({"active": "true"}), '"true"'),
    (invariants.first_write, Life().write({"observedGeneration": 1}), "holds no verdict"),
    (invariants.first_write, Life().write({"active": False}).write(good()), "active false, which does not follow"),
    (invariants.first_write, Life(False).write({"active": True}), "active true, which does not follow"),
    (
        invariants.flip_once,
        Life().write(good()).write(good(False)).write(good()),
        "active went from true to false although neither",
    ),
    (
        invariants.flip_once,
        Life().write(good()).edit(False).write(good(False)).write(good()).write(good(False)),
        "more than once",
    ),
    (
        invariants.transition_time,
        Life().write(good()).write(good(since=4)),
        f"changed from {text(0)} to {text(4)} while active stayed true",
    ),
    (
        invariants.transition_time,
        Life().write(good()).edit(False).write(good(False)),
        f"stayed {text(0)} although active became false",
    ),
    (
        invariants.transition_time,
        Life().write(good()).write({**good(), "conditions": [ready(since=3)]}),
        "the lastTransitionTime of Ready changed",
    ),
    (
        invariants.transition_time,
        Life().write(good()).edit(None).write({**good(), "conditions": [ready("False")]}),
        'although Ready became "False"',
    ),
    (invariants.observed_generation, Life().write(good(generation=2)), "ahead of metadata.generation 1"),
    (invariants.observed_generation, Life().write(good()).edit(False).write(good(False, 6, 1)), "stays 1"),
    (
        invariants.observed_generation,
        Life().write(good()).edit(False).write(good(True, 0, 2)),
        "the verdict is that of the generation before",
    ),
    (invariants.observed_generation, Life().write(good(observedGeneration="1")), 'observedGeneration is "1"'),
    (invariants.next_transition, Life().write(good(nextTransitionTime=text(-60))), "which is past"),
    (
        invariants.next_transition,
        Life().write(good(nextTransitionTime=text(600))).write(good(False, 2)),
        f"although {text(600)} was announced",
    ),
    (
        invariants.next_transition,
        Life()
        .write(good(nextTransitionTime=text(600)))
        .edit(False)
        .write(good(False, 6, 2, nextTransitionTime=text(600)))
        .write(good(True, 7, 2)),
        f"although {text(600)} was announced",
    ),
    (invariants.first_write, Life(ends=600).write(good(False)), "active false, which does not follow"),
    (invariants.observed_generation_present, Life().write({"active": True}), "without observedGeneration"),
    (invariants.condition_shape, Life().write(good(conditions={"Ready": "True"})), "is not a list"),
    (invariants.condition_shape, Life().write(good(conditions=[ready(), "Ready"])), "is not a condition"),
    (
        invariants.condition_shape,
        Life().write(good(conditions=[ready(), ready()])),
        "more than one condition",
    ),
    (invariants.condition_shape, Life().write(good(conditions=[ready("Yes")])), 'the status "Yes"'),
    (invariants.condition_shape, Life().write(good(conditions=[{"status": "True"}])), "without a type"),
    (
        invariants.condition_shape,
        Life().write(good(conditions=[ready(reason="window open")])),
        "which is not one CamelCase word",
    ),
    (invariants.texts, Life().write(good(conditions=[ready(message="é" * 600)])), "has 1200 bytes"),
    (invariants.texts, Life().write(good(conditions=[ready(message="a\x1b[1mb")])), "control characters"),
    (invariants.timestamps, Life().write(good(lastTransitionTime=1801375200)), "lastTransitionTime is 1801375200"),
    (invariants.timestamps, Life().write(good(nextTransitionTime="2027-01-31T06:00:00")), "nextTransitionTime is"),
    (invariants.timestamps, Life().write(good(nextTransitionTime="2027-02-31T06:00:00Z")), "nextTransitionTime is"),
    (
        invariants.timestamps,
        Life().write(good(conditions=[ready(lastTransitionTime="yesterday")])),
        "conditions[0].lastTransitionTime",
    ),
    (invariants.spec_untouched, Life().write(good()).change_spec({"open": 2}), "spec was changed"),
    (invariants.spec_untouched, Life().write(good(), labels={"a": "b"}), "metadata.labels was changed"),
]


@pytest.mark.parametrize(("check", "life", "words"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_violations_are_described(check: HistoryCheck, life: Life, words: str) -> None:
    assert any(words in problem for problem in check(life.record)), list(check(life.record))


@pytest.mark.parametrize("check", ALL)
def test_no_check_raises_on_garbage(check: HistoryCheck) -> None:
    values: list[Any] = [None, 1, "x", [], {}, [1], {"a": 1}, True]
    for value in values:
        life = Life().write(value).write(good())
        for field in ("active", "conditions", "observedGeneration", "lastTransitionTime", "nextTransitionTime"):
            life.write({**good(), field: value}).write({field: value})
        life.write(good(conditions=[{"type": value, "status": value, "message": value, "reason": value}]))
        list(check(life.record))


def test_the_kits_own_writes_are_ignored() -> None:
    life = Life().write(good())
    life.record.ours.add(2)
    assert list(life.record.writes()) == []


def test_an_object_of_the_same_name_with_another_uid_is_another_object() -> None:
    life = Life().write(good(), uid="b")
    assert list(life.record.writes()) == []


def test_the_writer_is_the_last_status_writer_other_than_the_kit() -> None:
    fields = [
        {"manager": "old", "subresource": "status", "time": text(1)},
        {"manager": "new", "subresource": "status", "time": text(2)},
        {"manager": MANAGER, "subresource": "status", "time": text(3)},
        {"manager": "kubectl", "time": text(4)},
    ]
    assert Life().write(good(), managedFields=fields).record.seen[-1].writer == "new"
    assert Life().write(good()).record.seen[-1].writer == ""


def test_long_values_are_cut() -> None:
    assert brief({"b": 1, "a": [True]}) == '{"a":[true],"b":1}'
    assert len(brief("x" * 1000)) < 300
