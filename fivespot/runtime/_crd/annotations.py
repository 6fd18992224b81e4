"""Field annotations (`typing.Annotated`) for the parts of a structural schema that pydantic cannot express.

A rule is needed twice: the API server evaluates CEL, and a controller has to validate objects that were stored before
the rule existed. `Cel` therefore holds the expression and its Python counterpart side by side, with one message.
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

    `rule` is CEL over `self` (and `oldSelf`: then it applies to changes only, unless `optional_old_self`). `message` is
    shown by both sides. `check` is the same rule in Python over the validated value; without it only the API server
    validates, which is right for rules about changes. `message_expression` (CEL) and `explain` (Python) give a message
    that depends on the value, such as one with the right spelling; where they give none, `message` is shown.
    Source: Kubernetes, "Validation rules" of custom resources.
    """

    rule: str
    message: str
    check: Callable[[Any], bool] | None = None
    reason: Reason | None = None
    field_path: str | None = None
    message_expression: str | None = None
    optional_old_self: bool = False
    explain: Callable[[Any], str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Convert to the entry of `x-kubernetes-validations`."""
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
        """Return `value`, or raise pydantic's custom error of type `RULE_BROKEN` if `check` fails."""
        if self.check is not None and not self.check(value):
            explained = self.explain(value) if self.explain is not None else ""
            raise PydanticCustomError(RULE_BROKEN, "{message}", {"message": explained or self.message})
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
    """A model with rules about the whole object: `RULES = (Cel(...),)`."""

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
    """A pattern with a message.

    The server's message for `pattern` is only the expression; a CEL rule can tell the user what to write instead. Give
    the string a `max_length` too, or the rule exceeds the server's cost budget. Anchor the pattern at both ends.
    """
    if "'" in pattern or not (pattern.startswith("^") and pattern.endswith("$")):
        raise ValueError(f"pattern must be anchored and without single quotes: {pattern}")
    compiled = re.compile(pattern[1:-1])
    return Cel(f"self.matches(r'{pattern}')", message, check=lambda value: compiled.fullmatch(value) is not None)


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity: typing hashes what Annotated carries
class Extra:
    """Adds keys to the schema verbatim, such as `Extra({"format": "date-time"})`."""

    keys: dict[str, Any]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **self.keys}


def nullable() -> Extra:
    """Allow an explicit null to be stored. Put it outside the optional: `Annotated[X | None, nullable()]`."""
    return Extra({"nullable": True})


def preserve_unknown_fields() -> Extra:
    """Keep members that the schema does not specify."""
    return Extra({PRESERVE: True})


def undefaulted() -> Extra:
    """Leave the model's default out of the schema, so that the API server does not write it into objects."""
    return Extra({UNDEFAULTED: True})


def list_atomic() -> Extra:
    """Declare a list with one owner: server-side apply replaces the whole list."""
    return Extra({LIST_TYPE: "atomic"})


@dataclass(frozen=True, slots=True)
class _Unique:
    """A list whose entries are identified by `keys` (or by value): rejects duplicates and merges on apply."""

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
                raise PydanticCustomError(
                    RULE_BROKEN, "{entry} is there twice; write it once", {"entry": self._name(item)}
                )
            seen.add(identity)
        return items

    def _name(self, item: Any) -> str:
        if not self.keys:
            return str(item)
        return ", ".join(f"{key} {value}" for key, value in zip(self.keys, _member(item, self.keys), strict=True))


def _member(item: Any, keys: Iterable[str]) -> Iterable[Any]:
    if isinstance(item, BaseModel):
        names = {info.alias or name: name for name, info in type(item).model_fields.items()}
        return (getattr(item, names[key]) for key in keys)
    return (item.get(key) for key in keys)


def list_map(*keys: str) -> _Unique:
    """Declare a list of objects identified by these members (serialised names), required or with a default."""
    if not keys:
        raise ValueError("a list of type map needs at least one key")
    return _Unique(keys)


def list_set() -> _Unique:
    """Declare a list of scalars without duplicates."""
    return _Unique()
