"""The value types that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, Literal, cast

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from fivespot.api.hints import (
    DAY_HINTS,
    DURATION_HINTS,
    TIME_HINTS,
    ExplainedPattern,
    explain_zone,
    explained,
    hinted,
    zone_message,
)
from fivespot.api.names import RESERVED_PREFIXES
from fivespot.runtime.crd import Cel, Extra, RuledModel, list_map, matches, nullable
from fivespot.runtime.objects import parse_rfc3339
from fivespot.schedule import (
    parse_date,
    parse_days,
    parse_duration,
    parse_hours,
    parse_moment,
    parse_time,
)
from fivespot.schedule.grammar import nearest_instant

_SECONDS_PER: Final = {"s": 1, "m": 60, "h": 3600}

QUALIFIED_NAME_PATTERN: Final = (
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
"""A label, annotation or taint key: an optional DNS prefix and a name of at most 63 characters."""

LABEL_VALUE_PATTERN: Final = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"

DNS_SUBDOMAIN_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

KIND_PATTERN: Final = "^[A-Z][A-Za-z0-9]*$"


class ApiModel(RuledModel):
    """Base of every API type: camelCase outside, immutable, no coercion (the API server does none either)."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        strict=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration such as `30s`, `5m` or `2h`. Raises `ValueError` for anything else."""
    number, unit = text[:-1], text[-1:]
    if unit not in _SECONDS_PER or not (number.isascii() and number.isdigit()):
        raise ValueError(f"{text!r} is not a duration: write a whole number and one of s, m, h, such as 5m")
    return int(number) * _SECONDS_PER[unit]


def _at_most(hours: int) -> Cel:
    # The check of the digits keeps CEL's duration() from overflowing, which would be reported as a broken rule.
    rule = Cel(
        f"self.matches('^0*[0-9]{{1,6}}[smh]$') && duration(self) <= duration('{hours}h')",
        f"must be a whole number of s, m or h, such as 90m, and at most {hours}h",
        check=lambda text: _is_at_most(text, hours),
    )
    return hinted(rule, DURATION_HINTS, partial(parse_duration, at_most=timedelta(hours=hours)))


def _is_at_most(text: str, hours: int) -> bool:
    try:
        return duration_seconds(text) <= hours * _SECONDS_PER["h"]
    except ValueError:
        return False


_DURATION_PATTERN: Final = ExplainedPattern("^[0-9]+[smh]$", cast("Callable[[str], str]", _at_most(24).explain))

Duration = Annotated[str, Field(max_length=32), _DURATION_PATTERN, _at_most(24)]
"""At most a day, as a whole number and one unit: `30s`, `5m`, `2h`. `0s` is valid, compound forms are not. See
`duration_seconds`."""

LongDuration = Annotated[str, Field(max_length=32), _at_most(7 * 24)]
"""As `Duration`, at most a week."""

_DATE: Final = (
    "([1-8][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))"
    "|([1-8][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[1357][26])00)-02-29)"
)

DATE_PATTERN: Final = f"^{_DATE}$"
"""A date that exists, leap days included, in the years 1000 to 8999."""

