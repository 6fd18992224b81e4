"""The tree of exceptions: as drawn, and chosen by what the server says."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

from fivespot import runtime
from fivespot.runtime import errors


def drawn() -> dict[str, str]:
    """Each class of the drawing with its parent."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^ {4}((?:[│ ]   )*(?:[├└]── )?)(\w+)", errors.__doc__ or "", re.MULTILINE):
        depth = len(indent) // 4
        path[depth:] = [name]
        if depth:
            parents[name] = path[depth - 1]
    return parents


def defined() -> dict[str, str]:
    """Each subclass of FivespotError that the runtime defines, with its first base class."""
    for module in walk_packages(runtime.__path__, f"{runtime.__name__}."):
        import_module(module.name)
    found: dict[str, str] = {}
    todo = [errors.FivespotError]
    while todo:
        for subclass in todo.pop().__subclasses__():
            if subclass.__module__.startswith(runtime.__name__):
                found[subclass.__name__] = subclass.__bases__[0].__name__
                todo.append(subclass)
    return found


def test_the_drawing_is_the_whole_tree() -> None:
    assert drawn() == defined()


@pytest.mark.parametrize(
    ("status", "reason", "names_object", "error_type"),
    [
        (404, "NotFound", True, errors.NotFoundError),
        (404, "NotFound", False, errors.NotServedError),
        (404, "", True, errors.NotServedError),
        (404, "Unknown", True, errors.NotServedError),
        (409, "Conflict", True, errors.ConflictError),
        (409, "AlreadyExists", True, errors.AlreadyExistsError),
        (400, "Expired", True, errors.GoneError),
        (504, "Timeout", True, errors.ServerTimeoutError),
        (599, "", True, errors.ServerError),
        (418, "", True, errors.ApiError),
    ],
)
def test_status_and_reason_choose_the_class(
    status: int, reason: str, names_object: bool, error_type: type[errors.ApiError]
) -> None:
    error = errors.api_error(status, reason, "no", request="get things", names_object=names_object)
    assert type(error) is error_type
