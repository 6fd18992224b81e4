"""Functions that are made anew each time are recognised by their code and what they captured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fivespot.runtime.objects import same_function


def by_label(name: str) -> Callable[[dict[str, str]], str]:
    return lambda labels: labels[name]


def with_default(size: int) -> Callable[..., int]:
    def fn(extra: int = size) -> int:
        return extra

    return fn


class Reader:
    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ONE = Reader("one")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (len, len),
        (by_label("x"), by_label("x")),
        (with_default(1), with_default(1)),
        (partial(by_label("x"), {}), partial(by_label("x"), {})),
        (ONE.read, ONE.read),
    ],
)
def test_the_same(a: Any, b: Any) -> None:
    assert same_function(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (len, max),
        (None, len),
        (by_label("x"), by_label("y")),
        (with_default(1), with_default(2)),
        (lambda: 1, lambda: 2),
        (partial(by_label("x"), {}), partial(by_label("y"), {})),
        (ONE.read, Reader("one").read),
    ],
)
def test_not_the_same(a: Any, b: Any) -> None:
    assert not same_function(a, b)
