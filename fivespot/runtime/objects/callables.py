"""Comparison of functions, for those that are registered under a name."""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType

__all__ = ["same_function"]


def same_function(a: object, b: object) -> bool:
    """Tell whether two callables are known to do the same.

    Python makes a new function each time that it comes to a lambda or a nested ``def``, so equality alone would find
    the same line of a program different from itself. Two such functions are the same if code, defaults and all that
    they have captured are.
    """
    if a is b:
        return True
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return (
            a.__code__ == b.__code__
            and a.__globals__ is b.__globals__
            and a.__defaults__ == b.__defaults__
            and a.__kwdefaults__ == b.__kwdefaults__
            and _captured(a) == _captured(b)
        )
    if isinstance(a, MethodType) and isinstance(b, MethodType):
        return a.__self__ is b.__self__ and same_function(a.__func__, b.__func__)
    if isinstance(a, partial) and isinstance(b, partial):
        return same_function(a.func, b.func) and a.args == b.args and a.keywords == b.keywords
    return bool(a == b)


def _captured(function: FunctionType) -> list[object]:
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:
            # Not assigned yet. A new object equals nothing.
            cells.append(object())
    return cells
