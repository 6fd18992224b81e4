"""Fixtures of the tests with the real Cluster API.

``world`` is shared by the tests of a worker: a control plane with Cluster API's core manager, the simulated providers
and `fivespot manager` under the shipped rights. A test takes a namespace of its own from ``scene`` or
``world.namespace``.

What Cluster API does takes its time (a drain looks again every 20 seconds), so tests marked ``together`` run at once,
in threads: all of one module begin when the first of them is due. Such a test takes ``world`` and its parameters, no
other fixture, and keeps to namespaces of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from controlplane import BuildFailed, GoUnavailable, build_cluster_api
from support.clusterapi import World
from support.kept import log_folder, worker_name
from support.live import LiveScene

_RUNS = pytest.StashKey[dict[str, "Future[None]"]]()
_SECONDS = 300.0
"""For a test and the start of its world. The first of those that run together waits for all of them to get on."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these need the server."""
    for item in items:
        if isinstance(item, pytest.Function) and {"world", "own_world"} & set(item.fixturenames):
            item.add_marker("server")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Cluster API before the first test, outside its time limit."""
    needed = any({"world", "own_world"} & set(getattr(item, "fixturenames", ())) for item in session.items)
    if needed and not session.config.option.collectonly:
        try:
            build_cluster_api()
        except (BuildFailed, GoUnavailable) as error:
            pytest.exit(f"Cluster API for the tests cannot be built: {error}", returncode=2)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs all tests of a module that are marked ``together`` at once, and reports each under its own name."""
    if pyfuncitem.get_closest_marker("together") is None:
        return None
    runs = pyfuncitem.session.stash.setdefault(_RUNS, {})
    if pyfuncitem.nodeid not in runs:
        companions = [item for item in pyfuncitem.session.items if _goes_with(item, pyfuncitem)]
        pool = ThreadPoolExecutor(max_workers=len(companions), thread_name_prefix="together")
        world = pyfuncitem.funcargs["world"]
        for item in companions:
            assert isinstance(item, pytest.Function)
            runs[item.nodeid] = pool.submit(item.obj, **_arguments(item, world))
        pool.shutdown(wait=False)
    runs[pyfuncitem.nodeid].result()
    return True


def _goes_with(item: pytest.Item, first: pytest.Function) -> bool:
    return item.path == first.path and item.get_closest_marker("together") is not None


def _arguments(item: pytest.Function, world: object) -> dict[str, Any]:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return {**parameters, "world": world}


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """The world that the tests of this worker share."""
    worker = worker_name()
    with World() as shared:
        yield shared
        if request.session.testsfailed:
            shared.keep_logs(log_folder() / f"e2e-{worker}")
        assert shared.forbidden() == [], "the shipped rights were enough for the whole run"


@pytest.fixture
def own_world(request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    """Starts a world for this test alone (10 s): for those that break what others share. Takes World's arguments."""
    with ExitStack() as stack:
        started: list[World] = []

        def start(**options: Any) -> World:
            fresh = stack.enter_context(World(**options))
            started.append(fresh)
            return fresh

        yield start
        if request.session.testsfailed:
            for number, found in enumerate(started):
                found.keep_logs(log_folder() / f"{request.node.name}-{number}".replace(os.sep, "_"))


@pytest.fixture
def scene(request: pytest.FixtureRequest, world: World) -> Iterator[LiveScene]:
    """A ScheduledMachine that is not created yet, in a namespace with a usable Cluster."""
    namespace = world.namespace(request.node.name)
    yield LiveScene(world, namespace)
    world.delete_namespace(namespace)
