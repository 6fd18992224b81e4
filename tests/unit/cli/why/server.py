"""An API server as far as `fivespot why` asks one: discovery, definitions, objects, and rights that are missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from fivespot.runtime import Client, ForbiddenError, Key, NotFoundError, Object, Resource, Selector
from fivespot.runtime.errors import NotServedError
from fivespot.runtime.objects import EVERYTHING

Json = dict[str, Any]

NOW = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC)
NAMESPACE, NAME = "team-a", "web-1"
PROVIDERS = "spotschedules.5spot.finos.org"


class Standing:
    """A clock that stands at NOW."""

    def monotonic(self) -> float:
        return 1000.0

    def boottime(self) -> float:
        return self.monotonic()

    def now(self) -> datetime:
        return NOW


class Server:
    """Objects by resource and key.

    :ivar denied: (verb, ``plural.group``) that are forbidden.
    :ivar asked: every question, in order.
    """

    def __init__(self) -> None:
        self.clock = Standing()
        self.objects: dict[tuple[str, Key], Json] = {}
        self.denied: set[tuple[str, str]] = set()
        self.asked: list[tuple[str, str, str]] = []
        self._count = 0

    @property
    def client(self) -> Client:
        return cast(Client, self)

    # Filling it ---------------------------------------------------------------------------------------------------

    def define(
        self,
        kind: str,
        group: str,
        versions: Mapping[str, bool] | None = None,
        *,
        established: bool = True,
        scope: str = "Namespaced",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """A kind by its definition; ``versions`` says of each whether it is served."""
        served = versions or {"v1beta1": True}
        plural = f"{kind.lower()}s"
        names = {"kind": kind, "plural": plural}
        self.put(
            "customresourcedefinitions.apiextensions.k8s.io",
            {
                "metadata": {"name": f"{plural}.{group}", "labels": dict(labels or {})},
                "spec": {
                    "group": group,
                    "names": names,
                    "scope": scope,
                    "versions": [
                        {"name": name, "served": on, "storage": index == 0}
                        for index, (name, on) in enumerate(served.items())
                    ],
                },
                "status": {
                    "acceptedNames": names,
                    "conditions": [{"type": "Established", "status": "True" if established else "False"}],
                },
            },
        )

    def put(self, qualified: str, body: Json) -> Json:
        """Store an object; what it does not say of its metadata is made up."""
        self._count += 1
        metadata = {"uid": f"uid-{self._count}", "resourceVersion": str(100 + self._count), "generation": 1}
        stored = {**body, "metadata": {**metadata, **body["metadata"]}}
        key = Key(stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
        self.objects[qualified, key] = stored
        return stored

    # Asking it ----------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self._ask("get", resource, key)
        found = self.objects.get((resource.qualified, key))
        if found is None:
            raise NotFoundError(404, "NotFound", f"{key} not found", request=f"get {resource.qualified} {key}")
        return _parsed(found, metadata_only=metadata_only)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: Selector = EVERYTHING,
        metadata_only: bool = False,
        limit: int = 500,
    ) -> list[Object]:
        self._ask("list", resource, Key(namespace or "", ""))
        return [
            _parsed(body, metadata_only=metadata_only)
            for (qualified, key), body in self.objects.items()
            if qualified == resource.qualified
            and namespace in (None, key.namespace)
            and selector.matches(body["metadata"].get("labels", {}))
        ]

    async def raw(self, method: str, path: str) -> bytes:
        parts = path.strip("/").split("/")
        versions: dict[str, list[Json]] = {}
        for (qualified, _), body in self.objects.items():
            if qualified == "customresourcedefinitions.apiextensions.k8s.io" and body["spec"]["group"] == parts[1]:
                if body["status"]["conditions"][0]["status"] != "True":
                    continue
                for version in body["spec"]["versions"]:
                    if version["served"]:
                        names = body["spec"]["names"]
                        resource = {"name": names["plural"], "kind": names["kind"], "namespaced": True}
                        versions.setdefault(version["name"], []).append(resource)
        if len(parts) == 2 and versions:
            return json.dumps({"versions": [{"version": name} for name in versions]}).encode()
        if len(parts) == 3 and parts[2] in versions:
            return json.dumps({"resources": versions[parts[2]]}).encode()
        raise NotServedError(404, "", "no such path", request=f"{method} {path}")

    def _ask(self, verb: str, resource: Resource, key: Key) -> None:
        self.asked.append((verb, resource.qualified, str(key)))
        if (verb, resource.qualified) in self.denied:
            raise ForbiddenError(403, "Forbidden", "you may not", request=f"{verb} {resource.qualified} {key}")


def _parsed(body: Json, *, metadata_only: bool) -> Object:
    return Object.parse(json.dumps({"metadata": body["metadata"]} if metadata_only else body).encode())
