"""Fixtures for every test: the real control plane, and namespaces on it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings

from controlplane import (
    Api,
    ApiError,
    BuildFailed,
    ControlPlane,
    GoUnavailable,
    KubectlFailed,
    build,
    cluster_api_crds,
    kubernetes_version,
    read_crds,
)
from fivespot.runtime import FivespotError
from harness import ManagerProcess, install
from real_only import LONG, REAL_ONLY, REAL_TIME
from support import make_namespace
from support.contract_page import ContractMarks
from support.embedded import RealOnly, ServedControlPlane
from support.folder_scheduler import FolderScheduling
from support.log_folder import begin_run, log_folder, worker_name
from support.random_order import RandomOrder

REPOSITORY = Path(__file__).resolve().parents[1]
OWN_CRDS = REPOSITORY / "manifests" / "crds"

# No test is timed: on a fresh checkout the first that draws text makes a table of all characters, which takes seconds.
settings.register_profile("fivespot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fivespot")

_SERVER_FIXTURES = frozenset({"control_plane", "session_control_plane", "module_control_plane", "own_control_plane"})
_MISSING = (RealOnly, ApiError, FivespotError, KubectlFailed, pytest.fail.Exception)
"""How a test fails that needs what the server in memory does not have: by a refusal, or one that does not come, and not
by a mistake."""
_FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add this repository's options to pytest's."""
    group = parser.getgroup("fivespot", "fivespot's own tests")
    group.addoption("--server", choices=("real", "embedded"), default="real", help="which API server to test on")
    group.addoption("--long", action="store_true", help="also what takes long on the chosen server")
    group.addoption("--contract", metavar="ID[,ID]", help="only tests of these rules of docs/contract.md")
    group.addoption("--contract-report", metavar="FILE", help="write which tests prove which rule, as JSON")
    group.addoption("--order-seed", type=int, metavar="N", help="shuffle files and the tests within them")


