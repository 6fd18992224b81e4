"""The order of versions."""

from __future__ import annotations

from fivespot.apiserver.kinds import version_priority


def test_versions_are_preferred_as_kubernetes_prefers_them() -> None:
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(sorted(order), key=version_priority) == order
