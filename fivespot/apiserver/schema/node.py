"""Structural schemas, compiled into nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from fivespot.apiserver.json_codec import encode_json

__all__ = ["Node", "ValidationRule", "cel_name", "compile_schema", "go_pattern"]

PythonType: TypeAlias = type[Any]
_NO_NODES: Final[Mapping[str, Node]] = {}


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """An entry of ``x-kubernetes-validations``."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def transition(self) -> bool:
        """Whether it is a transition rule: it names ``oldSelf``."""
        return re.search(r"\boldSelf\b", self.rule) is not None


@dataclass(slots=True, eq=False)
class Node:
    """A level of a schema.

    :param additional: the schema of all members that ``properties`` does not name; None when there is none.
    :param preserve: unknown members are kept.
    :param default: encoded, so that every object gets a copy of its own; None when there is no default.
    :param defaults: whether this level or one below has a default.
    :param ruled: whether this level or one below has CEL rules.
    :param plain: whether values of this level need no conversion for CEL.
    :param embeds: whether this level or one below is an embedded resource.
    :param scalar: the Python type whose every value is valid here; None when values need checks.
    """

    raw: Mapping[str, Any]
    type: str = ""
    nullable: bool = False
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    properties: Mapping[str, Node] = field(default_factory=lambda: _NO_NODES)
    additional: Node | None = None
    closed: bool = False
    items: Node | None = None
    required: tuple[str, ...] = ()
    default: bytes | None = None
    enum: tuple[Any, ...] = ()
    pattern: re.Pattern[str] | None = None
    format: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[ValidationRule, ...] = ()
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    negated: Node | None = None
    defaults: bool = False
    ruled: bool = False
    plain: bool = False
    embeds: bool = False
    scalar: PythonType | None = None

    def children(self) -> Iterator[Node]:
        """The levels directly below, without junctions."""
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def child(self, name: str) -> Node | None:
        """The schema of a member, None when it has none."""
        return self.properties.get(name) or self.additional

    @property
    def open(self) -> bool:
        """Whether the schema describes no members or items."""
        return not self.properties and self.additional is None and self.items is None


_CEL_WORDS: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)


def cel_name(name: str) -> str:
    """A member's name as rules write it (KEP-2876)."""
    if name in _CEL_WORDS:
        return f"__{name}__"
    if name.replace("_", "").isalnum() and "__" not in name:
        return name
    escaped = name.replace("__", "__underscores__").replace(".", "__dot__").replace("-", "__dash__")
    return escaped.replace("/", "__slash__")


_LIMITS: Final = (
    "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
    "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "uniqueItems",
)  # fmt: skip


def compile_schema(raw: Mapping[str, Any]) -> Node:
    """Compile a structural OpenAPI v3 schema.

    :raises ValueError: a pattern is invalid.
    """
    additional = raw.get("additionalProperties")
    node = Node(
        raw=raw,
        type=raw.get("type") or "",
        nullable=bool(raw.get("nullable")),
        preserve=bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(raw.get("x-kubernetes-embedded-resource")),
        int_or_string=bool(raw.get("x-kubernetes-int-or-string")),
        properties={name: compile_schema(inner) for name, inner in (raw.get("properties") or {}).items()},
        additional=_additional(additional),
        closed=additional is False,
        items=compile_schema(raw["items"]) if isinstance(raw.get("items"), Mapping) else None,
        required=tuple(raw.get("required") or ()),
        default=encode_json(raw["default"]) if raw.get("default") is not None else None,
        enum=tuple(raw.get("enum") or ()),
        pattern=go_pattern(raw["pattern"]) if raw.get("pattern") else None,
        format=raw.get("format") or "",
        limits={name: raw[name] for name in _LIMITS if raw.get(name) is not None},
        list_type=raw.get("x-kubernetes-list-type") or "",
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type") or "",
        rules=tuple(_rule(entry) for entry in raw.get("x-kubernetes-validations") or ()),
        all_of=tuple(compile_schema(inner) for inner in raw.get("allOf") or ()),
        any_of=tuple(compile_schema(inner) for inner in raw.get("anyOf") or ()),
        one_of=tuple(compile_schema(inner) for inner in raw.get("oneOf") or ()),
        negated=compile_schema(raw["not"]) if raw.get("not") else None,
    )
    below = list(node.children())
    node.defaults = node.default is not None or any(inner.defaults for inner in below)
    node.embeds = node.embedded or any(inner.embeds for inner in below)
    node.ruled = bool(node.rules) or any(inner.ruled for inner in below)
    node.plain = (
        node.type not in {"number", ""}
        and not node.preserve
        and not (node.type == "string" and node.format == "byte")
        and all(cel_name(name) == name for name in node.properties)
        and all(inner.plain for inner in below)
    )
    limited = node.enum or node.limits or node.format or node.pattern is not None or node.int_or_string
    if not (limited or node.all_of or node.any_of or node.one_of or node.negated is not None):
        node.scalar = _SCALARS.get(node.type)
    return node


_SCALARS: Final[Mapping[str, PythonType]] = {"string": str, "boolean": bool}


def _additional(raw: Any) -> Node | None:
    if isinstance(raw, Mapping):
        return compile_schema(raw)
    return Node(raw={}, preserve=True) if raw is True else None


def _rule(raw: Mapping[str, Any]) -> ValidationRule:
    return ValidationRule(
        rule=raw.get("rule") or "",
        message=raw.get("message") or "",
        message_expression=raw.get("messageExpression") or "",
        reason=raw.get("reason") or "FieldValueInvalid",
        field_path=raw.get("fieldPath") or "",
        optional_old_self=bool(raw.get("optionalOldSelf")),
        raw=raw,
    )


_PERL_ONLY: Final = re.compile(r"\(\?(?:[=!>]|<[=!]|P=|\()|\\[1-9Z]|(?<!\\)[*+?}]\+")
"""Syntax of Python's engine that RE2 does not have: look-around, back-references, atomic and possessive forms."""


def go_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern with RE2's meaning: ``$`` is the end of the text.

    :raises ValueError: RE2 refuses it.
    """
    found = _PERL_ONLY.search(text)
    if found:
        raise ValueError(f"error parsing regexp: invalid or unsupported Perl syntax: `{found.group()}`")
    translated = []
    in_class = escaped = False
    for letter in text:
        if escaped:
            translated.append(r"\Z" if letter == "z" and not in_class else "\\" + letter)
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == "$" and not in_class:
            translated.append(r"\Z")
        else:
            in_class = letter == "[" or (in_class and letter != "]")
            translated.append(letter)
    try:
        return re.compile("".join(translated) + ("\\" if escaped else ""))
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"error parsing regexp: {error}") from None
