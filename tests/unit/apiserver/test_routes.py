"""Parsing of resource paths."""

from __future__ import annotations

import pytest

from fivespot.apiserver.routes import RequestTarget, resource_target


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", RequestTarget("", "v1", "pods")),
        ("/api/v1/namespaces", RequestTarget("", "v1", "namespaces")),
        ("/api/v1/namespaces/x", RequestTarget("", "v1", "namespaces", "", "x")),
        ("/api/v1/namespaces/x/status", RequestTarget("", "v1", "namespaces", "", "x", "status")),
        ("/api/v1/namespaces/x/pods", RequestTarget("", "v1", "pods", "x")),
        ("/api/v1/namespaces/x/pods/y", RequestTarget("", "v1", "pods", "x", "y")),
        ("/api/v1/namespaces/x/pods/y/status", RequestTarget("", "v1", "pods", "x", "y", "status")),
        ("/apis/g.io/v1/things/y", RequestTarget("g.io", "v1", "things", "", "y")),
        ("/apis/g.io/v1/namespaces/x/things/y/scale", RequestTarget("g.io", "v1", "things", "x", "y", "scale")),
        ("/apis/g.io/v1/things/", RequestTarget("g.io", "v1", "things")),
    ],
)
def test_paths_of_resources(path: str, target: RequestTarget) -> None:
    assert resource_target(path) == target


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/apis/g.io", "/version", "//", "/metrics"])
def test_paths_that_are_about_no_resource(path: str) -> None:
    assert resource_target(path) is None
