"""Reading of CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fivespot.runtime.cache.crds import by_priority, read_definition
from fivespot.runtime.errors import KindNotServedError, ProtocolError
from fivespot.runtime.objects import Object, Resource


def definition(**changes: Any) -> Object:
    body: dict[str, Any] = {
        "metadata": {"name": "gadgets.example.com", "uid": "u1", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [
                {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}},
                {"name": "v1", "served": True, "storage": False},
                {"name": "v1alpha1", "served": False, "storage": False},
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}], "acceptedNames": {"kind": "Gadget"}},
    }
    for path, value in changes.items():
        part, _, name = path.partition("_")
        body[part][name] = value
    return Object.parse(msgspec.json.encode(body))


def test_versions_come_in_kubernetes_priority() -> None:
    stable, beta, alpha = (
        ("v10", "v2", "v1"),
        ("v11beta2", "v10beta3", "v3beta1"),
        ("v12alpha1", "v11alpha2", "v1alpha1"),
    )
    expected = (*stable, *beta, *alpha, "foo1", "foo10")
    assert by_priority(sorted(expected)) == expected


def test_a_usable_kind_is_read_at_its_storage_version() -> None:
    state = read_definition(definition())
    assert (state.usable, state.unusable_reason) == (True, "")
    assert state.served == ("v1", "v1beta1")
    assert state.labels == {"a": "b"}
    assert state.resource() == Resource("example.com", "v1beta1", "gadgets", "Gadget")
    assert state.resource("v1").version == "v1"
    with pytest.raises(KindNotServedError):
        state.resource("v1alpha1")


def test_a_kind_whose_storage_version_is_not_served_is_read_at_the_newest() -> None:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": False, "storage": True}]
    state = read_definition(definition(spec_versions=versions))
    assert (state.storage, state.resource().version) == ("v2", "v1")


@pytest.mark.parametrize(
    ("changes", "problem", "usable"),
    [
        ({"status_conditions": [{"type": "Established", "status": "False"}]}, "is not established", False),
        ({"status_conditions": None}, "is not established", False),
        ({"metadata_deletionTimestamp": "2026-01-01T00:00:00Z"}, "is being deleted", False),
        ({"spec_versions": [{"name": "v1", "served": False, "storage": True}]}, "serves no version", False),
        ({"spec_scope": "Cluster"}, "is not namespaced", True),
    ],
)
def test_what_a_kind_misses_is_named(changes: dict[str, Any], problem: str, usable: bool) -> None:
    state = read_definition(definition(**changes))
    assert (state.unusable_reason, state.usable) == (problem, usable)


def test_no_version_served_means_no_resource() -> None:
    with pytest.raises(KindNotServedError, match="any"):
        read_definition(definition(spec_versions=[])).resource()


def test_the_accepted_kind_counts_not_the_asked_for_one() -> None:
    assert read_definition(definition(status_acceptedNames={"kind": "Old", "plural": "olds"})).kind == "Old"
    assert read_definition(definition(status_acceptedNames={"kind": "", "plural": ""})).kind == "Gadget"


def test_something_else_is_refused() -> None:
    with pytest.raises(ProtocolError):
        read_definition(definition(spec_versions="v1"))
