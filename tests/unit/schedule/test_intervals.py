"""Interval arithmetic against sets of seconds."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

import fivespot.schedule
from fivespot.schedule.intervals import Interval, clip, merge, open_earlier, subtract

lists = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)


def seconds(intervals: list[Interval]) -> set[int]:
    return {second for start, end in intervals for second in range(start, end)}


def is_normal(intervals: list[Interval]) -> bool:
    edges = [edge for interval in intervals for edge in interval]
    return edges == sorted(set(edges))


@given(lists)
def test_a_merge_is_the_union_in_normal_form(intervals: list[Interval]) -> None:
    assert seconds(merge(intervals)) == seconds(intervals)
    assert is_normal(merge(intervals))


@given(lists, st.integers(0, 30), st.integers(0, 30))
def test_a_clip_is_the_intersection(intervals: list[Interval], start: int, end: int) -> None:
    assert seconds(clip(merge(intervals), start, end)) == seconds(intervals) & set(range(start, end))


@given(lists, st.integers(0, 30), st.integers(0, 30))
def test_a_subtraction_is_the_difference(intervals: list[Interval], start: int, end: int) -> None:
    rest = subtract((start, end), merge(intervals))
    assert seconds(rest) == set(range(start, end)) - seconds(intervals)
    assert is_normal(rest)


@given(lists, st.integers(0, 9))
def test_opening_earlier_moves_starts_only(intervals: list[Interval], lead: int) -> None:
    opened = open_earlier(merge(intervals), lead)
    expected = {second - step for second in (start for start, _ in merge(intervals)) for step in range(lead + 1)}
    assert seconds(opened) == seconds(intervals) | expected
    assert is_normal(opened)


def test_the_example_in_the_documentation_is_true() -> None:
    assert doctest.testmod(fivespot.schedule) == doctest.TestResults(failed=0, attempted=3)
