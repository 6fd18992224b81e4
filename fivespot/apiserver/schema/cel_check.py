"""Validation of CEL rules in CustomResourceDefinitions.

The CEL library has no type for objects with named members. So each path of a rule that leads to a typed member is
replaced by a variable of that type, and the result is compiled: it has the type errors that the rule has in
kube-apiserver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from fivespot.apiserver.status import FieldCause

from .cel import CelError, compile_expression
from .formats import go_duration
from .node import Node, ValidationRule, cel_name, go_pattern
from .validation import format_value

__all__ = ["rule_problems"]

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LITERAL: Final = re.compile(r"""[rRbB]{0,2}(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')""")
_PATH: Final = re.compile(r"(?<![\w.])(self|oldSelf)((?:\.[A-Za-z_]\w*(?![\w(]))*)(?!\s*\.\s*\?)")
_HAS: Final = re.compile(r"\bhas\(\s*(self|oldSelf)((?:\.[A-Za-z_]\w*)+)\s*\)")
_MISSING: Final = re.compile(r"\b(?:math\.(?:greatest|least)|cel\.bind)\(")
"""Functions that the library has and kube-apiserver has not."""
_DURATION: Final = re.compile(r"\bduration\(\s*'([^']*)'\s*\)")
_MATCHES: Final = re.compile(r"\.matches\(\s*'([^']*)'\s*\)")
_SCALARS: Final = {"string": "STRING", "integer": "INT", "boolean": "BOOL"}
"""Numbers are dynamic, because kube-apiserver compares doubles with integers, and the library does not."""
_FIELD_PATH: Final = re.compile(r"(?:\.[A-Za-z_]\w*|\['[^']+'\])+")
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\['([^']+)'\]")
_CONVERTED: Final = frozenset({"byte", "date", "date-time", "datetime", "duration"})
"""Formats whose values are not strings in kube-apiserver."""


@dataclass
class _Typed:
    """A rule with variables in place of paths."""

    text: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    """Types by name, in the notation of :func:`compile_expression`."""


def rule_problems(node: Node, path: str) -> list[FieldCause]:
    """Validate the rules of one level of a schema."""
    causes: list[FieldCause] = []
    for number, rule in enumerate(node.rules):
        where = f"{path}.x-kubernetes-validations[{number}]"
        if not rule.rule.strip():
            causes.append(FieldCause(f"{where}.rule", "FieldValueRequired", "Required value: rule is not specified"))
            continue
        causes += _text_problems(rule, node, where)
        if problem := _problem(rule.rule, rule, node, "BOOL"):
            words = f"Invalid value: {_go_rule(rule)}: compilation failed: {problem}"
            causes.append(FieldCause(f"{where}.rule", "FieldValueInvalid", words))
        if rule.message_expression and (problem := _problem(rule.message_expression, rule, node, "STRING")):
            words = f"Invalid value: {_go_rule(rule)}: messageExpression compilation failed: {problem}"
            causes.append(FieldCause(f"{where}.messageExpression", "FieldValueInvalid", words))
    return causes


def _text_problems(rule: ValidationRule, node: Node, where: str) -> list[FieldCause]:
    causes = []
    raw = rule.raw
    for name in ("message", "messageExpression"):
        text = raw.get(name) or ""
        problem = ""
        if text and not text.strip():
            problem = f"{name} must be non-empty if specified"
        elif "\n" in text:
            problem = f"{name} must not contain line breaks"
        if problem:
            causes.append(
                FieldCause(f"{where}.{name}", "FieldValueInvalid", f"Invalid value: {format_value(text)}: {problem}")
            )
    if raw.get("reason") is not None and raw["reason"] not in _REASONS:
        supported = ", ".join(f'"{each}"' for each in _REASONS)
        words = f"Unsupported value: {format_value(raw['reason'])}: supported values: {supported}"
        causes.append(FieldCause(f"{where}.reason", "FieldValueNotSupported", words))
    if raw.get("fieldPath") and not _is_member_path(raw["fieldPath"], node):
        words = f"Invalid value: {format_value(raw['fieldPath'])}: fieldPath must be a valid path"
        causes.append(FieldCause(f"{where}.fieldPath", "FieldValueInvalid", words))
    if "optionalOldSelf" in raw and not rule.transition:
        words = f"Invalid value: {format_value(raw['optionalOldSelf'])}: may not be set if oldSelf is not used in rule"
        causes.append(FieldCause(f"{where}.optionalOldSelf", "FieldValueInvalid", words))
    return causes