INSTANT_PATTERN: Final = (
    f"^{_DATE}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,9}})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
"""An RFC 3339 instant that exists, in the years 1000 to 8999.

Exact on purpose: a rule may pass a matching value to CEL's `timestamp()`, and an error during the evaluation of a
rule is refused even for objects older than the rule. For the same reason the fields have no `format: date-time`: with
it, the server converts the value before any rule is evaluated.
"""


def instant_message(text: str, others: str = "") -> str:
    """Explain a text that is no instant, and none of the other values that the field takes."""
    nearest = nearest_instant(text)
    hint = f'; did you mean "{nearest}"?' if nearest else ""
    return f"must be an instant: date, time and offset of RFC 3339, such as 2027-01-31T06:00:00Z{others}{hint}"


Timestamp = Annotated[str, Field(max_length=64), Extra({"format": "date-time"})]
"""An RFC 3339 instant that a controller wrote."""

Instant = Annotated[
    str,
    Field(max_length=64),
    replace(
        matches(INSTANT_PATTERN, "must be an instant: date, time and offset of RFC 3339, such as 2027-01-31T06:00:00Z"),
        explain=instant_message,
    ),
]
"""An RFC 3339 instant that a person wrote, offset included."""


def starts_with_any(text: str, prefixes: Iterable[str]) -> str:
    """Return a CEL expression: whether the string expression `text` begins with one of `prefixes`."""
    return " || ".join(f"{text}.startsWith('{prefix}')" for prefix in prefixes)


def _no_reserved_keys(values: dict[str, str]) -> bool:
    return not any(key.startswith(RESERVED_PREFIXES) for key in values)


_QUALIFIED = re.compile(QUALIFIED_NAME_PATTERN[1:-1])


def _qualified_keys(values: dict[str, str]) -> bool:
    return all(_QUALIFIED.fullmatch(key) for key in values)


_RESERVED = Cel(
    f"self.all(key, !({starts_with_any('key', RESERVED_PREFIXES)}))",
    f"keys must not begin with the reserved prefixes {', '.join(RESERVED_PREFIXES)}",
    check=_no_reserved_keys,
    reason="FieldValueForbidden",
)

_KEYS = Cel(
    f"self.all(key, key.matches('{QUALIFIED_NAME_PATTERN}'))",
    "keys must be qualified names such as example.com/team: at most 63 letters, digits, '-', '_' and '.' after an "
    "optional DNS prefix",
    check=_qualified_keys,
)

Labels = Annotated[
    dict[str, Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)]],
    Field(max_length=64),
    _RESERVED,
    _KEYS,
]
"""Labels that a template may set."""

Annotations = Annotated[dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=64), _RESERVED, _KEYS]
"""Annotations that a template may set."""


class StatusCondition(ApiModel):
    """A condition, as in the Kubernetes API conventions."""

    type: Annotated[str, Field(max_length=316)]
    """Type of the condition, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    observed_generation: int | None = None
    """The metadata.generation that the condition was computed for."""
    last_transition_time: Timestamp | None = None
    """Time at which status last changed from one value to another."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Reason for the status, in one word, for programs."""
    message: Annotated[str, Field(max_length=32768)] | None = None
    """Details for people."""


Conditions = Annotated[list[StatusCondition], list_map("type")]
"""Conditions, keyed by type, so that several writers can own different ones."""

DAY_PATTERN: Final = "(mon|tue|wed|thu|fri|sat|sun)"

CLOCK_PATTERN: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"

TIMEZONE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_+\-/]*$"

_HOUR: Final = "0*([0-9]|1[0-9]|2[0-3])"

_SPACE: Final = "[ \\t]*"


def _list_of(value: str) -> str:
    """Return a pattern for comma-separated values and ranges, with spaces around each."""
    part = f"{_SPACE}{value}{_SPACE}(-{_SPACE}{value}{_SPACE})?"
    return f"^{part}(,{part})*$"


def whole_hours(for_minutes: str) -> Cel:
    """Return the rule of an hour expression; its message ends with the alternative for minutes."""
    rule = matches(
        _list_of(_HOUR),
        "must be whole hours: 0 to 23, a range such as 9-17 (which runs until 17:59) or 22-6, or several with commas; "
        f"for minutes use {for_minutes}",
    )
    return explained(rule, lambda text: parse_hours([text]))


DayExpression = Annotated[
    str,
    Field(max_length=128),
    hinted(
        matches(
            _list_of(DAY_PATTERN),
            "must be days: mon, tue, wed, thu, fri, sat or sun in lower case, a range such as mon-fri or fri-mon, or "
            "several with commas",
        ),
        DAY_HINTS,
        lambda text: parse_days([text]),
    ),
]

