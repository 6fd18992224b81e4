"""Table columns: the cells that ``kubectl get`` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from .jsonpath import JsonPathError, find
from .kinds import TableColumn
from .schema.validation import format_value

__all__ = ["AGE", "NAME", "age", "crd_columns", "human_duration", "path_column"]

Object = dict[str, Any]

_NAME_WORDS: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)


def human_duration(seconds: float) -> str:
    """Format a duration as kubectl does: at most two units, coarser for longer durations."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(0, whole)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(text: Any, now: datetime) -> str:
    """The age of a timestamp as kubectl prints it."""
    if not isinstance(text, str) or not text:
        return "<unknown>"
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        return "<unknown>"
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return human_duration((now - moment).total_seconds())


NAME: Final = TableColumn("Name", "string", lambda body, _: body["metadata"].get("name", ""), "name", _NAME_WORDS)
AGE: Final = TableColumn(
    "Age",
    "string",
    lambda body, now: age(body["metadata"].get("creationTimestamp"), now),
    description="CreationTimestamp is a timestamp representing the server time when this object was created.",
)


def path_column(
    name: str, type_: str, path: str, *, form: str = "", description: str = "", priority: int = 0
) -> TableColumn:
    """A column that shows the value at a JSONPath."""
    words = description or f"Custom resource definition column (in JSONPath format): {path}"
    return TableColumn(name, type_, _cell(type_, path), form, words, priority)


def _cell(type_: str, path: str) -> Callable[[Object, datetime], Any]:
    def cell(body: Object, now: datetime) -> Any:
        try:
            value = find(body, path)
        except JsonPathError:
            return None
        if value is None:
            return None
        match type_:
            case "integer":
                return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            case "number":
                return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            case "boolean":
                return value if isinstance(value, bool) else None
            case "date":
                return age(value, now) if isinstance(value, str) else "<invalid>"
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else format_value(value)

    return cell


def crd_columns(definitions: list[Mapping[str, Any]] | None) -> tuple[TableColumn, ...]:
    """The columns of a version of a CustomResourceDefinition; the name, and its own or the age."""
    if not definitions:
        return (NAME, path_column("Age", "date", ".metadata.creationTimestamp"))
    made = [
        path_column(
            each["name"],
            each["type"],
            each["jsonPath"],
            form=each.get("format", ""),
            description=each.get("description", ""),
            priority=each.get("priority", 0),
        )
        for each in definitions
    ]
    return (NAME, *made)