def pytest_configure(config: pytest.Config) -> None:
    """Register this repository's plugins."""
    marks = ContractMarks(config.getoption("--contract"), config.getoption("--contract-report"))
    config.pluginmanager.register(marks, "contract-marks")
    if (seed := config.getoption("--order-seed")) is not None:
        config.pluginmanager.register(RandomOrder(seed), "random-order")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FolderScheduling | None:
    """Keep folders together that share a control plane."""
    return FolderScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs the server by what it asks for, so that nobody has to remember it; begins with the longest."""
    if _embedded(config):
        chosen = {item: None for item in items if _on_embedded(item)}
        seen: set[str] = set()
        for item in list(chosen):
            if reason := reason_of(item, REAL_ONLY):
                file = item.nodeid.partition("::")[0]
                if reason.startswith(REAL_TIME) or (file in REAL_ONLY and file in seen):
                    del chosen[item]
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True, raises=_MISSING))
                seen.add(file)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    elif not config.getoption("--long"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        if isinstance(item, pytest.Function) and _SERVER_FIXTURES & set(item.fixturenames):
            item.add_marker("server")
    # What takes longest must not come last, when the other workers have nothing left to do.
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds the control plane before the first test, outside its time limit."""
    if session.config.option.collectonly or not any(item.get_closest_marker("server") for item in session.items):
        return
    try:
        if not _embedded(session.config):
            build(kubernetes_version())
        cluster_api_crds()
    except (BuildFailed, GoUnavailable) as error:
        pytest.exit(f"the control plane for the tests cannot be built: {error}", returncode=2)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Chooses where the logs of this run are kept."""
    # Otherwise pytest-asyncio's look for a current loop makes one in the main thread that nobody closes.
    asyncio.set_event_loop(None)
    if not _is_worker(session.config) and not session.config.option.collectonly:
        begin_run()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the logs of servers after a failure, and tests that were left out, for the end of ``./dev test`` as well."""
    if _is_worker(config) or config.option.collectonly:
        return
    if log_folder().is_dir():
        terminalreporter.write_line(f"logs of the control plane: {log_folder().relative_to(REPOSITORY)}")
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple))
    if summary := os.environ.get("FIVESPOT_TEST_SUMMARY"):
        with Path(summary).open("a") as file:
            file.writelines(f"left out: {count} tests: {reason}\n" for reason, count in sorted(reasons.items()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Remembers a failure for the fixtures that are torn down afterwards."""
    report = yield
    if report.failed:  # type: ignore[attr-defined]
        item.stash[_FAILED] = True
    return report


def _on_embedded(item: pytest.Item) -> bool:
    """Whether a test has a run of its own there: it asks for a server, and is quick."""
    asks = isinstance(item, pytest.Function) and bool(_SERVER_FIXTURES & set(item.fixturenames))
    return asks and bool(reason_of(item, REAL_ONLY) or item.config.getoption("--long") or not reason_of(item, LONG))


def reason_of(item: pytest.Item, listed: Mapping[str, str]) -> str:
    """Why a test is in a list; "" if it is not. A file may be listed as a whole."""
    test = item.nodeid.partition("[")[0]
    return listed.get(test) or listed.get(test.partition("::")[0]) or ""


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The control plane of this test run (of this worker): for tests that keep to a namespace of their own."""
    if _embedded(request.config):
        with ServedControlPlane() as served:
            yield cast("ControlPlane", served)
        return
    with ControlPlane(crds=read_crds(OWN_CRDS)) as plane:
        yield plane
        if request.session.testsfailed:
            plane.copy_logs(log_folder() / f"shared-{worker_name()}")


@pytest.fixture(scope="session")
def manager(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Iterator[ManagerProcess]:
    """One manager for all tests of this worker, under the shipped RBAC and admission policy: keep to your namespace."""
    install(control_plane)
    with ManagerProcess(control_plane) as process:
        yield process
        if request.session.testsfailed:
            log_folder().mkdir(parents=True, exist_ok=True)
            shutil.copy(process.log, log_folder() / f"manager-{worker_name()}.log")


@pytest.fixture
def own_control_plane(request: pytest.FixtureRequest) -> Iterator[Callable[..., ControlPlane]]:
    """Starts a control plane for this test alone (about 4 s): ``own_control_plane(audit=False, ...)``.

    For tests that change what the whole cluster shares, count requests, or stop the server. Takes the arguments of
    :class:`controlplane.ControlPlane`; fivespot's own CRDs are installed unless ``crds`` says otherwise.
    """
    yield from _starting(request)


@pytest.fixture(scope="module")
def module_control_plane(request: pytest.FixtureRequest) -> Iterator[Callable[..., ControlPlane]]:
    """The same for the tests of a module."""
    yield from _starting(request)


@pytest.fixture(scope="session")
def session_control_plane(request: pytest.FixtureRequest) -> Iterator[Callable[..., ControlPlane]]:
    """The same for the tests of several modules."""
    yield from _starting(request)


def _starting(request: pytest.FixtureRequest) -> Iterator[Callable[..., ControlPlane]]:
    started: list[ControlPlane] = []

    def start(**options: Any) -> ControlPlane:
        if _embedded(request.config):
            plane = cast("ControlPlane", ServedControlPlane(**options))
        else:
            plane = ControlPlane(**{"crds": read_crds(OWN_CRDS), **options})
            plane.start()
        started.append(plane)
        return plane

    yield start
    for number, plane in enumerate(started):
        if request.node.stash.get(_FAILED, False):
            plane.copy_logs(log_folder() / f"{request.node.name}-{number}".replace(os.sep, "_"))
        plane.stop()


@pytest.fixture
def api(control_plane: ControlPlane) -> Api:
    """The shared control plane as its administrator."""
    return control_plane.api


@pytest.fixture
def kubectl(control_plane: ControlPlane) -> Callable[..., str]:
    """The real kubectl on the shared control plane, as its administrator."""
    return control_plane.kubectl


@pytest.fixture
def namespace(request: pytest.FixtureRequest, api: Api) -> Iterator[str]:
    """A namespace of this test's own on the shared control plane, with a Cluster named ``prod`` in it."""
    name = make_namespace(api, request.node.name)
    yield name
    # Not waited for: what is in it goes in the background.
    api.delete("v1", "Namespace", name, missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def _no_real_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts a real server all the same proves nothing on the one in memory."""
    with pytest.MonkeyPatch.context() as patch:
        if _embedded(request.config):
            patch.setattr(ControlPlane, "start", _refuse)
        yield


def _refuse(plane: ControlPlane) -> None:
    raise RealOnly("a control plane of its own: of a fixture, which knows both servers")


def _embedded(config: pytest.Config) -> bool:
    return bool(config.getoption("--server") == "embedded")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
