"""Hints in the messages of rules: the right spelling of a value that was probably meant.

The API server computes them with CEL, for the commonest mistakes; Python, which judges stored objects and files, asks
the parsers of the schedule, which know more of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fivespot.runtime.crd import Cel
from fivespot.schedule import ScheduleError, UnknownZone, load_zone
from fivespot.schedule.zone_hints import ABBREVIATIONS, OFFSET_HINT, abbreviation_hint

__all__ = [
    "DAY_HINTS",
    "DURATION_HINTS",
    "TIME_HINTS",
    "ExplainedPattern",
    "explain_zone",
    "explained",
    "hinted",
    "zone_message",
]

Hints = tuple[tuple[str, str], ...]

_LOWER: Final = "self.lowerAscii()"
_GROUP: Final = 8
_UPPER: Final = "self.upperAscii()"
_DAY_NAMES: Final = "^(mon|tues|wednes|thurs|fri|satur|sun)days?$"
_DAYS: Final = "^(mon|tue|wed|thu|fri|sat|sun)([-,](mon|tue|wed|thu|fri|sat|sun))*$"

DAY_HINTS: Final[Hints] = (
    (f"{_LOWER}.matches('{_DAYS}')", _LOWER),
    (f"{_LOWER}.matches('{_DAY_NAMES}')", f"{_LOWER}.substring(0, 3)"),
    (f"{_LOWER} in ['weekdays', 'workdays', '1-5']", "'mon-fri'"),
    (f"{_LOWER} in ['weekend', 'weekends', '6-7']", "'sat-sun'"),
)
"""CEL conditions on a value, and the right spelling where each holds."""

TIME_HINTS: Final[Hints] = (
    ("self.matches('^[0-9]:[0-5][0-9]$')", "'0' + self"),
    ("self.matches('^([01][0-9]|2[0-3])[.][0-5][0-9]$')", "self.replace('.', ':')"),
    ("self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$')", "self.substring(0, 5)"),
    ("self.matches('^([01][0-9]|2[0-3])$')", "self + ':00'"),
    ("self.matches('^[0-9]$')", "'0' + self + ':00'"),
)

DURATION_HINTS: Final[Hints] = (
    (
        f"{_LOWER}.matches('^[0-9]+ *(s|m|h|secs?|seconds?|mins?|minutes?|hrs?|hours?)$')",
        f"self.find('[0-9]+') + {_LOWER}.find('[smh]')",
    ),
    (f"{_LOWER}.matches('^pt[0-9]+[hms]$')", f"{_LOWER}.substring(2)"),
    ("self.matches('^[0-9]+$')", "self + 's'"),
)


def hinted(rule: Cel, hints: Hints, parse: Callable[[str], object]) -> Cel:
    """The same rule, with hints in its message."""
    otherwise = "''"
    for condition, right in reversed(hints):
        otherwise = f"{condition} ? '; did you mean \"' + {right} + '\"?' : ({otherwise})"
    expression = f"{_literal(rule.message)} + ({otherwise})"
    return replace(explained(rule, parse), message_expression=expression)


def explained(rule: Cel, parse: Callable[[str], object]) -> Cel:
    """The same rule, with the hint of a parser's error in its message in Python."""
    return replace(rule, explain=partial(_explain, rule.message, parse))


def _explain(message: str, parse: Callable[[str], object], text: str) -> str:
    try:
        parse(text)
    except ScheduleError as error:
        return f"{message}; did you mean {error.suggestion}?" if error.suggestion else message
    return message


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: typing hashes what Annotated carries
class ExplainedPattern:
    """A `pattern` of the schema whose message in Python is an explanation.

    For fields whose pattern is part of the existing definitions; where it is not, a rule alone says more.
    """

    pattern: str
    explain: Callable[[str], str]

    def _judge(self, value: str) -> str:
        if re.fullmatch(self.pattern[1:-1], value) is None:
            raise PydanticCustomError("pattern_broken", "{message}", {"message": self.explain(value)})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._judge, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "pattern": self.pattern}


def explain_zone(name: str) -> str:
    """Explain a name that is not a time zone."""
    try:
        load_zone(name)
    except UnknownZone as error:
        return str(error)
    return ""


def zone_message(start: str, otherwise: str) -> str:
    """CEL for a name that is not a time zone: what an abbreviation or offset stands for, or ``otherwise``."""
    # Chains of comparisons: what a map gives has no length that the server knows, and a cost beyond its budget. In
    # groups, because the depth of an expression is limited as well.
    chosen = _literal(otherwise)
    names = sorted(ABBREVIATIONS)
    for first in range(0, len(names), _GROUP):
        group = names[first : first + _GROUP]
        inner = _literal(abbreviation_hint(group[-1]))
        for name in group[:-1]:
            inner = f"{_UPPER} == '{name}' ? {_literal(abbreviation_hint(name))} : {inner}"
        chosen = f"{_UPPER} in [{', '.join(map(_literal, group))}] ? ({inner}) : {chosen}"
    is_offset = f"{_UPPER}.matches('^(UTC|GMT)?[+-][0-9]{{1,2}}(:?[0-9]{{2}})?$')"
    return f"{_literal(start)} + ({is_offset} ? self + {_literal(OFFSET_HINT)} : {chosen})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
