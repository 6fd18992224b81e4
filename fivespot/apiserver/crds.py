"""CustomResourceDefinitions: validation, and the kinds that they define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from .columns import crd_columns
from .jsonpath import JsonPathError, find
from .kinds import Served, ServedKind, Strategy, version_priority
from .names import label_problem, subdomain_problem
from .schema import ROOT, schema_problems
from .schema.validation import format_value
from .status import FieldCause, bad_request

__all__ = ["CLEANUP", "DEFINITIONS", "DefinitionStrategy", "kind_of", "resource_of"]

Object = dict[str, Any]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
_KIND_NAME: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")

_SCHEMA_FIELDS: Final = frozenset({
    "$ref", "$schema", "additionalItems", "additionalProperties", "allOf", "anyOf", "default", "definitions",
    "dependencies", "description", "enum", "example", "exclusiveMaximum", "exclusiveMinimum", "externalDocs", "format",
    "id", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
    "minimum", "multipleOf", "not", "nullable", "oneOf", "pattern", "patternProperties", "properties", "required",
    "title", "type", "uniqueItems", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
})  # fmt: skip

_FLAGS: Final = frozenset({
    "exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems", "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
})  # fmt: skip
_GO_NAMES: Final = {int: "number", float: "number", str: "string", list: "array"}


def resource_of(body: Mapping[str, Any]) -> tuple[str, str]:
    """The group and plural that a definition defines."""
    spec = body.get("spec", {})
    return spec.get("group", ""), spec.get("names", {}).get("plural", "")


def drop_unknown_members(raw: Any) -> Any:
    """Drop members that are not part of JSONSchemaProps, and null values, as decoding into the Go type does."""
    if not isinstance(raw, dict):
        return raw
    made: Object = {}
    for name, value in raw.items():
        if name not in _SCHEMA_FIELDS or value is None:
            continue
        if name in {"properties", "patternProperties", "definitions"} and isinstance(value, dict):
            made[name] = {key: drop_unknown_members(inner) for key, inner in value.items()}
        elif name in {"allOf", "anyOf", "oneOf"} and isinstance(value, list):
            made[name] = [drop_unknown_members(inner) for inner in value]
        elif name in {"items", "additionalProperties", "not"}:
            made[name] = drop_unknown_members(value)
        elif name in _FLAGS and not isinstance(value, bool):
            where = f"JSONSchemaProps.spec.versions.schema.openAPIV3Schema.{name}"
            given = _GO_NAMES.get(type(value), "object")
            raise bad_request(
                'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '
                f"json: cannot unmarshal {given} into Go struct field {where} of type bool"
            )
        else:
            made[name] = value
    return made


class DefinitionStrategy(Strategy):
    """The strategy of CustomResourceDefinitions."""

    unconditional = False

    def prepare_create(self, new: Object) -> None:
        storage = [each.get("name", "") for each in _versions(new) if each.get("storage") is True]
        new["status"] = {
            "conditions": [],
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": storage,
        }

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            new["spec"] = old.get("spec", {})
            return
        new["status"] = old.get("status", {})
        stored = list(new["status"].get("storedVersions", []))
        for each in _versions(new):
            if each.get("storage") is True and each.get("name") not in stored:
                stored.append(each["name"])
        new["status"] = {**new["status"], "storedVersions": stored}

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            if not names.get("singular"):
                names["singular"] = names["kind"].lower()
            if not names.get("listKind"):
                names["listKind"] = f"{names['kind']}List"
        spec.setdefault("conversion", {"strategy": "None"})
        if spec.get("preserveUnknownFields") is False:
            del spec["preserveUnknownFields"]
        for version in _versions(new):
            schema = version.get("schema")
            if isinstance(schema, dict) and "openAPIV3Schema" in schema:
                schema["openAPIV3Schema"] = drop_unknown_members(schema["openAPIV3Schema"])

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        spec = new.get("spec", {})
        if old is not None and spec == old.get("spec"):
            return []
        causes = _names_problems(new, spec)
        causes += _version_problems(spec)
        if spec.get("conversion", {}).get("strategy", "None") != "None":
            words = 'Forbidden: the embedded API server converts with the strategy "None" only'
            causes.append(FieldCause("spec.conversion.strategy", "FieldValueForbidden", words))
        if spec.get("preserveUnknownFields"):
            words = "Invalid value: true: must be false"
            causes.append(FieldCause("spec.preserveUnknownFields", "FieldValueInvalid", words))
        if not new.get("status", {}).get("storedVersions"):
            words = "Invalid value: null: must have at least one stored version"
            causes.append(FieldCause("status.storedVersions", "FieldValueInvalid", words))
        if old is not None:
            for name in ("group", "scope"):
                if spec.get(name) != old.get("spec", {}).get(name):
                    words = f"Invalid value: {format_value(spec.get(name))}: field is immutable"
                    causes.append(FieldCause(f"spec.{name}", "FieldValueInvalid", words))
        return causes


def _versions(body: Mapping[str, Any]) -> list[Object]:
    return body.get("spec", {}).get("versions") or []


def _required(field: str) -> FieldCause:
    return FieldCause(field, "FieldValueRequired", "Required value")


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


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
        words = f'Unsupported value: {format_value(scope)}: supported values: "Cluster", "Namespaced"'
        causes.append(FieldCause("spec.scope", "FieldValueNotSupported", words))
    for each in ("plural", "singular", "kind", "listKind"):
        value = names.get(each)
        if not value:
            causes.append(_required(f"spec.names.{each}"))
        elif each in {"kind", "listKind"}:
            if not _KIND_NAME.fullmatch(value):
                words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-'"
                causes.append(
                    _invalid(f"spec.names.{each}", value, f"may have mixed case, but should otherwise match: {words}")
                )
        elif problem := label_problem(value):
            causes.append(_invalid(f"spec.names.{each}", value, problem))
    return causes


def _version_problems(spec: Object) -> list[FieldCause]:
    causes = []
    versions = spec.get("versions") or []
    if sum(each.get("storage") is True for each in versions) != 1:
        words = "must have exactly one version marked as storage version"
        causes.append(_invalid("spec.versions", versions or None, words))
    seen: set[str] = set()
    single = len(versions) == 1 or all(each.get("schema") == versions[0].get("schema") for each in versions)
    for number, each in enumerate(versions):
        path = f"spec.versions[{number}]"
        name = each.get("name", "")
        if problem := label_problem(name):
            causes.append(_invalid(f"{path}.name", name, problem))
        if name in seen:
            causes.append(_invalid(path, name, "must be unique"))
        seen.add(name)
        schema = (each.get("schema") or {}).get("openAPIV3Schema")
        where = f"{path}.schema.openAPIV3Schema"
        if not isinstance(schema, dict):
            causes.append(_required(where))
        elif not single or number == 0:
            # kube-apiserver reports a schema that all versions share once, for the first.
            causes += schema_problems(schema, ROOT if single else where)
        for at, column in enumerate(each.get("additionalPrinterColumns") or ()):
            causes += _column_problems(column, f"{path}.additionalPrinterColumns[{at}]")
    return causes


def _column_problems(column: Object, path: str) -> list[FieldCause]:
    causes = [_required(f"{path}.{name}") for name in ("name", "type") if not column.get(name)]
    if column.get("type") and column["type"] not in {"integer", "number", "string", "boolean", "date"}:
        causes.append(_invalid(f"{path}.type", column["type"], "must be one of boolean,date,integer,number,string"))
    if not column.get("jsonPath"):
        causes.append(_required(f"{path}.jsonPath"))
    else:
        try:
            find({}, column["jsonPath"])
        except JsonPathError as error:
            causes.append(_invalid(f"{path}.jsonPath", column["jsonPath"], f"invalid JSON path: {error}"))
    return causes


class _CustomStrategy(Strategy):
    unconditional = False

    def __init__(self, selectable: tuple[str, ...]) -> None:
        self.selectable = selectable


def kind_of(body: Mapping[str, Any], epoch: int) -> ServedKind:
    """Build the kind that a valid definition defines."""
    spec = body["spec"]
    names = spec["names"]
    versions = {}
    paths: set[str] = set()
    for each in sorted(spec["versions"], key=lambda version: version_priority(version["name"])):
        if not each.get("served"):
            continue
        subresources = each.get("subresources") or {}
        warning = ""
        if each.get("deprecated"):
            words = f"{spec['group']}/{each['name']} {names['kind']} is deprecated"
            warning = each.get("deprecationWarning") or words
        versions[each["name"]] = Served.of(
            each["name"],
            each["schema"]["openAPIV3Schema"],
            status=subresources.get("status") is not None,
            scale=subresources.get("scale"),
            columns=crd_columns(each.get("additionalPrinterColumns")),
            warning=warning,
        )
        paths |= {field["jsonPath"] for field in each.get("selectableFields") or ()}
    return ServedKind(
        spec["group"],
        names["kind"],
        names["plural"],
        names["singular"],
        spec["scope"] == "Namespaced",
        versions,
        next(each["name"] for each in spec["versions"] if each.get("storage")),
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        custom=True,
        generated=True,
        strategy=_CustomStrategy(tuple(sorted(paths))),
        epoch=epoch,
        terminating="deletionTimestamp" in body["metadata"],
    )
