"""OpenAPI v3 documents, as far as kubectl needs them for explain, validation and patches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .kinds import Registry, Served, ServedKind
from .messages import ApiResponse, json_response, text_response
from .metadata import METADATA_SCHEMA

__all__ = ["OpenApi"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_API_VERSION_WORDS: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values."
)
_KIND_WORDS: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase."
)
_OWN_FORMATS: Final = {"base64": "byte", "micro-time": "date-time"}
_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "pretty")


class OpenApi:
    """Answers requests under ``/openapi``."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache: dict[str, bytes] = {}
        self._generation = -1

    def answer(self, path: str) -> ApiResponse | None:
        """The answer for a path; None for unknown ones."""
        if self._generation != self._registry.generation:
            self._cache.clear()
            self._generation = self._registry.generation
        if path.rstrip("/") == "/openapi/v3":
            return json_response(200, self._cached("", self._index))
        if not path.startswith("/openapi/v3/"):
            return None
        name = path.removeprefix("/openapi/v3/")
        if name not in self._places():
            return text_response(404, "404 page not found\n")
        return json_response(200, self._document_bytes(name))

    def _cached(self, name: str, make: Any) -> bytes:
        if name not in self._cache:
            self._cache[name] = msgspec.json.encode(make())
        return self._cache[name]

    def _places(self) -> dict[str, tuple[str, str]]:
        """Group and version by document name."""
        return {
            (f"apis/{group}/{version}" if group else f"api/{version}"): (group, version)
            for group, versions in self._registry.groups().items()
            for version in versions
        }

    def _index(self) -> dict[str, Any]:
        paths = {}
        for name in sorted(self._places()):
            digest = hashlib.sha512(self._document_bytes(name)).hexdigest().upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
        return {"paths": paths}

    def _document_bytes(self, name: str) -> bytes:
        return self._cached(name, lambda: self._document(*self._places()[name]))

    def _document(self, group: str, version: str) -> dict[str, Any]:
        schemas: dict[str, Any] = {f"{_META}.ObjectMeta": METADATA_SCHEMA}
        paths: dict[str, Any] = {}
        for kind in self._registry.kinds(group):
            served = kind.versions.get(version)
            if served is not None:
                name = _schema_name(kind, served)
                schemas[name] = _whole(kind, served)
                schemas[f"{name}List"] = _list(kind, served, name)
                paths |= _paths(kind, served, name)
        info = {"title": "fivespot embedded API server", "version": "v1"}
        return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _schema_name(kind: ServedKind, served: Served) -> str:
    if kind.custom:
        return f"{'.'.join(reversed(kind.group.split('.')))}.{served.name}.{kind.kind}"
    return f"io.k8s.api.{kind.group.partition('.')[0] or 'core'}.{served.name}.{kind.kind}"


def _gvk(kind: ServedKind, served: Served, name: str = "") -> dict[str, str]:
    return {"group": kind.group, "kind": name or kind.kind, "version": served.name}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _whole(kind: ServedKind, served: Served) -> dict[str, Any]:
    described = {name: _published(schema) for name, schema in (served.schema.get("properties") or {}).items()}
    metadata = {"description": "Standard object's metadata.", "allOf": [_reference(f"{_META}.ObjectMeta")]}
    properties = {
        "apiVersion": {"description": _API_VERSION_WORDS, "type": "string"},
        "kind": {"description": _KIND_WORDS, "type": "string"},
        **described,
        "metadata": metadata,
    }
    kept = {name: value for name, value in served.schema.items() if name != "properties"}
    return {**kept, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind, served)]}


def _published(schema: Any) -> Any:
    """A schema as published in OpenAPI: Kubernetes extensions also appear as standard OpenAPI where possible."""
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    if made.get("format") in _OWN_FORMATS:
        made["format"] = _OWN_FORMATS[made["format"]]
    if made.get("x-kubernetes-int-or-string") and "anyOf" not in made and "allOf" not in made:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if isinstance(made.get("properties"), Mapping):
        made["properties"] = {name: _published(inner) for name, inner in made["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in made:
            made[name] = _published(made[name])
    if made.get("x-kubernetes-list-type") == "map":
        made["x-kubernetes-patch-strategy"] = "merge"
        made["x-kubernetes-patch-merge-key"] = next(iter(made.get("x-kubernetes-list-map-keys") or ("name",)))
    return made


def _list(kind: ServedKind, served: Served, name: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": _reference(name)},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
        },
        "x-kubernetes-group-version-kind": [_gvk(kind, served, kind.lists)],
    }


def _paths(kind: ServedKind, served: Served, name: str) -> dict[str, Any]:
    base = f"/apis/{kind.group}/{served.name}" if kind.group else f"/api/{served.name}"
    inside = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    gvk = _gvk(kind, served)

    def operation(action: str, *extra: str) -> dict[str, Any]:
        parameters = [{"name": each, "in": "query", "schema": {"type": "string"}} for each in extra]
        content = {"application/json": {"schema": _reference(f"{name}List" if action == "list" else name)}}
        return {
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }

    one = {
        "get": operation("get"),
        "put": operation("put", *_PARAMETERS),
        "patch": operation("patch", *_PARAMETERS, "force"),
        "delete": operation("delete", "dryRun"),
    }
    paths = {
        inside: {"get": operation("list"), "post": operation("post", *_PARAMETERS)},
        f"{inside}/{{name}}": one,
    }
    if kind.namespaced:
        paths[f"{base}/{kind.plural}"] = {"get": operation("list")}
    if served.status:
        paths[f"{inside}/{{name}}/status"] = {verb: one[verb] for verb in ("get", "put", "patch")}
    return paths
