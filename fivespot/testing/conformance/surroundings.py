"""Checks of effects beyond the objects of the kind: writes to another kind, and writes that change nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fivespot.api.names import PROVIDER_GROUP
from fivespot.runtime import ForbiddenError, Key, NotFoundError, Resource
from fivespot.runtime.errors import NotServedError

from .harness import Harness, InconclusiveError, ViolationError
from .history import MANAGER, brief
from .installation import apply_definition, remove_definition

__all__ = ["check_other_kinds", "check_redundant_writes"]

_WATCHED: Final = 3.0
"""Seconds for which a write to another kind, or one that changes nothing, is waited for."""
_REQUESTS: Final = "apiserver_request_total{"
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_WRITES: Final = frozenset({"PATCH", "PUT", "APPLY"})


async def check_other_kinds(harness: Harness) -> None:
    kind = f"ConformanceBystander{harness.suffix.capitalize()}"
    resource = Resource(PROVIDER_GROUP, "v1", f"{kind.lower()}s", kind)
    try:
        await apply_definition(harness.client, harness.clock, resource, _definition(resource))
    except ForbiddenError:
        raise InconclusiveError("the user may not install another kind for the run") from None
    try:
        key = Key(harness.namespace, "conformance-bystander")
        identity = {"name": key.name, "namespace": key.namespace}
        body = {"apiVersion": resource.api_version, "kind": kind, "metadata": identity, "spec": {}}
        await harness.client.create(resource, body)
        # Something for the provider to write about, beside it.
        own = await harness.create("beside", active=True)
        await harness.verdict(own, True)
        await harness.sleep(min(_WATCHED, harness.timing.steady))
        seen = (await harness.client.get(resource, key)).decode()
        if seen.get("status") or (seen.get("spec") or {}):
            who = _writer(seen)
            raise ViolationError(
                f"an object of another kind ({kind}), which has no provider, was written{who}: its status is "
                f"{brief(seen.get('status'))}"
            )
    finally:
        await remove_definition(harness.client, resource)


def _definition(resource: Resource) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.qualified},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
            },
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def _writer(seen: Mapping[str, Any]) -> str:
    entries = (seen.get("metadata") or {}).get("managedFields") or ()
    names = sorted({str(entry.get("manager")) for entry in entries} - {MANAGER})
    return f" by {', '.join(map(repr, names))}" if names else ""


async def check_redundant_writes(harness: Harness) -> str:
    seconds = min(_WATCHED, harness.timing.steady)
    before = await _status_writes(harness)
    if not before:
        raise InconclusiveError("the API server does not count requests by resource")
    known = _changes(harness)
    await harness.sleep(seconds)
    redundant = await _status_writes(harness) - before - (_changes(harness) - known)
    if redundant > 0:
        raise ViolationError(
            f"{redundant:.0f} status writes in {seconds:g} s changed nothing: the API server dropped them, but each is "
            "a request"
        )
    return f"by the API server's count of requests in {seconds:g} s"


def _changes(harness: Harness) -> int:
    """Return the number of changes of a status that were observed."""
    return sum(1 for record in harness.recorder.records.values() for _ in record.writes())


async def _status_writes(harness: Harness) -> float:
    """Return the number of status writes to the kind that the API server has accepted since it started."""
    try:
        text = (await harness.client.raw("GET", "/metrics", headers={"Accept": "text/plain"})).decode()
    except (ForbiddenError, NotFoundError, NotServedError):
        raise InconclusiveError("the API server's metrics cannot be read") from None
    resource, count = harness.resource, 0.0
    for line in text.splitlines():
        if not line.startswith(_REQUESTS) or f'resource="{resource.plural}"' not in line:
            continue
        labels, _, value = line.rpartition("} ")
        found = dict(_LABEL.findall(labels))
        accepted = found.get("code", "").startswith("2") and found.get("verb") in _WRITES
        if accepted and found.get("group") == resource.group and found.get("subresource") == "status":
            count += float(value)
    return count
