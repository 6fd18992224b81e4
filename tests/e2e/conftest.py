"""Fixtures of the tests with the real Cluster API.

``environment`` is shared by all of them, which one worker runs: a control plane with Cluster API's core manager, the
simulated providers and `fivespot manager` under the shipped rights. A test takes a namespace of its own from
``scenario`` or ``environment.namespace``.

Cluster API takes its time (it retries a drain every 20 seconds), so tests marked ``together`` run concurrently, in
threads: all of one module begin when the first of them is due. Such a test takes ``environment`` and its parameters,
no other fixture, and keeps to namespaces of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from controlplane import BuildFailed, GoUnavailable, build_cluster_api
from support.environment import Environment
from support.live_scenario import LiveScenario
from support.log_folder import log_folder, worker_name

_RUNS = pytest.StashKey[dict[str, "Future[None]"]]()
_SECONDS = 300.0
"""Time limit for a test and the start of its environment. The first of tests that run together includes all of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test as one that needs the server."""
    for item in items:
        if isinstance(item, pytest.Function) and {"environment", "own_environment"} & set(item.fixturenames):
            item.add_marker("server")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Cluster API before the first test, outside its time limit."""
    needed = any({"environment", "own_environment"} & set(getattr(item, "fixturenames", ())) for item in session.items)
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
        environment = pyfuncitem.funcargs["environment"]
        for item in companions:
            assert isinstance(item, pytest.Function)
            runs[item.nodeid] = pool.submit(item.obj, **_arguments(item, environment))
        pool.shutdown(wait=False)
    runs[pyfuncitem.nodeid].result()
    return True


def _goes_with(item: pytest.Item, first: pytest.Function) -> bool:
    return item.path == first.path and item.get_closest_marker("together") is not None


def _arguments(item: pytest.Function, environment: object) -> dict[str, Any]:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return {**parameters, "environment": environment}


@pytest.fixture(scope="package")
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """The environment that the tests of this folder share."""
    worker = worker_name()
    with Environment() as shared:
        yield shared
        if request.session.testsfailed:
            shared.keep_logs(log_folder() / f"e2e-{worker}")
        assert shared.forbidden() == [], "the shipped rights are enough for everything here"


@pytest.fixture
def own_environment(request: pytest.FixtureRequest) -> Iterator[Callable[..., Environment]]:
    """Start an environment (10 s) for a test that breaks what others share. Takes the arguments of Environment."""
    with ExitStack() as stack:
        started: list[Environment] = []

        def start(**options: Any) -> Environment:
            fresh = stack.enter_context(Environment(**options))
            started.append(fresh)
            return fresh

        yield start
        if request.session.testsfailed:
            for number, found in enumerate(started):
                found.keep_logs(log_folder() / f"{request.node.name}-{number}".replace(os.sep, "_"))


@pytest.fixture
def scenario(request: pytest.FixtureRequest, environment: Environment) -> Iterator[LiveScenario]:
    """A ScheduledMachine that is not created yet, in a namespace with a usable Cluster."""
    namespace = environment.namespace(request.node.name)
    yield LiveScenario(environment, namespace)
    environment.delete_namespace(namespace)
