"""Validation of names, labels and qualified names (``k8s.io/apimachinery/pkg/util/validation``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = [
    "LABEL",
    "SUBDOMAIN",
    "is_path_segment",
    "label1035_problem",
    "label_problem",
    "no_name",
    "qualified_problem",
    "subdomain_problem",
    "value_problem",
]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

LABEL: Final = re.compile(_LABEL)
SUBDOMAIN: Final = re.compile(_SUBDOMAIN)
_NAME_PART: Final = re.compile(_NAME)
_VALUE: Final = re.compile(f"({_NAME})?")

_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_LABEL_WORDS: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL_1035}')"
)
_NAME_WORDS: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_WORDS: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_NAME})?')"
)


def subdomain_problem(text: str) -> str:
    """Validate a DNS subdomain name; "" when valid."""
    if len(text) > 253:
        return "must be no more than 253 bytes"
    return "" if SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_WORDS


def label_problem(text: str) -> str:
    """Validate a DNS label; "" when valid."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return "" if LABEL.fullmatch(text) else _LABEL_WORDS


def label1035_problem(text: str) -> str:
    """Validate a DNS label that starts with a letter; "" when valid."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return "" if re.fullmatch(_LABEL_1035, text) else _LABEL_1035_WORDS


@lru_cache(maxsize=4096)
def qualified_problem(text: str) -> str:
    """Validate a qualified name such as ``example.com/team``; "" when valid."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if "/" in prefix:
            return (
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character with an optional DNS subdomain prefix and '/' (e.g. "
                "'example.com/MyName')"
            )
        problem = subdomain_problem(prefix)
        if problem:
            return f"prefix part {problem}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _NAME_PART.fullmatch(name) else _NAME_WORDS


@lru_cache(maxsize=4096)
def value_problem(text: str) -> str:
    """Validate a label value; "" when valid."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    return "" if _VALUE.fullmatch(text) else _VALUE_WORDS


def no_name(name: str) -> str:
    """The message about a body without a name, sent to the URL of an object."""
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def is_path_segment(name: str) -> str:
    """Validate a name as a path segment; "" when valid."""
    if name in {".", ".."}:
        return f"may not be '{name}'"
    for part in ("/", "%"):
        if part in name:
            return f"may not contain '{part}'"
    return ""
