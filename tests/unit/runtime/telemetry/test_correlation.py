"""The choice of events that are written (kubernetes#140393, kubernetes#81779)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fivespot.runtime.telemetry.correlation import Correlation, Correlator, EventLimits, Fresh, ObjectRef, event_name

WEB = ObjectRef("5spot.finos.org/v1beta1", "ScheduledMachine", "prod", "web", "uid-1")
START = datetime(2026, 3, 1, tzinfo=UTC)


class Bench:
    """A correlator with a clock, and a server that takes every write at once."""

    def __init__(self, limits: EventLimits | None = None) -> None:
        self.core = Correlator(limits or EventLimits())
        self.at = 0.0
        self.writes: list[tuple[str, int, float]] = []
        self._numbers = itertools.count()

    def see(self, message: str = "m", *, ref: ObjectRef = WEB, once: str = "", reason: str = "Reason") -> Correlation:
        event = Fresh(ref, "Normal", reason, message, "Reconcile", once)
        return self.core.seen(event, self.at, START + timedelta(seconds=self.at), lambda: f"u{next(self._numbers)}")

    def write(self) -> None:
        while (record := self.core.take(self.at)) is not None:
            self.writes.append((record.name, record.count, self.at))
            self.core.written(record, record.count, self.at)

    def run(self, until: float) -> None:
        """Let time pass, writing whenever something is due."""
        self.write()
        while (due := self.core.next_due()) is not None and due <= until:
            self.at = max(self.at, due)
            self.write()
        self.at = until


def test_the_first_event_is_written_at_once_and_repeats_become_one_series() -> None:
    bench = Bench()
    assert bench.see() is Correlation.QUEUED
    bench.write()
    assert [bench.see() for _ in range(9)] == [Correlation.COUNTED] * 9
    bench.run(until=5)
    assert [(count, at) for _, count, at in bench.writes] == [(1, 0.0), (10, 1.0)]


def test_100k_identical_events_cost_no_more_than_25_writes_and_one_more_per_5_minutes() -> None:
    bench = Bench()
    bench.see()
    bench.write()
    for _ in range(100_000 - 1):
        bench.at += 0.036
        bench.see()
        bench.write()
    hours = bench.at
    bench.run(until=hours + 1000)
    assert len(bench.writes) <= 25 + hours / 300 + 1
    assert bench.writes[-1][1] == 100_000, "the last write tells the full count"


def test_different_events_of_one_object_are_limited_to_a_burst_and_a_trickle() -> None:
    bench = Bench()
    outcomes = [bench.see(f"message {number}", reason=f"Reason{number}") for number in range(100)]
    assert outcomes.count(Correlation.QUEUED) == 25
    assert outcomes.count(Correlation.SPAM) == 75
    bench.at = 299.0
    assert bench.see("later") is Correlation.SPAM
    bench.at = 300.0
    assert bench.see("later") is Correlation.QUEUED


def test_words_that_are_never_the_same_become_one_series_and_none_of_them_is_lost() -> None:
    """kubernetes/client-go combines such events after ten; dropped, they would not even be counted."""
    bench = Bench()
    notes: dict[str, str] = {}
    for number in range(1000):
        bench.see(f"load {number}")
        while (record := bench.core.take(bench.at)) is not None:
            notes.setdefault(record.name, record.body("c", "i")["note"])
            bench.writes.append((record.name, record.count, bench.at))
            bench.core.written(record, record.count, bench.at)
        bench.at += 1.0
    bench.run(until=bench.at + 1000)
    counts = {name: count for name, count, _ in bench.writes}
    told = [*[f"load {number}" for number in range(10)], "(combined from similar events): load 10"]
    assert list(notes.values()) == told
    assert sum(counts.values()) == 1000
    assert len(bench.writes) < 20
    # Another reason is another matter, and so are the same words after a while of silence.
    assert bench.see("load 5", reason="Other") is Correlation.QUEUED
    assert bench.see("load 1001") is Correlation.QUEUED
    record = bench.core.take(bench.at)
    assert record is not None
    assert record.event.message == "load 5"


def test_a_repeat_of_known_words_counts_where_they_were_told() -> None:
    bench = Bench()
    for number in range(12):
        bench.see(f"load {number}")
    bench.write()
    assert bench.see("load 3") is Correlation.COUNTED
    bench.run(until=5)
    assert sorted(count for _, count, at in bench.writes if at == 0.0) == [*[1] * 10, 2]
    assert [count for _, count, at in bench.writes if at > 0.0] == [2]


def test_one_noisy_object_does_not_silence_another() -> None:
    bench = Bench()
    for number in range(100):
        bench.see(f"message {number}", reason=f"Reason{number}")
    other = ObjectRef(WEB.api_version, WEB.kind, "prod", "db", "uid-2")
    assert bench.see(ref=other) is Correlation.QUEUED


def test_a_repeat_after_the_series_has_ended_is_a_new_event() -> None:
    bench = Bench()
    bench.see()
    bench.write()
    bench.at = 361.0
    assert bench.see() is Correlation.QUEUED
    bench.write()
    assert bench.writes[0][0] != bench.writes[1][0]


def test_a_token_lets_one_event_through_for_ever() -> None:
    bench = Bench()
    assert bench.see("first", once="activation-7") is Correlation.QUEUED
    assert bench.see("second", once="activation-7") is Correlation.REPEATED
    bench.run(until=100_000)
    assert bench.see("third", once="activation-7") is Correlation.REPEATED
    again = Bench()
    again.see("after a restart", once="activation-7")
    again.write()
    assert bench.writes[0][0] == again.writes[0][0], "the name follows from the token, so the server refuses the second"


def test_a_token_whose_event_was_refused_may_be_tried_again() -> None:
    bench = Bench()
    bench.see(once="activation-7")
    record = bench.core.take(bench.at)
    assert record is not None
    bench.core.refused(record)
    assert bench.core.unwritten == 0
    assert bench.see(once="activation-7") is Correlation.QUEUED


def test_a_failing_write_is_tried_a_few_times_and_then_dropped() -> None:
    bench = Bench(EventLimits(attempts=3))
    bench.see()
    kept = []
    for _ in range(3):
        record = bench.core.take(bench.at)
        assert record is not None
        kept.append(bench.core.failed(record, bench.at, 10))
        bench.at += 10
    assert kept == [True, True, False]
    assert (bench.core.waiting, bench.core.unwritten) == (0, 0)


def test_a_series_whose_event_has_expired_changed_world_in_a_new_one() -> None:
    bench = Bench()
    bench.see()
    bench.write()
    bench.see()
    bench.at = 1.0
    record = bench.core.take(bench.at)
    assert record is not None
    name = record.name
    bench.core.vanished(record, bench.at, "fresh")
    bench.write()
    assert bench.writes[-1] == ("web.fresh", 2, 1.0)
    assert record.name != name
    assert record.body("c", "i")["series"]["count"] == 2


def test_the_body_is_what_the_server_takes() -> None:
    bench = Bench()
    bench.see("n" * 2000)
    record = bench.core.take(0.0)
    assert record is not None
    body = record.body("5spot-controller", "i" * 200)
    assert len(body["note"].encode()) == 1024
    assert len(body["reportingInstance"]) == 128
    assert body["eventTime"] == "2026-03-01T00:00:00.000000Z"
    assert body["metadata"]["namespace"] == body["regarding"]["namespace"] == "prod"
    assert "series" not in body


def test_an_event_about_a_cluster_scoped_object_lives_in_default() -> None:
    bench = Bench()
    bench.see(ref=ObjectRef("v1", "Node", "", "n1", "uid-3"))
    record = bench.core.take(0.0)
    assert record is not None
    body = record.body("c", "i")
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["regarding"]


@pytest.mark.parametrize("name", ["web", "a" * 253, "a." * 120 + "b", "Not:A:DnsName", ""])
def test_names_of_events_are_valid_whatever_the_object_is_called(name: str) -> None:
    made = event_name(name, "0123456789abcdef")
    assert len(made) <= 253
    assert made.endswith(".0123456789abcdef")
    stem = made.removesuffix(".0123456789abcdef")
    assert stem
    assert stem[-1].isalnum()
    assert stem == stem.lower()


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["see", "fail", "refuse", "vanish", "write"]), st.integers(0, 7), st.floats(0, 400)),
        max_size=150,
    )
)
def test_memory_and_writes_stay_within_the_limits_whatever_happens(steps: list[tuple[str, int, float]]) -> None:
    limits = EventLimits(burst=3, pending=5, remembered=4, attempts=2, similar=2)
    bench = Bench(limits)
    writes: dict[ObjectRef, int] = {}
    refs = [ObjectRef("v1", "Pod", "prod", f"p{n}", f"u{n}") for n in range(2)]
    for action, number, pause in steps:
        bench.at += pause
        if action == "see":
            bench.see(f"m{number % 4}", ref=refs[number % 2], once="t" if number == 7 else "")
        elif (record := bench.core.take(bench.at)) is not None:
            writes[record.event.regarding] = writes.get(record.event.regarding, 0) + 1
            if action == "fail":
                bench.core.failed(record, bench.at, 5)
            elif action == "refuse":
                bench.core.refused(record)
            elif action == "vanish" and record.written:
                bench.core.vanished(record, bench.at, f"v{len(writes)}")
            else:
                bench.core.written(record, record.count, bench.at)
        # A vanished or failed record is put back, which the bound on new ones leaves room for.
        assert bench.core.waiting <= limits.pending + 1
        assert 0 <= bench.core.unwritten <= limits.pending + 1