StartTime = Annotated[
    str,
    Field(max_length=32),
    hinted(matches(f"^{CLOCK_PATTERN}$", 'must be a time of day "HH:MM", 00:00 to 23:59'), TIME_HINTS, parse_time),
]

EndTime = Annotated[
    str,
    Field(max_length=32),
    hinted(
        matches(f"^({CLOCK_PATTERN}|24:00)$", 'must be a time of day "HH:MM", 00:00 to 24:00'),
        TIME_HINTS,
        partial(parse_time, end=True),
    ),
]

FromMoment = Annotated[
    str,
    Field(max_length=32),
    explained(
        matches(f"^{DAY_PATTERN} +{CLOCK_PATTERN}$", 'must be a day and a time of day such as "mon 06:00"'),
        parse_moment,
    ),
]
UntilMoment = Annotated[
    str,
    Field(max_length=32),
    explained(
        matches(f"^{DAY_PATTERN} +({CLOCK_PATTERN}|24:00)$", 'must be a day and a time of day such as "fri 21:00"'),
        partial(parse_moment, end=True),
    ),
]

SPAN_HAS_LENGTH: Final = Cel(
    "!has(self.from) || !has(self.until) || self.from.replace(' ', '') != self.until.replace(' ', '')",
    'from and until must differ; the whole week is {from: "mon 00:00", until: "sun 24:00"}',
    check=lambda span: None in (span.from_, span.until) or span.from_.split() != span.until.split(),
)
"""A rule of objects with `from` and `until`."""


def _in_order(spec: Any) -> bool:
    if spec.valid_from is None or spec.valid_until is None:
        return True
    return parse_rfc3339(spec.valid_from) < parse_rfc3339(spec.valid_until)


VALIDITY_IN_ORDER: Final = Cel(
    "!has(self.validFrom) || !has(self.validUntil)"
    f" || !self.validFrom.matches('{INSTANT_PATTERN}') || !self.validUntil.matches('{INSTANT_PATTERN}')"
    " || timestamp(self.validFrom) < timestamp(self.validUntil)",
    "validFrom must be before validUntil",
    check=_in_order,
)
"""A rule of specs with `validFrom` and `validUntil`."""

LocalDate = Annotated[
    str,
    Field(max_length=32),
    explained(matches(DATE_PATTERN, "must be a date YYYY-MM-DD that exists"), parse_date),
]

_ZONES_WITHOUT_AREA: Final = (
    "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire Factory GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong "
    "Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal "
    "ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu"
)
"""All that the IANA database has, and will have: it adds none."""

_NO_ZONE: Final = "is not a time zone: "
_USE_A_NAME: Final = "use a name of the IANA database, such as Europe/Berlin or UTC"

TimeZone = Annotated[
    str,
    Field(max_length=64),
    ExplainedPattern(TIMEZONE_PATTERN, explain_zone),
    Cel(
        f"self.contains('/') || self in [{', '.join(repr(zone) for zone in _ZONES_WITHOUT_AREA.split())}]",
        f"{_NO_ZONE}{_USE_A_NAME}",
        check=lambda name: "/" in name or name in _ZONES_WITHOUT_AREA.split(),
        message_expression=zone_message(_NO_ZONE, _USE_A_NAME),
        explain=explain_zone,
    ),
]
"""A time zone by its form; whether there is one of that name, the provider knows."""


class ScheduleStatus(ApiModel):
    """The verdict of a schedule, which ScheduledMachines act on."""

    active: bool
    """Whether machines that refer to this schedule should exist."""
    conditions: Conditions | None = None
    """Condition Ready is True while the verdict is reliable; otherwise machines stay as they are."""
    observed_generation: int | None = None
    """The metadata.generation that this status was computed for."""
    last_transition_time: Timestamp | None = None
    """Time at which active last changed."""
    next_transition_time: Annotated[Timestamp | None, nullable()] = None
    """Time at which active changes next, as far as is known; null if it never does."""
