"""Reads objects from YAML or JSON as kubectl reads them."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fivespot.api.yaml_documents import load_documents
from fivespot.runtime import ConfigError

__all__ = ["STDIN", "read_objects", "unknown_fields", "without_nulls"]

STDIN: Final = "-"


def read_objects(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Read all objects of the files, in their order; the items of a ``List`` count as objects of their own.

    :param paths: files of YAML or JSON, each with any number of documents; ``-`` is standard input.
    :raises ConfigError: a file cannot be read, or contains something else.
    """
    found: list[dict[str, Any]] = []
    for path in paths:
        shown = "standard input" if path == STDIN else path
        try:
            text = sys.stdin.read() if path == STDIN else Path(path).read_text(encoding="utf-8-sig")
            for number, document in enumerate(load_documents(text, shown), 1):
                found += _objects(document, f"{shown}: document {number}")
        except OSError as error:
            raise ConfigError(f"{shown}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{shown}: is not UTF-8 text") from error
        except RecursionError:
            raise ConfigError(f"{shown}: is nested too deeply") from None
    return found


def _objects(document: object, where: str) -> Iterator[dict[str, Any]]:
    if document is None:
        return
    try:
        # kubectl refuses what JSON cannot express.
        plain = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: cannot be written as JSON: {error}") from None
    if not isinstance(plain, Mapping) or not isinstance(plain.get("kind"), str):
        raise ConfigError(f"{where}: is not a Kubernetes object (it has no kind)")
    items = plain.get("items")
    if plain["kind"].endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects(item, f"{where}: item {index + 1}")
        return
    yield dict(plain)


_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(value: object, schema: Mapping[str, Any], at: str = "spec") -> Iterator[str]:
    """Describe each unknown field name, with the nearest known name if there is one.

    :param schema: a structural schema, as a CustomResourceDefinition has it.
    """
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, member in value.items():
            if name in known:
                yield from unknown_fields(member, known[name], f"{at}.{name}")
            elif isinstance(others, Mapping):
                yield from unknown_fields(member, others, f"{at}.{name}")
            elif not others and not schema.get(_PRESERVE) and schema.get("type") == "object":
                yield f"{at}.{name}: there is no such field{_instead(str(name), known)}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), f"{at}[{index}]")


_OTHER_WORDS: Final = {
    "begin": ("start",),
    "close": ("end",),
    "cron": ("windows", "sessions"),
    "cooldown": ("lagTime",),
    "crontab": ("windows", "sessions"),
    "buffer": ("leadTime", "lagTime"),
    "closed": ("holidays", "exceptions"),
    "dates": ("date",),
    "day": ("days", "date"),
    "daysofweek": ("days",),
    "disabled": ("enabled",),
    "earlyclose": ("earlyCloses",),
    "exclude": ("exceptions", "holidays"),
    "expires": ("validUntil",),
    "finish": ("end",),
    "halfdays": ("earlyCloses",),
    "holidays": ("exceptions",),
    "hours": ("hoursOfDay", "windows"),
    "location": ("timezone",),
    "notafter": ("validUntil",),
    "notbefore": ("validFrom",),
    "open": ("start",),
    "paused": ("enabled",),
    "repeat": ("recurrence",),
    "rrule": ("recurrence",),
    "schedule": ("windows", "sessions"),
    "state": ("enabled",),
    "active": ("enabled",),
    "stop": ("end",),
    "suspend": ("enabled",),
    "to": ("end", "until"),
    "tz": ("timezone",),
    "validto": ("validUntil",),
    "warmdown": ("lagTime",),
    "warmup": ("leadTime",),
    "weekdays": ("days", "daysOfWeek"),
    "zone": ("timezone",),
}
"""Words of other tools, without the marks between their parts, and ours."""


def _instead(name: str, known: Mapping[str, Any]) -> str:
    letters = name.replace("_", "").replace("-", "").lower()
    same = [other for other in known if other.lower() == letters]
    words = [other for other in _OTHER_WORDS.get(letters, ()) if other in known]
    near = same or words or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(sorted(known))}" if known else ""


def without_nulls(value: object, schema: Mapping[str, Any]) -> object:
    """The value as the API server stores it: a null member counts as absent, unless its field takes nulls.

    :param schema: a structural schema, as a CustomResourceDefinition has it.
    """
    if isinstance(value, Mapping):
        known = schema.get("properties", {})
        return {
            name: without_nulls(member, known.get(name, {}))
            for name, member in value.items()
            if member is not None or name not in known or known[name].get("nullable")
        }
    if isinstance(value, list):
        return [without_nulls(item, schema.get("items", {})) for item in value]
    return value
