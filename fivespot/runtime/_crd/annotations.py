"""Field metadata that pydantic has no word for: what `typing.Annotated` carries into a structural schema.

A rule exists twice by nature: the API server evaluates CEL, and a controller must judge objects that were stored before
the rule existed. `Cel` therefore keeps the expression and its Python twin side by side, under one message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

VALIDATIONS = "x-kubernetes-validations"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"

UNDEFAULTED = "x-undefaulted"
"""Marker between annotation and generator; never part of a finished schema."""

RULE_BROKEN = "rule_broken"
"""pydantic's error type for a broken `Cel` rule, so that callers can tell it from a structural error."""

Reason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"]  # "Duplicate" hides the message


@dataclass(frozen=True, slots=True)
class Cel:
    """One entry of `x-kubernetes-validations`.

    `rule` is CEL over `self` (and `oldSelf`: then it judges changes only, unless `optional_old_self`). `message` is
    what a person reads, in both worlds. `check` is the same rule in Python over the validated value; without it only
    the API server judges (the right thing for rules about changes). Source: Kubernetes, "Validation rules" of custom
    resources.
    """

    rule: str
    message: str
    check: Callable[[Any], bool] | None = None
    reason: Reason | None = None
    field_path: str | None = None
    message_expression: str | None = None
    optional_old_self: bool = False

    def to_json(self) -> dict[str, Any]:
        """The entry as the API server reads it."""
        entry: dict[str, Any] = {"rule": self.rule, "message": self.message}
        if self.message_expression is not None:
            entry["messageExpression"] = self.message_expression
        if self.reason is not None:
            entry["reason"] = self.reason
        if self.field_path is not None:
            entry["fieldPath"] = self.field_path
        if self.optional_old_self:
            entry["optionalOldSelf"] = True
        return entry

    def judge(self, value: Any) -> Any:
        """`value` itself. Raises pydantic's custom error of type `RULE_BROKEN` when `check` says no."""
        if self.check is not None and not self.check(value):
            raise PydanticCustomError(RULE_BROKEN, "{message}", {"message": self.message})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if self.check is None:
            return schema
        return core_schema.no_info_after_validator_function(self.judge, schema)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        return {**found, VALIDATIONS: [*found.get(VALIDATIONS, ()), self.to_json()]}


class RuledModel(BaseModel):
    """A model with rules about the object as a whole, wherever it is used: `RULES = (Cel(...),)`."""

    RULES: ClassVar[tuple[Cel, ...]] = ()

    @model_validator(mode="after")
    def _judge(self) -> Self:
        for rule in self.RULES:
            rule.judge(self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        if cls.RULES:
            handler.resolve_ref_schema(found)[VALIDATIONS] = [rule.to_json() for rule in cls.RULES]
        return found


def matches(pattern: str, message: str) -> Cel:
    """A pattern whose refusal is a sentence.

    The server's own message for `pattern` is only the expression; as a CEL rule it says what to write instead. Give the
    string a `max_length` too, or the rule exceeds the server's cost budget. Anchor the pattern at both ends.
    """
    if "'" in pattern or not (pattern.startswith("^") and pattern.endswith("$")):
        raise ValueError(f"pattern must be anchored and without single quotes: {pattern}")
    compiled = re.compile(pattern[1:-1])
    return Cel(f"self.matches(r'{pattern}')", message, check=lambda value: compiled.fullmatch(value) is not None)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: typing hashes what Annotated carries
class Extra:
    """Adds schema keys as they are, such as `Extra({"format": "date-time"})`."""

    keys: dict[str, Any]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **self.keys}


def nullable() -> Extra:
    """Lets an explicit null be stored. Put it outside the optional: `Annotated[X | None, nullable()]`."""
    return Extra({"nullable": True})


def preserve_unknown_fields() -> Extra:
    """Keeps members that the schema does not name."""
    return Extra({PRESERVE: True})


def undefaulted() -> Extra:
    """The model reads absence as its default, but the API server must not write that default into objects."""
    return Extra({UNDEFAULTED: True})


def list_atomic() -> Extra:
    """The list has one owner: server-side apply replaces it whole."""
    return Extra({LIST_TYPE: "atomic"})


@dataclass(frozen=True, slots=True)
class _Unique:
    """A list whose entries are told apart by `keys` (or by their value): refuses duplicates, merges on apply."""

    keys: tuple[str, ...] = field(default=())

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        if self.keys:
            return {**found, LIST_TYPE: "map", LIST_MAP_KEYS: list(self.keys)}
        return {**found, LIST_TYPE: "set"}

    def _validate(self, items: list[Any]) -> list[Any]:
        seen = set()
        for item in items:
            identity = tuple(_member(item, self.keys)) if self.keys else item
            if identity in seen:
                raise PydanticCustomError(RULE_BROKEN, "duplicate entry: {entry}", {"entry": str(identity)})
            seen.add(identity)
        return items


def _member(item: Any, keys: Iterable[str]) -> Iterable[Any]:
    if isinstance(item, BaseModel):
        names = {info.alias or name: name for name, info in type(item).model_fields.items()}
        return (getattr(item, names[key]) for key in keys)
    return (item.get(key) for key in keys)


def list_map(*keys: str) -> _Unique:
    """A list of objects told apart by these members (serialised names); they must be required or have a default."""
    if not keys:
        raise ValueError("a list of type map needs at least one key")
    return _Unique(keys)


def list_set() -> _Unique:
    """A list of scalars without duplicates."""
    return _Unique()
