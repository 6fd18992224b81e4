"""Reads fields of a decoded spec, with errors that name the path. Absent fields and nulls are equivalent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime

from .civil import Zone
from .errors import GrammarError, ScheduleError
from .zones import load_zone

Fields = Mapping[str, object]


@contextmanager
def within(field: str) -> Iterator[None]:
    """Prefix the path of errors raised inside with ``field``."""
    try:
        yield
    except ScheduleError as error:
        raise error.within(field) from None


def zone_of(spec: Fields) -> Zone:
    """Load the zone that ``timezone`` names, by default UTC. Raises :class:`~.errors.UnknownZone`."""
    name = spec.get("timezone")
    with within("timezone"):
        return load_zone("UTC" if name is None else text(name))


def flag(item: Fields, name: str) -> bool:
    """Read a boolean, by default true."""
    value = item.get(name)
    if value is None or isinstance(value, bool):
        return value is not False
    raise GrammarError(f"{value!r} is not true or false", field=name)


def text(value: object) -> str:
    """Read a required string."""
    if not isinstance(value, str):
        raise GrammarError("is missing" if value is None else f"{value!r} is not a text")
    return value


def text_of(item: Fields, name: str) -> str:
    """Read a required string member."""
    with within(name):
        return text(item.get(name))


def date_text(item: Fields, name: str) -> str:
    """Read a date as a string; a date object from a YAML parser is converted back."""
    with within(name):
        return date_as_text(item.get(name))


def date_as_text(value: object) -> str:
    """As :func:`date_text`, of a value."""
    is_date = isinstance(value, date) and not isinstance(value, datetime)
    return text(value.isoformat() if is_date and isinstance(value, date) else value)


def texts(item: Fields, name: str) -> list[str]:
    """Read a list of strings, empty if absent."""
    with within(name):
        return [text(value) for value in values(item, name)]


def objects(item: Fields, name: str) -> Iterator[tuple[int, Fields]]:
    """Yield the objects of a list, each with its index."""
    with within(name):
        found = values(item, name)
    for index, value in enumerate(found):
        if not isinstance(value, Mapping):
            raise GrammarError(f"{value!r} is not an object", field=f"{name}[{index}]")
        yield index, value


def values(item: Fields, name: str) -> Sequence[object]:
    """Return the entries of a list, empty if absent; the error does not name the field."""
    value = item.get(name)
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise GrammarError(f"{value!r} is not a list")
    return value
