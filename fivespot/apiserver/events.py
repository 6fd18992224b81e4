"""Events of both groups: their strategies, and the conversion between the two forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from .kinds import Strategy
from .names import qualified_problem
from .schema.validation import format_value
from .status import FieldCause

__all__ = ["EventStrategy", "NewEventStrategy", "from_core_event", "to_core_event"]

Object = dict[str, Any]

_RENAMED: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK: Final = {core: new for new, core in _RENAMED.items()}
_REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_NOTE_LIMIT: Final = 1024
_TEXT_LIMIT: Final = 128
_IMMUTABLE: Final = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip


def to_core_event(body: Object) -> Object:
    """Convert an event of events.k8s.io to the core group."""
    return {_RENAMED.get(name, name): value for name, value in body.items()}


def from_core_event(body: Object) -> Object:
    """Convert an event of the core group to events.k8s.io."""
    return {_BACK.get(name, name): value for name, value in body.items()}


def _invalid(field: str, words: str, value: Any = "") -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _required(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueRequired", "Required value")


class EventStrategy(Strategy):
    """The strategy of events in the core group."""

    selectable = (
        *(f"involvedObject.{name}" for name in _REFERENCE_FIELDS), "reason", "reportingComponent", "source", "type",
    )  # fmt: skip
    create_on_update = True
    reporter = "reportingComponent"
    """The name of the reporting component in the form of the request."""

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        return self._problems(to_core_event(new))

    def _problems(self, event: Object) -> list[FieldCause]:
        namespace = event["metadata"].get("namespace", "")
        about = event.get("involvedObject", {}).get("namespace", "")
        mismatch = [_invalid("involvedObject.namespace", "does not match event.namespace", about)]
        if event.get("eventTime") is None:
            return mismatch if (about or "default") != namespace else []
        causes = mismatch if not about and namespace not in {"default", "kube-system"} else []
        for name in ("reportingComponent", "reportingInstance", "action", "reason"):
            value = event.get(name, "")
            field = self.reporter if name == "reportingComponent" else name
            if not value:
                causes.append(_required(field))
            elif name != "reportingComponent" and len(value.encode()) > _TEXT_LIMIT:
                causes.append(_invalid(field, f"can have at most {_TEXT_LIMIT} characters"))
        if problem := qualified_problem(event.get("reportingComponent", "")):
            causes.append(_invalid(self.reporter, problem, event.get("reportingComponent", "")))
        if len(event.get("message", "").encode()) > _NOTE_LIMIT:
            causes.append(_invalid("message", f"can have at most {_NOTE_LIMIT} characters"))
        return causes

    def fields(self, body: Object) -> Mapping[str, str]:
        about = body.get("involvedObject", {})
        found = {f"involvedObject.{name}": value for name, value in about.items() if isinstance(value, str)}
        return {
            **found,
            "reason": body.get("reason", ""),
            "type": body.get("type", ""),
            "reportingComponent": body.get("reportingComponent", ""),
            "source": body.get("source", {}).get("component", "") or body.get("reportingComponent", ""),
        }


class NewEventStrategy(EventStrategy):
    """The strategy of events in events.k8s.io, which are validated strictly."""

    selectable = (*(f"regarding.{name}" for name in _REFERENCE_FIELDS), "reason", "reportingController", "type")
    stored_fields: ClassVar[Mapping[str, str]] = {
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _REFERENCE_FIELDS},
        "reportingController": "reportingComponent",
    }
    reporter = "reportingController"

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        event = to_core_event(new)
        causes = self._problems(event)
        if old is None:
            return causes + self._create_problems(event)
        before = to_core_event(old)
        if event.get("series") != before.get("series"):
            causes += self._series_problems(event)
        return causes + [
            _invalid(_BACK[name] if name == "reportingComponent" else name, "field is immutable", event.get(name))
            for name in _IMMUTABLE
            if (event.get(name) or None) != (before.get(name) or None)
        ]

    @classmethod
    def _create_problems(cls, event: Object) -> list[FieldCause]:
        causes = cls._series_problems(event)
        if event.get("eventTime") is None:
            causes.append(_required("eventTime"))
        if event.get("type", "") not in {"Normal", "Warning"}:
            causes.append(_invalid("type", f"has invalid value: {event.get('type', '')}"))
        for name in ("firstTimestamp", "lastTimestamp", "count"):
            if event.get(name):
                causes.append(_invalid(name, "needs to be unset"))
        if any((event.get("source") or {}).values()):
            causes.append(_invalid("source", "needs to be unset"))
        return causes

    @staticmethod
    def _series_problems(event: Object) -> list[FieldCause]:
        series = event.get("series")
        causes = []
        if series is not None:
            if series.get("count", 0) < 2:
                causes.append(_invalid("series.count", "should be at least 2"))
            if series.get("lastObservedTime") is None:
                causes.append(_required("series.lastObservedTime"))
        return causes
