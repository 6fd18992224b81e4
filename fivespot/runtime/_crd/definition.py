"""CustomResourceDefinition objects (apiextensions.k8s.io/v1) from root models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from fivespot.runtime._crd.annotations import PRESERVE, VALIDATIONS, Cel
from fivespot.runtime._crd.schema import SchemaError, structural_schema

_API_VERSION = (
    "The version of the API that this object is written in; see https://kubernetes.io/docs/reference/using-api/."
)
_KIND = "The kind of this object."
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column; one with `priority` above 0 is shown by `kubectl get -o wide` only."""

    name: str
    type: Literal["boolean", "date", "integer", "number", "string"]
    path: str
    description: str = ""
    priority: int = 0

    def to_json(self) -> dict[str, Any]:
        """Convert to the entry of `additionalPrinterColumns`."""
        entry: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            entry["description"] = self.description
        if self.priority:
            entry["priority"] = self.priority
        return entry


@dataclass(frozen=True, slots=True)
class CrdVersion:
    """One version of a kind.

    `model` is the root model; its docstring becomes the kind's description, a `status` field enables the status
    subresource, and a `metadata` field is ignored (the API server owns that schema). `rules` apply to the whole object,
    where CEL can read `self.metadata.name`.
    """

    name: str
    model: type[BaseModel]
    served: bool = True
    storage: bool = True
    rules: Sequence[Cel] = ()


def crd(
    *,
    group: str,
    kind: str,
    plural: str,
    singular: str,
    versions: Sequence[CrdVersion],
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    columns: Sequence[Column] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Generate the CustomResourceDefinition of a namespaced kind, without conversion.

    Raises `SchemaError` if a model cannot be expressed, if a column points at a missing field, or if not exactly one
    version is stored.
    """
    if not _LABEL.fullmatch(plural) or not _LABEL.fullmatch(singular):
        raise SchemaError(kind, f"plural {plural!r} and singular {singular!r} must be lower-case DNS labels")
    if sum(version.storage for version in versions) != 1:
        raise SchemaError(kind, "exactly one version must be the storage version")
    names: dict[str, Any] = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": singular,
    }
    if short_names:
        names["shortNames"] = list(short_names)
    if categories:
        names["categories"] = list(categories)
    metadata: dict[str, Any] = {"name": f"{plural}.{group}"}
    if labels:
        metadata["labels"] = dict(sorted(labels.items()))
    if annotations:
        metadata["annotations"] = dict(sorted(annotations.items()))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "conversion": {"strategy": "None"},
            "versions": [_version(version, columns) for version in versions],
        },
    }


def _version(version: CrdVersion, columns: Sequence[Column]) -> dict[str, Any]:
    schema = _root(version)
    for column in columns:
        _check_column(column, schema, version.model.__name__)
    entry: dict[str, Any] = {
        "name": version.name,
        "served": version.served,
        "storage": version.storage,
        "schema": {"openAPIV3Schema": schema},
    }
    if "status" in schema["properties"]:
        entry["subresources"] = {"status": {}}
    if columns:
        entry["additionalPrinterColumns"] = [column.to_json() for column in columns]
    return entry


def _root(version: CrdVersion) -> dict[str, Any]:
    schema = structural_schema(version.model)
    if schema.get("type") != "object":
        raise SchemaError(version.model.__name__, "the root of a kind must be an object")
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"type": "object"},
        **{k: v for k, v in schema.get("properties", {}).items() if k not in {"apiVersion", "kind", "metadata"}},
    }
    required = [name for name in schema.pop("required", ()) if name not in {"apiVersion", "kind", "metadata"}]
    if required:
        schema["required"] = required
    if version.rules:
        schema[VALIDATIONS] = [*schema.get(VALIDATIONS, ()), *(rule.to_json() for rule in version.rules)]
    return schema


def _check_column(column: Column, schema: Mapping[str, Any], model: str) -> None:
    if not column.path.startswith("."):
        raise SchemaError(model, f"column {column.name}: the path {column.path!r} must begin with a dot")
    node: Mapping[str, Any] = schema
    plain = column.path.split("[")[0].strip(".")
    for step in plain.split("."):
        if step == "metadata" or node.get(PRESERVE):
            return
        if step not in node.get("properties", {}):
            raise SchemaError(model, f"column {column.name}: {column.path} is not a field of the schema")
        node = node["properties"][step]
