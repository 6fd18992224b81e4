"""Evaluation of CEL validation rules."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fivespot.apiserver.json_codec import decode_json, encode_json, json_equal
from fivespot.apiserver.status import FieldCause

from .cel import CelError, Program, compile_expression
from .node import Node, ValidationRule, cel_name
from .validation import ABSENT, format_value, identity, lists_alike

__all__ = ["check_rules"]

_SELF: Final = re.compile(r"\bself\b(?:\.\??(\w+))?")
_OLD: Final = re.compile(r"\boldSelf\b(?:\.\??(\w+))?")


def check_rules(value: Any, node: Node, path: str, old: Any = ABSENT) -> list[FieldCause]:
    """Evaluate the rules of a schema on a valid object.

    :param old: the value before; rules that name ``oldSelf`` are skipped without one, and unchanged values are not
        checked again (KEP-4008).
    """
    causes: list[FieldCause] = []
    _walk(value, node, path, old, causes)
    return causes


def _walk(value: Any, node: Node, path: str, old: Any, causes: list[FieldCause]) -> None:
    if not node.ruled or value is None or (old is not ABSENT and json_equal(old, value)):
        return
    for rule in node.rules:
        _apply(rule, value, node, path, old, causes)
    for member, inner, where, before in _members(value, node, path, old):
        _walk(member, inner, where, before, causes)


def _members(value: Any, node: Node, path: str, old: Any) -> Iterator[tuple[Any, Node, str, Any]]:
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name in sorted(value):
            inner = node.child(name)
            if inner is not None and inner.ruled:
                yield value[name], inner, f"{path}.{name}" if path else name, before.get(name, ABSENT)
    elif isinstance(value, list) and node.items is not None:
        known = lists_alike(node, old) or {}
        for number, item in enumerate(value):
            yield item, node.items, f"{path}[{number}]", known.get(identity(node, item), ABSENT)


def _apply(rule: ValidationRule, value: Any, node: Node, path: str, old: Any, causes: list[FieldCause]) -> None:
    present = old is not ABSENT
    if rule.transition and not present and not rule.optional_old_self:
        return
    if _held(rule, value, node, old):
        return
    own = to_cel(value, node)
    before = (to_cel(old, node),) if present else ()
    try:
        if _program(rule, node.type).evaluate(own, *before) is True:
            return
        message = _message(rule, node.type, own, *before)
    except CelError as error:
        message = f"{error} evaluating rule: {rule.message or rule.rule.strip()}"
    causes.append(_cause(rule, value, path, message))


def _message(rule: ValidationRule, kind: str, own: Any, *old: Any) -> str:
    if rule.message_expression:
        try:
            message = compile_expression(rule.message_expression, kind).evaluate(own, *old)
        except CelError:
            message = None
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return rule.message or f"failed rule: {rule.rule.strip()}"


def _cause(rule: ValidationRule, value: Any, path: str, message: str) -> FieldCause:
    where = path + rule.field_path if path else rule.field_path.lstrip(".")
    match rule.reason:
        case "FieldValueForbidden":
            words = f"Forbidden: {message}"
        case "FieldValueRequired":
            words = f"Required value: {message}"
        case "FieldValueDuplicate":
            words = f"Duplicate value: {message}"
        case _:
            shown = "" if isinstance(value, dict | list) else f"{format_value(value)}: "
            words = f"Invalid value: {shown}{message}"
    return FieldCause(where, rule.reason, words)


@dataclass(frozen=True, slots=True)
class _Reads:
    """The members that a rule may read; None for all."""

    own: frozenset[str] | None
    old: frozenset[str] | None


@lru_cache(maxsize=4096)
def _reads(rule: ValidationRule, node: Node) -> _Reads:
    # By name, wherever it appears in the text: a superfluous member costs only time.
    if node.type != "object" or node.additional is not None:
        return _Reads(None, None)
    text = rule.rule
    if rule.optional_old_self:
        text = text.replace("oldSelf.hasValue()", "")
        return _Reads(_members_named(_SELF, text, node), None if "oldSelf" in text else frozenset())
    return _Reads(_members_named(_SELF, text, node), _members_named(_OLD, text, node))


def _members_named(pattern: re.Pattern[str], text: str, node: Node) -> frozenset[str] | None:
    found = {match.group(1) for match in pattern.finditer(text)}
    if None in found:
        return None
    return frozenset(found | {name for name in node.properties if cel_name(name) in found})


def _seen(value: Any, names: frozenset[str] | None) -> bytes:
    if names is not None and isinstance(value, dict):
        value = {name: member for name, member in value.items() if name in names}
    return encode_json(value)


def _held(rule: ValidationRule, value: Any, node: Node, old: Any) -> bool:
    """Whether a rule is known to hold for the members that it reads.

    Cached, because most writes change only the status, which most rules do not read.
    """
    reads = _reads(rule, node)
    return _holds(rule, node, _seen(value, reads.own), None if old is ABSENT else _seen(old, reads.old))


@lru_cache(maxsize=4096)
def _holds(rule: ValidationRule, node: Node, seen: bytes, old: bytes | None) -> bool:
    before = () if old is None else (to_cel(decode_json(old), node),)
    try:
        return _program(rule, node.type).evaluate(to_cel(decode_json(seen), node), *before) is True
    except CelError:
        return False


@lru_cache(maxsize=4096)
def _program(rule: ValidationRule, kind: str) -> Program:
    return compile_expression(rule.rule, kind, optional_old=rule.optional_old_self)


def _is_visible(name: str, node: Node) -> bool:
    """Whether rules see a member: unknown members that a schema preserves, and members without a type, are hidden."""
    inner = node.child(name)
    if inner is None:
        return not node.preserve or name in {"apiVersion", "kind", "metadata"}
    return bool(inner.type or inner.int_or_string)


def to_cel(value: Any, node: Node | None) -> Any:
    """Convert a value for CEL: escaped names, doubles for numbers, bytes for format byte.

    Times and durations stay strings, because the library takes no timestamps from outside: rules that compare them need
    ``timestamp()`` or ``duration()`` here, which kube-apiserver accepts too.
    """
    if node is None or node.plain or value is None:
        return value
    if isinstance(value, dict):
        return {
            (cel_name(name) if name in node.properties else name): to_cel(member, node.child(name))
            for name, member in value.items()
            if _is_visible(name, node)
        }
    if isinstance(value, list):
        return [to_cel(item, node.items) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and node.type == "number":
        return float(value)
    if isinstance(value, str) and node.format == "byte":
        try:
            return base64.b64decode(value)
        except ValueError:
            return value
    return value
