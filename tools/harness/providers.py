"""Schedule providers that tests play themselves: a CRD of the provider group, and objects whose status they write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controlplane import Api
from controlplane.crds import is_established
from harness.wait import eventually

PROVIDER_GROUP = "spotschedules.5spot.finos.org"
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")

Json = dict[str, Any]


def provider_crd(
    kind: str,
    versions: Sequence[str] = ("v1alpha1",),
    *,
    storage: str | None = None,
    served: Sequence[str] | None = None,
) -> Json:
    """A provider kind whose status may hold anything, garbage included: the contract is not the schema's to keep."""
    stored = storage or versions[-1]
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": _CRD[0],
        "kind": _CRD[1],
        "metadata": {"name": f"{kind.lower()}s.{PROVIDER_GROUP}"},
        "spec": {
            "group": PROVIDER_GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": served is None or version in served,
                    "storage": version == stored,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", **anything}, "status": anything},
                        }
                    },
                }
                for version in versions
            ],
            "conversion": {"strategy": "None"},
        },
    }


class ProviderKind:
    """One provider kind on a server, and what its controller would do."""

    def __init__(self, api: Api, kind: str, versions: Sequence[str] = ("v1alpha1",), **options: Any) -> None:
        self.api = api
        self.kind = kind
        self.definition = provider_crd(kind, versions, **options)
        self.version = next(v["name"] for v in self.definition["spec"]["versions"] if v["served"])

    @property
    def api_version(self) -> str:
        return f"{PROVIDER_GROUP}/{self.version}"

    def install(self) -> None:
        """Create the CRD (or put it back) and wait until its objects are served."""
        self.api.create(self.definition)
        self.wait_served()

    def wait_served(self) -> None:
        eventually(self._served, 60, what=f"{self.kind} is served")

    def change(self, patch: Json) -> None:
        """A merge patch of the CRD."""
        self.api.patch(*_CRD, self.definition["metadata"]["name"], None, patch)

    def remove(self, *, wait: bool = True) -> None:
        name = self.definition["metadata"]["name"]
        self.api.delete(*_CRD, name)
        if wait:
            # The server looks for objects that are left every 5 seconds only.
            eventually(lambda: self.api.find(*_CRD, name) is None, 60, what=f"{name} is gone")

    def create(self, namespace: str, name: str = "hours", *, active: Any = None, **status: Any) -> None:
        """An object, with `status.active` unless it is None."""
        metadata = {"name": name, "namespace": namespace}
        self.api.create({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": {}})
        if active is not None:
            status["active"] = active
        if status:
            self.status(namespace, name, **status)

    def status(self, namespace: str, name: str = "hours", **status: Any) -> None:
        """Write the status as the provider's controller would (a merge patch)."""
        self.api.patch_status(self.api_version, self.kind, name, namespace, status)

    def ready(self, namespace: str, name: str = "hours", *, ready: Any, **more: Any) -> None:
        """Set the Ready condition's status."""
        self.status(namespace, name, conditions=[{"type": "Ready", "status": ready, **more}])

    def delete(self, namespace: str, name: str = "hours") -> None:
        self.api.delete(self.api_version, self.kind, name, namespace)

    def reference(self, name: str = "hours", *, version: str | None = None) -> Json:
        """Return the `spec.schedule` that refers to an object of this kind."""
        api_version = f"{PROVIDER_GROUP}/{version or self.version}"
        return {"apiVersion": api_version, "kind": self.kind, "name": name}

    def _served(self) -> bool:
        found = self.api.find(*_CRD, self.definition["metadata"]["name"])
        # Of one that was removed a moment ago the server may list objects still, and refuse to create any.
        return found is not None and is_established(found) and self._lists()

    def _lists(self) -> bool:
        plural = self.definition["spec"]["names"]["plural"]
        try:
            self.api.request("GET", f"/apis/{self.api_version}/{plural}")
        except Exception as error:
            raise AssertionError(str(error)) from None
        return True
