"""Tests of the embedded and of the real API server; where they differ, the real one is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import kubernetes_version
from fivespot.apiserver import VERSION
from support.targets import DEFINITIONS, NAMESPACES, EmbeddedServer, Target, embedded_target, real_target


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests when another release is chosen for the real server: its messages differ."""
    minor = VERSION.removeprefix("v").rpartition(".")[0]
    if kubernetes_version().rpartition(".")[0] == minor:
        return
    skipped = pytest.mark.skip(reason=f"the embedded server is as Kubernetes {minor}")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(skipped)


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.server)])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The embedded or the real server."""
    if request.param == "real":
        real = real_target(request.getfixturevalue("control_plane"))
        yield real
        real.close()
        return
    with EmbeddedServer(tmp_path_factory.mktemp("embedded")) as server:
        made = embedded_target(server, "")
        yield made
        made.close()


@pytest.fixture
def ns(target: Target) -> Iterator[str]:
    """A namespace of the test's own."""
    name = target.namespace()
    yield name
    target.leave(name)


@pytest.fixture
def maps(ns: str) -> str:
    """The path of the namespace's ConfigMaps."""
    return f"{NAMESPACES}/{ns}/configmaps"


@pytest.fixture
def cleared(target: Target) -> Iterator[None]:
    """Removes the definitions that a test made."""
    before = {item["metadata"]["name"] for item in target.get(DEFINITIONS).ok()["items"]}
    yield
    for item in target.get(DEFINITIONS).ok()["items"]:
        if item["metadata"]["name"] not in before and item["metadata"]["name"].startswith("widgets."):
            target.delete(f"{DEFINITIONS}/{item['metadata']['name']}")
