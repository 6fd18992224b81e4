"""What is wrong in a record, judged without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fivespot.runtime.objects import Key
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
    """Builds the record of one object."""

    def __init__(self, expected: bool | None = True) -> None:
        self.record = ObjectHistory(KEY)
        self.at = 0.0
        self._body: dict[str, Any] = {"metadata": {"uid": "a", "generation": 1}, "spec": {"open": 1}}
        self._append("ADDED", ours=True)
        self.record.episodes.append(Episode(1, 1, expected))

    def edit(self, expected: bool | None, after: float = 5) -> Life:
        self.at += after
        generation = self._body["metadata"]["generation"] + 1
        self._body = {**self._body, "metadata": {"uid": "a", "generation": generation}, "spec": {"open": generation}}
        self._append("MODIFIED", ours=True)
        self.record.episodes.append(Episode(self.record.seen[-1].version, generation, expected))
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


Judge = Callable[[ObjectHistory], Iterator[str]]

ALL: list[Judge] = [
    invariants.active_is_in_every_write,
    invariants.begins_with_a_verdict,
    invariants.conditions_have_their_shape,
    invariants.flips_once,
    invariants.is_honest_about_what_comes,
    invariants.leaves_the_spec_alone,
    invariants.moves_times_on_flips_only,
    invariants.observes_truly,
    invariants.texts_are_short,
    invariants.writes_rfc3339,
]

KEPT: dict[str, Life] = {
    "a verdict": Life().write(good()),
    "a flip": Life().write(good()).edit(False).write(good(False, 6, 2)),
    "both ways": Life().write(good()).edit(False).write(good(False, 6, 2)).edit(True).write(good(True, 12, 3)),
    "a broken spec that holds": Life()
    .write(good())
    .edit(None)
    .write({**good(generation=2), "conditions": [ready("False", 6)]})
    .edit(True)
    .write({**good(generation=3), "conditions": [ready("True", 12)]}),
    "a broken spec from the start": Life(None).write({"active": False, "conditions": [ready("False")]}),
    "no conditions": Life().write({"active": True}),
    "two flips in one second": Life().write(good()).edit(False, 0.1).write(good(False, 0, 2), 0.1),
    "another writer's condition": Life().write(
        {**good(), "conditions": [{"type": "Observation", "status": "True"}, ready()]}
    ),
    "a boundary as announced": Life()
    .write(good(nextTransitionTime=text(9)))
    .write(good(False, 9), 9)
    .write(good(False, 9, note=1)),
    "finalizers": Life().write(good(), finalizers=["example.com/mine"]),
    "fractions and offsets": Life().write({"active": True, "lastTransitionTime": "2027-01-31T07:00:00.25+01:00"}),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_keeps_the_rules_is_not_blamed(name: str) -> None:
    assert [problem for judge in ALL for problem in judge(KEPT[name].record)] == []


BROKEN: list[tuple[Judge, Life, str]] = [
    (invariants.active_is_in_every_write, Life().write({"conditions": [ready()]}), "without a boolean active"),
    (invariants.active_is_in_every_write, Life().write({"active": "true"}), '"true"'),
    (invariants.begins_with_a_verdict, Life().write({"observedGeneration": 1}), "holds no verdict"),
    (invariants.begins_with_a_verdict, Life().write({"active": False}).write(good()), "active false, which it is not"),
    (invariants.begins_with_a_verdict, Life(False).write({"active": True}), "active true, which it is not"),
    (
        invariants.flips_once,
        Life().write(good()).write(good(False)).write(good()),
        "active went from true to false although nothing",
    ),
    (
        invariants.flips_once,
        Life().write(good()).edit(False).write(good(False)).write(good()).write(good(False)),
        "more than once",
    ),
    (
        invariants.moves_times_on_flips_only,
        Life().write(good()).write(good(since=4)),
        f"moved from {text(0)} to {text(4)} while active stayed true",
    ),
    (
        invariants.moves_times_on_flips_only,
        Life().write(good()).edit(False).write(good(False)),
        f"stayed {text(0)} although active became false",
    ),
    (
        invariants.moves_times_on_flips_only,
        Life().write(good()).write({**good(), "conditions": [ready(since=3)]}),
        "the lastTransitionTime of Ready moved",
    ),
    (
        invariants.moves_times_on_flips_only,
        Life().write(good()).edit(None).write({**good(), "conditions": [ready("False")]}),
        'although Ready became "False"',
    ),
    (invariants.observes_truly, Life().write(good(generation=2)), "ahead of metadata.generation 1"),
    (invariants.observes_truly, Life().write(good()).edit(False).write(good(False, 6, 1)), "stays 1"),
    (
        invariants.observes_truly,
        Life().write(good()).edit(False).write(good(True, 0, 2)),
        "the verdict of the one before",
    ),
    (invariants.observes_truly, Life().write(good(observedGeneration="1")), 'observedGeneration is "1"'),
    (invariants.is_honest_about_what_comes, Life().write(good(nextTransitionTime=text(-60))), "which is past"),
    (
        invariants.is_honest_about_what_comes,
        Life().write(good(nextTransitionTime=text(600))).write(good(False, 2)),
        f"and {text(600)} was announced",
    ),
    (invariants.conditions_have_their_shape, Life().write(good(conditions={"Ready": "True"})), "is no list"),
    (invariants.conditions_have_their_shape, Life().write(good(conditions=[ready(), "Ready"])), "that is no condition"),
    (
        invariants.conditions_have_their_shape,
        Life().write(good(conditions=[ready(), ready()])),
        "more than one condition",
    ),
    (invariants.conditions_have_their_shape, Life().write(good(conditions=[ready("Yes")])), 'the status "Yes"'),
    (invariants.conditions_have_their_shape, Life().write(good(conditions=[{"status": "True"}])), "without a type"),
    (
        invariants.conditions_have_their_shape,
        Life().write(good(conditions=[ready(reason="window open")])),
        "which is no single word",
    ),
    (invariants.texts_are_short, Life().write(good(conditions=[ready(message="é" * 600)])), "has 1200 bytes"),
    (invariants.texts_are_short, Life().write(good(conditions=[ready(message="a\x1b[1mb")])), "control characters"),
    (invariants.writes_rfc3339, Life().write(good(lastTransitionTime=1801375200)), "lastTransitionTime is 1801375200"),
    (invariants.writes_rfc3339, Life().write(good(nextTransitionTime="2027-01-31T06:00:00")), "nextTransitionTime is"),
    (invariants.writes_rfc3339, Life().write(good(nextTransitionTime="2027-02-31T06:00:00Z")), "nextTransitionTime is"),
    (
        invariants.writes_rfc3339,
        Life().write(good(conditions=[ready(lastTransitionTime="yesterday")])),
        "conditions[0].lastTransitionTime",
    ),
    (invariants.leaves_the_spec_alone, Life().write(good()).change_spec({"open": 2}), "spec was changed"),
    (invariants.leaves_the_spec_alone, Life().write(good(), labels={"a": "b"}), "metadata.labels was changed"),
]


@pytest.mark.parametrize(("judge", "life", "words"), BROKEN, ids=range(len(BROKEN)))
def test_what_breaks_a_rule_is_told(judge: Judge, life: Life, words: str) -> None:
    assert any(words in problem for problem in judge(life.record)), list(judge(life.record))


@pytest.mark.parametrize("judge", ALL)
def test_garbage_of_any_kind_makes_no_judge_raise(judge: Judge) -> None:
    values: list[Any] = [None, 1, "x", [], {}, [1], {"a": 1}, True]
    for value in values:
        life = Life().write(value).write(good())
        for field in ("active", "conditions", "observedGeneration", "lastTransitionTime", "nextTransitionTime"):
            life.write({**good(), field: value}).write({field: value})
        life.write(good(conditions=[{"type": value, "status": value, "message": value, "reason": value}]))
        list(judge(life.record))


def test_the_kits_own_writes_are_nobodys() -> None:
    life = Life().write(good())
    life.record.ours.add(2)
    assert list(life.record.writes()) == []


def test_an_object_of_the_same_name_is_another_one() -> None:
    life = Life().write(good(), uid="b")
    assert list(life.record.writes()) == []


def test_the_writer_is_the_last_one_of_the_status_but_not_the_kit() -> None:
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
