"""A coroutine that is begun by hand, so that nothing has to be set up where it does not wait."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

__all__ = ["continued"]

T = TypeVar("T")


@coroutine
def continued(work: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """The rest of a coroutine that was begun by ``work.send(None)`` and now waits, in the same task.

    Neither ``await`` nor ``yield from`` can take it up: they would go on before what it waits for has happened.
    Whatever is thrown in, such as a cancellation, is the coroutine's to handle.

    :param awaited: what ``send`` returned.
    """
    while True:
        try:
            value = yield awaited
        except BaseException as error:  # raised again where the coroutine waits
            step = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            awaited = step()
        except StopIteration as end:
            result: T = end.value
            return result