def _is_member_path(path: str, node: Node) -> bool:
    if not _FIELD_PATH.fullmatch(path):
        return False
    inner: Node | None = node
    for found in _STEP.finditer(path):
        inner = inner.child(found.group(1) or found.group(2)) if inner is not None else None
        if inner is None:
            return False
    return True


def _problem(expression: str, rule: ValidationRule, node: Node, expected: str) -> str:
    try:
        found = compile_expression(expression, node.type, optional_old=rule.optional_old_self)
        if missing := _MISSING.search(expression):
            return f"undeclared reference to '{missing.group().rstrip('(')}'"
        typed = _typed(expression, rule, node)
        if typed is not None:
            found = compile_expression(typed.text, node.type, variables=tuple(sorted(typed.variables.items())))
    except CelError as error:
        return str(error)
    if found.type not in {expected, "DYN"}:
        return f"must evaluate to {'a bool' if expected == 'BOOL' else 'a string'}"
    return _literal_problem(expression)


def _literal_problem(expression: str) -> str:
    for found in _DURATION.finditer(expression):
        if go_duration(found.group(1)) is None:
            return f"invalid duration argument: {found.group(1)}"
    for found in _MATCHES.finditer(expression):
        try:
            go_pattern(found.group(1).replace("\\\\", "\\"))
        except ValueError as error:
            return f"invalid matches argument: {error}"
    return ""


def _typed(expression: str, rule: ValidationRule, node: Node) -> _Typed | None:
    """The expression with typed variables in place of paths; None when it cannot be translated."""
    made = _Typed()
    position = 0
    for literal in [*_LITERAL.finditer(expression), None]:
        code = expression[position : literal.start() if literal else len(expression)]
        made.text += _replace(code, rule, node, made)
        if literal is not None:
            made.text += literal.group()
            position = literal.end()
    return made


def _replace(code: str, rule: ValidationRule, node: Node, made: _Typed) -> str:
    def presence(found: re.Match[str]) -> str:
        if found.group(1) == "self" or not rule.optional_old_self:
            _at(node, found.group(2))
        return "(1 == 1)"

    def variable(found: re.Match[str]) -> str:
        if found.group(1) == "oldSelf" and rule.optional_old_self:
            made.variables["optionalOldSelf"] = "optional"
            return "optionalOldSelf" + found.group(2)
        inner = _at(node, found.group(2))
        name = "typed_" + found.group(1) + found.group(2).replace(".", "_")
        made.variables[name] = _type(inner)
        return name

    return _PATH.sub(variable, _HAS.sub(presence, code))


def _at(node: Node, path: str) -> Node | None:
    """The schema at a path of members; None for a dynamic one.

    :raises CelError: there is no such member.
    """
    inner: Node | None = node
    for name in path.split(".")[1:]:
        if inner is None or inner.int_or_string or inner.additional is not None or inner.type not in {"object", ""}:
            return None
        known = {cel_name(each): below for each, below in inner.properties.items()}
        if inner.embedded and name in {"apiVersion", "kind", "metadata"}:
            return None
        if name not in known:
            raise CelError(f"undefined field '{name}'")
        inner = known[name]
    return inner


def _type(node: Node | None) -> str:
    """The type of a member in the notation of :func:`compile_expression`; "" for a dynamic one."""
    if (
        node is None
        or node.nullable
        or node.int_or_string
        or node.format in {"byte", "date", "date-time", "datetime", "duration"}
    ):
        return ""
    if node.type in _SCALARS:
        return _SCALARS[node.type]
    if node.type == "array" and node.items is not None:
        return f"list {_type(node.items)}"
    if node.type == "object" and node.additional is not None:
        return f"map {_type(node.additional)}"
    return ""


def _go_rule(rule: ValidationRule) -> str:
    return format_value({
        "ValidationRule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": None if rule.reason == "FieldValueInvalid" else rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": True if rule.optional_old_self else None,
    })  # fmt: skip
