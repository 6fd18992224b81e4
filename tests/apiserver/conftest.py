"""Every test here runs on the embedded and on the real API server; where they differ, the real one is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.targets import DEFINITIONS, NAMESPACES, EmbeddedServer, Target, embedded_target, real_target


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.server)])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One of the two servers."""
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
