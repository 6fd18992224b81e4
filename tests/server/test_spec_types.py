"""Types of a provider's spec on the API server: what it stores, the provider reads; what it can tell, it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from fivespot.providers.sdk import Context, Verdict
from fivespot.providers.sdk.decider import Decider
from unit.providers.sdk.test_spec_types import FIELDS, PROVIDER

REFUSED: dict[str, Any] = {
    "instant": "2027-02-30T06:00:00Z",
    "moment": "tomorrow",
    "day": "31.1.2027",
    "clock": "8:30",
    "colour": "blue",
    "level": "middle",
    "pair": [1, 2, 3],
    "names": ["a", "a"],
}


@pytest.fixture(scope="module", autouse=True)
def kind(control_plane: ControlPlane) -> Iterator[None]:
    control_plane.install_crds([PROVIDER.definition()])
    yield
    name = PROVIDER.resource.qualified
    control_plane.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, missing_ok=True)


def body(name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    identity = {"name": name, "namespace": namespace}
    return {"apiVersion": PROVIDER.resource.api_version, "kind": PROVIDER.kind, "metadata": identity, "spec": spec}


def test_what_the_server_stores_the_provider_reads(api: Api, namespace: str) -> None:
    stored = api.create(body("types", namespace, {name: written for name, (written, _) in FIELDS.items()}))
    prepared = Decider(PROVIDER).prepare("u", 1, stored["spec"])
    assert prepared.failure is None, prepared.failure
    assert {name: getattr(prepared.rule, name) for name in FIELDS} == {
        name: value for name, (_, value) in FIELDS.items()
    }
    verdict = Decider(PROVIDER).decide_now(prepared, datetime(2027, 1, 1, tzinfo=UTC), Context(namespace, "types"))
    assert isinstance(verdict, Verdict)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_schema_can_tell_is_refused(api: Api, namespace: str, name: str) -> None:
    with pytest.raises(ApiError) as refused:
        api.create(body("refused", namespace, {name: REFUSED[name]}), dry_run=True)
    assert refused.value.status == 422
    assert f"spec.{name}" in refused.value.body["message"]
