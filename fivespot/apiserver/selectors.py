"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .names import qualified_problem, value_problem
from .status import bad_request
from .store import Entry

__all__ = ["EVERYTHING", "ObjectSelector", "parse_fields", "parse_labels"]

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """A label and a field selector."""

    labels: tuple[Test, ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()

    def matches(self, entry: Entry) -> bool:
        """Whether an entry matches."""
        for test in self.labels:
            if not test(entry.labels):
                return False
        return all((_field(entry, name) == value) is equal for name, equal, value in self.fields)

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.labels and not self.fields

    @property
    def name(self) -> str | None:
        """The one name that can match, where a field selector says so."""
        return next((value for name, equal, value in self.fields if equal and name == "metadata.name"), None)


EVERYTHING: Final = ObjectSelector()


def _field(entry: Entry, name: str) -> str:
    if name == "metadata.name":
        return entry.name
    if name == "metadata.namespace":
        return entry.namespace
    return entry.fields.get(name, "")


def parse_fields(text: str, known: Sequence[str], *, custom: bool = False) -> tuple[tuple[str, bool, str], ...]:
    """The terms of a field selector.

    :param known: fields beside name and namespace.
    :param custom: of a kind that a definition defines.
    :raises StatusError: 400.
    """
    terms = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        found = re.fullmatch(r"(.*?)(==|!=|=)(.*)", term, re.DOTALL)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = found.groups()
        if not name and not value:
            continue
        if name not in {"metadata.name", "metadata.namespace", *known}:
            if custom:
                raise bad_request(f"field label not supported: {name}")
            listed = ", ".join(f'"{each}"' for each in ("metadata.name", "metadata.namespace", *known))
            raise bad_request(f'"{name}" is not a known field selector: only {listed}')
        terms.append((name, operator != "!=", re.sub(r"\\([\\,=])", r"\1", value)))
    return tuple(terms)


def parse_labels(text: str) -> tuple[Test, ...]:
    """The requirements of a label selector.

    :raises StatusError: 400.
    """
    return _LabelParser(text).parse() if text.strip() else ()


class _LabelParser:
    """Recursive descent over the grammar of ``k8s.io/apimachinery/pkg/labels``."""

    def __init__(self, text: str) -> None:
        self._tokens = [found.group(1) for found in _TOKEN.finditer(text)]
        self._position = 0

    def parse(self) -> tuple[Test, ...]:
        tests = [self._requirement()]
        while self._peek():
            if self._next() != ",":
                raise bad_request(f"found '{self._tokens[self._position - 1]}', expected: ',' or 'end of string'")
            if self._peek() in {"", ","}:
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
            tests.append(self._requirement())
        return tuple(tests)

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _requirement(self) -> Test:
        if self._peek() == "!":
            self._next()
            key = self._key()
            return lambda labels: key not in labels
        if self._peek() in {"", "(", ")", ",", "=", "==", "!=", "<", ">"}:
            raise bad_request(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        key = self._key()
        operator = self._peek()
        if operator in {"", ","}:
            return lambda labels: key in labels
        self._next()
        if operator in {"=", "=="}:
            value = self._value(key)
            return lambda labels: labels.get(key) == value
        if operator == "!=":
            value = self._value(key)
            return lambda labels: labels.get(key) != value
        if operator in {"<", ">"}:
            return self._compare(key, operator)
        if operator in {"in", "notin"}:
            values = self._set(key)
            if operator == "in":
                return lambda labels: labels.get(key) in values
            return lambda labels: labels.get(key) not in values
        words = f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
        raise bad_request(f"unable to parse requirement: {words}")

    def _key(self) -> str:
        key = self._next()
        if not key or key in "!=(),<>":
            raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
        problem = qualified_problem(key)
        if problem:
            raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {problem}')
        return key

    def _value(self, key: str) -> str:
        if self._peek() in {"", ","}:
            return ""
        if self._peek() == "!":
            raise bad_request("unable to parse requirement: found '!', expected: identifier")
        return self._checked(self._next(), key)

    def _checked(self, value: str, key: str) -> str:
        problem = value_problem(value)
        if problem:
            raise bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": {problem}')
        return value

    def _compare(self, key: str, operator: str) -> Test:
        value = self._next()
        try:
            bound = int(value)
        except ValueError:
            words = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise bad_request(f'unable to parse requirement: values[0]: Invalid value: "{value}": {words}') from None

        def test(labels: Labels) -> bool:
            try:
                held = int(labels[key])
            except (KeyError, ValueError):
                return False
            return held > bound if operator == ">" else held < bound

        return test

    def _set(self, key: str) -> frozenset[str]:
        if self._next() != "(":
            found = self._tokens[self._position - 1] if self._position <= len(self._tokens) else ""
            raise bad_request(f"unable to parse requirement: found '{found}' expected: '('")
        values: list[str] = []
        while True:
            word = self._next()
            if word in {",", ")"}:
                # An omitted value is the empty string.
                if word == ")":
                    return frozenset(values or [""])
                values.append("")
                continue
            if not word:
                raise bad_request("unable to parse requirement: found '', expected: ',', ')' or identifier")
            values.append(self._checked(word, key))
            after = self._next()
            if after == ")":
                return frozenset(values)
            if after != ",":
                raise bad_request(f"unable to parse requirement: found '{after}', expected: ',' or ')'")
