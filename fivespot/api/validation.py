"""Validation of stored objects: the same rules as at admission, for objects that are older than a rule.

Messages name the field as the user wrote it and never quote values of an embedded spec, which may be credentials.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fivespot.api.names import MAX_NAME_LENGTH
from fivespot.api.scheduledmachine import ScheduledMachineSpec

Model = TypeVar("Model", bound=BaseModel)

_EMBEDDED = frozenset({"bootstrapSpec", "infrastructureSpec"})
_MAX_QUOTED = 64
_HOURS = 24
_MAX_REPAIRED = 8
"""Problems of a wrong type that are looked into: each takes another validation."""
_PREFIX = "Value error, "
_CRON = re.compile(r"[0-9*/,-]+( +[0-9A-Za-z*/,#-]+){4,5}", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9, _/.-]*", re.ASCII)
"""Text that needs no quotes in a YAML list."""


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
    details = problems.errors(include_url=False)
    found = [_problem(detail, at, model) for detail in details]
    for number, detail in enumerate(details[:_MAX_REPAIRED]):
        found[number] = _repaired(model, value, detail, found[number], at)
    raise InvalidObject(tuple(found)) from None


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


def _problem(detail: ErrorDetails, at: str, model: type[BaseModel]) -> Problem:
    path = at
    for step in detail["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    quoted = detail["input"]
    secret = bool(detail["loc"]) and detail["loc"][0] in _EMBEDDED and detail["loc"][1:2] in ((), ("spec",))
    if secret:
        return Problem(path, "is required" if detail["type"] == "missing" else detail["msg"].removeprefix(_PREFIX))
    message = _type_message(detail, model)
    if isinstance(quoted, str) and len(quoted) <= _MAX_QUOTED and not message.startswith(f'"{quoted}"'):
        message = f'"{quoted}": {message}'
    elif isinstance(quoted, bool | int):
        message = f"{str(quoted).lower()}: {message}"
    return Problem(path, message)


def _type_message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the message of an error, with the right form of the value where one can be told."""
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "is required"
        case "list_type" | "set_type" | "tuple_type":
            return f"must be a list{_as_list(value)}"
        case "string_type":
            return f"must be text{_as_text(value)}"
        case "bool_type":
            return "must be true or false, without quotes" if isinstance(value, str) else "must be true or false"
        case "int_type":
            return "must be a whole number, without quotes" if isinstance(value, str) else "must be a whole number"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"must be an object{_example(context.get('class_name'), model)}"
        case "enum":
            return f"must be {context['expected']}{_nearest_literal(value, context['expected'])}"
        case kind if kind.startswith("date_"):
            return "must be a date YYYY-MM-DD that exists, such as 2027-01-31"
        case kind if kind.startswith("time_"):
            return 'must be a time of day "HH:MM", such as "08:30"'
        case kind if kind.startswith("datetime_") or kind == "timezone_aware":
            return "must be an instant: date, time and offset of RFC 3339, such as 2027-01-31T06:00:00Z"
        case "literal_error":
            return f"must be {context['expected']}{_nearest_literal(value, context['expected'])}"
        case "too_short":
            least = context["min_length"]
            return f"must have at least {least} {'entry' if least == 1 else 'entries'}"
        case "too_long":
            return f"must have at most {context['max_length']} entries, and has {context['actual_length']}"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
    return detail["msg"].removeprefix(_PREFIX)


def _as_list(value: object) -> str:
    if isinstance(value, str) and len(value) <= _MAX_QUOTED:
        return f": write [{value}]" if _PLAIN.fullmatch(value) else f': write ["{value}"]'
    return ": write its entries with a dash in front of each" if isinstance(value, Mapping) else ""


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return ": write it with quotes, because YAML takes on, off, yes, no, true and false for a truth value"
    return f': write "{value}" with quotes' if isinstance(value, int | float) else ""


def _repaired(model: type[BaseModel], whole: object, detail: ErrorDetails, problem: Problem, at: str) -> Problem:
    """The problem that is left once the value has the type that is wanted, which says more than the type."""
    value, loc = detail["input"], detail["loc"]
    if detail["type"] == "string_type" and isinstance(value, int | float):
        meant: object = str(value).lower() if isinstance(value, bool) else str(value)
    elif detail["type"] == "list_type" and isinstance(value, str):
        meant = [value]
    else:
        return problem
    try:
        changed = msgspec.json.decode(msgspec.json.encode(whole))
        _set(changed, loc, meant)
        model.model_validate(changed)
    except ValidationError as error:
        left = [each for each in error.errors(include_url=False) if each["loc"][: len(loc)] == loc]
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return problem
    else:
        left = []
    if not left or isinstance(value, bool):
        return problem
    inner = _problem(left[0], at, model)
    if left[0]["type"] in {"model_type", "model_attributes_type"}:
        return Problem(problem.field, f'"{value}": must be a list of objects{_cron_remark(value)}{_example_of(inner)}')
    if detail["type"] == "list_type":
        return Problem(problem.field, f"must be a list; and {inner.message}")
    said = inner.message
    if "time of day" in said and value >= _HOURS:
        # Whether 900 is 9:00, or 15:00 in minutes, nobody can tell.
        said = f"{said.partition('; did you mean')[0]}; some YAML readers take 9:00 for a number of minutes"
    return Problem(problem.field, f"{value}: must be text, with quotes; and {said}")


def _cron_remark(value: object) -> str:
    is_cron = isinstance(value, str) and _CRON.fullmatch(value.strip()[:_MAX_QUOTED])
    return " (a cron line is not read, because it says only when something begins)" if is_cron else ""


def _example_of(problem: Problem) -> str:
    _, _, example = problem.message.partition(" such as ")
    return f" such as {example}" if example else ""


def _set(whole: Any, loc: tuple[int | str, ...], value: object) -> None:
    for step in loc[:-1]:
        whole = whole[step]
    whole[loc[-1]] = value


def _example(class_name: object, model: type[BaseModel]) -> str:
    found = _models(model).get(str(class_name))
    if found is None:
        return ""
    fields = [(info.alias or name) for name, info in found.model_fields.items() if info.is_required()]
    example = getattr(found, "EXAMPLE", "") or (f"{{{', '.join(f'{name}: ...' for name in fields)}}}" if fields else "")
    return f" such as {example}" if example else ""


def _models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The models that a model is made of, by name."""
    found: dict[str, type[BaseModel]] = {}
    left: list[Any] = [model]
    while left:
        each = left.pop()
        if isinstance(each, type) and issubclass(each, BaseModel):
            if each.__name__ not in found:
                found[each.__name__] = each
                left += [info.annotation for info in each.model_fields.values()]
        else:
            left += get_args(each)
    return found


def _nearest_literal(value: object, expected: str) -> str:
    allowed = re.findall("'([^']*)'", expected)
    near = difflib.get_close_matches(str(value).lower()[:64], [each.lower() for each in allowed], n=1)
    right = next((each for each in allowed if near and each.lower() == near[0]), None)
    return f'; did you mean "{right}"?' if right else ""
