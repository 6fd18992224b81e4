"""Validation of CustomResourceDefinitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .names import label1035_problem, subdomain_problem
from .schema import ROOT, schema_problems
from .schema.validation import format_value
from .status import FieldCause

__all__ = ["definition_problems", "versions_of"]

Object = dict[str, Any]
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SIMPLE_PATH: Final = re.compile(r"(?:\.[A-Za-z_][\w-]*)+")
_WARNING_LIMIT: Final = 256
_SELECTABLE_LIMIT: Final = 8


def versions_of(body: Mapping[str, Any]) -> list[Object]:
    """The versions of a definition."""
    return body.get("spec", {}).get("versions") or []


def definition_problems(new: Object, old: Object | None) -> list[FieldCause]:
    """Validate a definition; the spec only when it changes."""
    spec = new.get("spec", {})
    if old is not None and spec == old.get("spec"):
        return []
    causes = _names_problems(new, spec)
    causes += _version_problems(spec)
    causes += _conversion_problems(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        causes.append(_invalid("spec.preserveUnknownFields", True, "must be false"))
    if not new.get("status", {}).get("storedVersions"):
        causes.append(_invalid("status.storedVersions", None, "must have at least one stored version"))
    if old is not None:
        causes += [
            _invalid(f"spec.{name}", spec.get(name), "field is immutable")
            for name in ("group", "scope")
            if spec.get(name) != old.get("spec", {}).get(name)
        ]
    return causes


def _required(field: str, words: str = "") -> FieldCause:
    return FieldCause(field, "FieldValueRequired", f"Required value: {words}" if words else "Required value")


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _unsupported(field: str, value: Any, supported: Sequence[str]) -> FieldCause:
    listed = ", ".join(f'"{each}"' for each in supported)
    words = f"Unsupported value: {format_value(value)}: supported values: {listed}"
    return FieldCause(field, "FieldValueNotSupported", words)


def _names_problems(new: Object, spec: Object) -> list[FieldCause]:
    causes = []
    names, group, name = spec.get("names", {}), spec.get("group", ""), new["metadata"].get("name", "")
    if name != f"{names.get('plural', '')}.{group}":
        causes.append(_invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        causes.append(_required("spec.group"))
    elif problem := subdomain_problem(group):
        causes.append(_invalid("spec.group", group, problem))
    elif "." not in group:
        causes.append(_invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope")
    if not scope:
        causes.append(_required("spec.scope"))
    elif scope not in {"Cluster", "Namespaced"}:
        causes.append(_unsupported("spec.scope", scope, ("Cluster", "Namespaced")))
    for each in ("plural", "singular", "kind", "listKind"):
        value = names.get(each)
        if not value:
            causes.append(_required(f"spec.names.{each}"))
        elif each in {"kind", "listKind"}:
            if problem := label1035_problem(value.lower()):
                words = f"may have mixed case, but should otherwise match: {problem}"
                causes.append(_invalid(f"spec.names.{each}", value, words))
        elif problem := label1035_problem(value):
            causes.append(_invalid(f"spec.names.{each}", value, problem))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        causes.append(_invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    for part in ("shortNames", "categories"):
        for number, word in enumerate(names.get(part) or ()):
            if problem := label1035_problem(word):
                causes.append(_invalid(f"spec.names.{part}[{number}]", word, problem))
    return causes


def _conversion_problems(conversion: Object) -> list[FieldCause]:
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook") or {}
    path = "spec.conversion"
    if not strategy:
        return [_required(f"{path}.strategy")]
    if strategy not in {"None", "Webhook"}:
        return [_unsupported(f"{path}.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None":
        parts = (("clientConfig", "webhookClientConfig"), ("conversionReviewVersions", "conversionReviewVersions"))
        words = "Forbidden: should not be set when strategy is not set to Webhook"
        return [FieldCause(f"{path}.{name}", "FieldValueForbidden", words) for part, name in parts if webhook.get(part)]
    causes = []
    if not webhook.get("clientConfig"):
        causes.append(_required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    if not webhook.get("conversionReviewVersions"):
        causes.append(_required(f"{path}.conversionReviewVersions"))
    if not causes:
        words = 'Forbidden: the embedded API server converts with the strategy "None" only'
        causes.append(FieldCause(f"{path}.strategy", "FieldValueForbidden", words))
    return causes


def _version_problems(spec: Object) -> list[FieldCause]:
    causes = []
    versions = spec.get("versions") or []
    if sum(each.get("storage") is True for each in versions) != 1:
        words = "must have exactly one version marked as storage version"
        causes.append(_invalid("spec.versions", versions or None, words))
    seen: set[str] = set()
    for number, each in enumerate(versions):
        path = f"spec.versions[{number}]"
        name = each.get("name", "")
        if problem := label1035_problem(name):
            causes.append(_invalid(f"{path}.name", name, problem))
            if number == 0 and name:
                causes.append(_invalid("spec.version", name, problem))
        if name in seen:
            causes.append(_invalid(path, name, "must be unique"))
        seen.add(name)
        causes += _deprecation_problems(each, path)
    return causes + _parts_problems(versions)


def _parts_problems(versions: list[Object]) -> list[FieldCause]:
    """Validate schemas, columns, subresources and selectable fields.

    kube-apiserver reports a part that all versions share once, without a version in the path.
    """
    causes: list[FieldCause] = []
    alike = {
        part: all(each.get(part) == versions[0].get(part) for each in versions)
        for part in ("schema", "additionalPrinterColumns", "subresources", "selectableFields")
    }
    for number, each in enumerate(versions):
        path = f"spec.versions[{number}]"
        schema = (each.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict):
            causes.append(_required(f"{path}.schema.openAPIV3Schema"))
        elif not alike["schema"] or number == 0:
            causes += schema_problems(schema, ROOT if alike["schema"] else f"{path}.schema.openAPIV3Schema")
        for part, check in (
            ("additionalPrinterColumns", _columns_problems),
            ("subresources", _subresources_problems),
        ):
            if each.get(part) and (not alike[part] or number == 0):
                causes += check(each[part], f"spec.{part}" if alike[part] else f"{path}.{part}")
        if each.get("selectableFields") and (not alike["selectableFields"] or number == 0):
            where = "spec.selectableFields" if alike["selectableFields"] else f"{path}.selectableFields"
            causes += _selectable_problems(each["selectableFields"], schema or {}, where)
    return causes


def _deprecation_problems(version: Object, path: str) -> list[FieldCause]:
    words = version.get("deprecationWarning")
    field = f"{path}.deprecationWarning"
    if words is None:
        return []
    if not version.get("deprecated"):
        return [_invalid(field, words, "can only be set for deprecated versions")]
    if not words:
        return [_invalid(field, words, "must not be empty")]
    if len(words) > _WARNING_LIMIT:
        return [_invalid(field, words, f"must be {_WARNING_LIMIT} characters or less")]
    if not words.isprintable():
        return [_invalid(field, words, "must only contain printable UTF-8 characters; non-printable character found")]
    return []


def _columns_problems(columns: list[Object], path: str) -> list[FieldCause]:
    causes = []
    for number, column in enumerate(columns):
        at = f"{path}[{number}]"
        causes += [_required(f"{at}.{name}") for name in ("name", "type") if not column.get(name)]
        if column.get("type") and column["type"] not in _COLUMN_TYPES:
            causes.append(_invalid(f"{at}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}"))
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            causes.append(_invalid(f"{at}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}"))
        steps = column.get("jsonPath")
        if not steps:
            causes.append(_required(f"{at}.JSONPath"))
        elif not steps.startswith("."):
            # Everything else is found out when a cell is printed.
            causes.append(_invalid(f"{at}.JSONPath", steps, "must be a simple json path starting with ."))
    return causes


def _subresources_problems(subresources: Object, path: str) -> list[FieldCause]:
    scale = subresources.get("scale")
    if not isinstance(scale, dict):
        return []
    causes = []
    for name, roots in (
        ("specReplicasPath", (".spec",)),
        ("statusReplicasPath", (".status",)),
        ("labelSelectorPath", (".spec", ".status")),
    ):
        at, steps = f"{path}.scale.{name}", scale.get(name)
        if not steps:
            if name != "labelSelectorPath":
                causes.append(_required(at))
        elif not steps.startswith(tuple(f"{root}." for root in roots)):
            causes.append(_invalid(at, steps, f"should be a json path under {' or '.join(roots)}"))
    return causes


def _selectable_problems(fields: list[Object], schema: Object, path: str) -> list[FieldCause]:
    causes = []
    seen: set[str] = set()
    if len(fields) > _SELECTABLE_LIMIT:
        words = f"Too many: {len(fields)}: must have at most {_SELECTABLE_LIMIT} items"
        causes.append(FieldCause(path, "FieldValueTooMany", words))
    for number, each in enumerate(fields):
        at, steps = f"{path}[{number}].jsonPath", each.get("jsonPath") or ""
        if not steps:
            causes.append(_required(at))
        elif steps in seen:
            causes.append(FieldCause(at, "FieldValueDuplicate", f"Duplicate value: {format_value(steps)}"))
        elif not _is_selectable(steps, schema):
            words = "must refer to a field of type string, boolean or integer that is not in metadata"
            causes.append(_invalid(at, steps, words))
        seen.add(steps)
    return causes


def _is_selectable(path: str, schema: Object) -> bool:
    if not _SIMPLE_PATH.fullmatch(path):
        return False
    names = path.split(".")[1:]
    if len(names) < 2 or names[0] == "metadata":
        return False
    inner: Any = schema
    for name in names:
        inner = (inner.get("properties") or {}).get(name) or inner.get("additionalProperties")
        if not isinstance(inner, dict):
            return False
    return inner.get("type") in {"string", "boolean", "integer"}
