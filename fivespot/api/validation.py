"""Validation of stored objects: the same rules as at admission, for objects that are older than a rule.

Messages name the field as the user wrote it and never quote values of an embedded spec, which may be credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fivespot.api.names import MAX_NAME_LENGTH
from fivespot.api.scheduledmachine import ScheduledMachineSpec

Model = TypeVar("Model", bound=BaseModel)

_EMBEDDED = frozenset({"bootstrapSpec", "infrastructureSpec"})
_MAX_QUOTED = 64


@dataclass(frozen=True, slots=True)
class Problem:
    """A violation: the path of the field, and the values that are allowed there."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class InvalidObject(ValueError):
    """An object that breaks rules of its kind; `problems` holds all of them, in the order of the fields."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def validate(model: type[Model], value: object, at: str = "spec") -> Model:
    """Validate decoded JSON as a model.

    Types without JSON values are converted from their JSON form, also in strict models: instants and dates from
    strings, sets and tuples from lists, enumerations from their values.

    :raises InvalidObject: it is invalid; the paths begin with ``at``.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = error
    try:
        # Not used by default, because pydantic's JSON parser refuses deep nesting, which embedded specs may have.
        return model.model_validate_json(msgspec.json.encode(value))
    except ValidationError as error:
        if not any(detail["type"] == "json_invalid" for detail in error.errors(include_url=False)):
            problems = error
    except (TypeError, ValueError, RecursionError, OverflowError):
        pass  # Not JSON; the first error describes the problem.
    details = problems.errors(include_url=False, include_context=False)
    raise InvalidObject(tuple(_problem(detail, at) for detail in details)) from None


def validate_spec(spec: object) -> ScheduledMachineSpec:
    """Parse `spec` of a stored ScheduledMachine. Raises `InvalidObject`, which names each invalid field."""
    return validate(ScheduledMachineSpec, spec)


def validate_machine(obj: Mapping[str, Any]) -> ScheduledMachineSpec:
    """Parse the spec of a whole stored ScheduledMachine, and validate its name. Raises `InvalidObject`."""
    name = obj["metadata"]["name"]
    if len(name) > MAX_NAME_LENGTH:
        message = f"must be at most {MAX_NAME_LENGTH} characters, because it becomes a label value; it has {len(name)}"
        raise InvalidObject((Problem("metadata.name", message),))
    return validate_spec(obj.get("spec"))


def _problem(detail: ErrorDetails, at: str) -> Problem:
    path = at
    for step in detail["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = "is required"
    quoted = detail["input"]
    secret = bool(detail["loc"]) and detail["loc"][0] in _EMBEDDED and detail["loc"][1:2] in ((), ("spec",))
    if secret:
        return Problem(path, message)
    if isinstance(quoted, str) and len(quoted) <= _MAX_QUOTED:
        message = f'"{quoted}": {message}'
    elif isinstance(quoted, bool | int):
        message = f"{quoted}: {message}"
    return Problem(path, message)
