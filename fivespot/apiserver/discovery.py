"""Discovery documents, plain and aggregated."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from .kinds import Registry, Served, ServedKind, version_priority
from .messages import ApiResponse, json_response, text_response
from .negotiation import aggregated_discovery
from .status import nothing_served

__all__ = ["DiscoveryDocuments"]

_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_CUSTOM_VERBS: Final = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
_SUB_VERBS: Final = ["get", "patch", "update"]


class DiscoveryDocuments:
    """Answers discovery requests under ``/api`` and ``/apis``."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def answer(self, path: str, accept: str) -> ApiResponse | None:
        """The answer for a path; None for paths that are not discovery's."""
        parts = [part for part in path.split("/") if part]
        aggregated = aggregated_discovery(accept)
        match parts:
            case ["api"]:
                if aggregated:
                    return self._aggregated([""], aggregated)
                return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
            case ["apis"]:
                groups = sorted(group for group in self._registry.groups() if group)
                if aggregated:
                    return self._aggregated(groups, aggregated)
                return _json(
                    {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(each) for each in groups]}
                )
            case ["apis", group]:
                if group not in self._registry.groups():
                    return text_response(404, "404 page not found\n")
                return _json({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)})
            case ["api", version]:
                return self._version("", version)
            case ["apis", group, version]:
                return self._version(group, version)
        return None

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{each}", "version": each} for each in self._registry.groups()[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _version(self, group: str, version: str) -> ApiResponse:
        if not self._registry.serves(group, version):
            if not group:
                raise nothing_served()
            return text_response(404, "404 page not found\n")
        resources: list[dict[str, Any]] = []
        for kind in self._registry.kinds(group):
            served = kind.versions.get(version)
            if served is not None:
                resources += _plain(kind, served)
        full = f"{group}/{version}" if group else version
        return _json({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": full, "resources": resources})

    def _aggregated(self, groups: list[str], version: str) -> ApiResponse:
        items = []
        for group in groups:
            versions = []
            for each in sorted(self._registry.groups()[group], key=version_priority):
                resources = [
                    _entry(kind, kind.versions[each]) for kind in self._registry.kinds(group) if each in kind.versions
                ]
                versions.append({"version": each, "resources": resources, "freshness": "Current"})
            items.append({"metadata": {"name": group} if group else {}, "versions": versions})
        api_version = f"apidiscovery.k8s.io/{version}"
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}
        form = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return ApiResponse(200, [("Content-Type", form), ("Vary", "Accept")], msgspec.json.encode(body))


def _json(body: dict[str, Any]) -> ApiResponse:
    return json_response(200, msgspec.json.encode(body))


def _subresources(kind: ServedKind, served: Served) -> list[tuple[str, dict[str, str]]]:
    own = {"group": kind.group, "version": served.name, "kind": kind.kind}
    found = [("status", own)] if served.status else []
    if served.scale:
        found.append(("scale", {"group": "autoscaling", "version": "v1", "kind": "Scale"}))
    if kind.group == "" and kind.plural == "namespaces":
        found.append(("finalize", own))
    found += [(name, own) for name in kind.strategy.parts]
    found += [(name, dict(shown)) for name, shown in kind.strategy.actions.items()]
    return sorted(found, key=lambda each: each[0]) if not kind.custom else found


def _sub_verbs(kind: ServedKind, name: str) -> list[str]:
    if name in kind.strategy.actions:
        return ["create"]
    return ["update"] if name == "finalize" else _SUB_VERBS


def _verbs(kind: ServedKind) -> list[str]:
    verbs = _CUSTOM_VERBS if kind.custom else _VERBS
    return verbs if kind.strategy.deletes_many else [verb for verb in verbs if verb != "deletecollection"]


def _plain(kind: ServedKind, served: Served) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.custom and served.name == kind.storage:
        stored = f"{kind.group}/{served.name}/{kind.kind}".encode()
        entry["storageVersionHash"] = base64.b64encode(hashlib.sha256(stored).digest()[:8]).decode()
    entries = [entry]
    for name, shown in _subresources(kind, served):
        sub: dict[str, Any] = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": shown["kind"],
            "verbs": _sub_verbs(kind, name),
        }
        if (shown["group"], shown["version"]) != (kind.group, served.name):
            sub |= {"group": shown["group"], "version": shown["version"]}
        entries.append(sub)
    return entries


def _entry(kind: ServedKind, served: Served) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": served.name, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    subresources = [
        {"subresource": name, "responseKind": shown, "verbs": _sub_verbs(kind, name)}
        for name, shown in _subresources(kind, served)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry
