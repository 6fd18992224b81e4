"""Removes the values of embedded objects from messages about them (contract B4.8).

The API server quotes the values that it refuses, and admission webhooks quote what they like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from fivespot.runtime import ApiError, InvalidError
from fivespot.runtime.errors import StatusCause, api_error

__all__ = ["conceal"]

_HIDDEN: Final = "(hidden)"
_SHORTEST: Final = 4
"""The shortest value, in characters, that is searched for in free text; shorter ones occur in ordinary words."""

_CUT: Final = "…"
"""The end of a message that was truncated."""

# The form of field errors in apimachinery: what kind of error, the value (quoted by Go, or as JSON), then why.
_QUOTED_VALUE = re.compile(
    r'^((?:Invalid|Unsupported|Duplicate) value|Not found|Too long|Too many): (?:"(?:[^"\\]|\\.)*"?|.*?(?=: |$))',
    re.DOTALL,
)


def conceal(error: ApiError, embedded: Mapping[str, Any]) -> ApiError:
    """Return the error without the values of the embedded object that it is about."""
    forms = _forms(embedded)
    causes = tuple(replace(cause, message=_hide(_without_value(cause), forms)) for cause in error.causes)
    message = _hide(error.message, forms)
    if isinstance(error, InvalidError) and causes and all(cause.field for cause in causes):
        # Rebuilt from its parts, in which the position of each value is known.
        message = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
    return api_error(
        error.status, error.reason, message, request=error.request, causes=causes, retry_after=error.retry_after
    )


def _without_value(cause: StatusCause) -> str:
    return _QUOTED_VALUE.sub(rf"\1 {_HIDDEN}", cause.message)


def _hide(text: str, forms: list[str]) -> str:
    for form in forms:
        text = text.replace(form, _HIDDEN)
    if text.endswith(_CUT):
        text = _hide_cut(text.removesuffix(_CUT), forms) + _CUT
    return text


def _hide_cut(text: str, forms: list[str]) -> str:
    """Hide a value at the end that may have been truncated."""
    for form in forms:
        for length in range(min(len(form), len(text)), _SHORTEST - 1, -1):
            if text.endswith(form[:length]):
                return text[:-length] + _HIDDEN
    return text


def _forms(embedded: Mapping[str, Any]) -> list[str]:
    """Return every text of the object in the forms that a message may contain, the longest first."""
    found = set()
    for text in _texts(embedded.get("spec")):
        for form in (text, " ".join(text.split()), msgspec.json.encode(text).decode()[1:-1]):
            if len(form) >= _SHORTEST:
                found.add(form)
    return sorted(found, key=lambda form: (-len(form), form))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
