"""Fixtures of the contract's rows: a provider kind that the tests play, and one ScheduledMachine in a namespace."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

import harness.wait
import support.measurements
from controlplane import Api, ControlPlane
from harness import ManagerProcess
from harness.providers import ProviderKind
from support.embedded import EmbeddedControlPlane, EmbeddedManager, on_virtual_time
from support.measurements import caught_up
from support.scenario import Scenario

Start = Callable[..., ControlPlane]


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """In memory it is of virtual time here."""
    if not embedded(request):
        yield request.getfixturevalue("control_plane")
        return
    plane = EmbeddedControlPlane()
    yield cast("ControlPlane", plane)
    plane.stop()


@pytest.fixture(scope="session")
def manager(request: pytest.FixtureRequest, control_plane: ControlPlane) -> Iterator[ManagerProcess]:
    """In memory it is no process."""
    if not embedded(request):
        yield request.getfixturevalue("manager")
        return
    with EmbeddedManager(cast("EmbeddedControlPlane", control_plane)) as running:
        yield cast("ManagerProcess", running)


@pytest.fixture
def own_control_plane(request: pytest.FixtureRequest) -> Iterator[Start]:
    """In memory it is of virtual time here."""
    yield from starting(request, "own_control_plane")


@pytest.fixture(scope="module")
def module_control_plane(request: pytest.FixtureRequest) -> Iterator[Start]:
    """In memory it is of virtual time here."""
    yield from starting(request, "module_control_plane")


def starting(request: pytest.FixtureRequest, overridden: str) -> Iterator[Start]:
    if not embedded(request):
        yield request.getfixturevalue(overridden)
        return
    started: list[EmbeddedControlPlane] = []

    def start(**options: Any) -> ControlPlane:
        started.append(EmbeddedControlPlane(**options))
        return cast("ControlPlane", started[-1])

    yield start
    for plane in started:
        plane.stop()


@pytest.fixture(autouse=True)
def _virtual_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the test wait on the clock of the server in memory, where it runs on that."""
    if not embedded(request):
        return
    on_virtual_time(monkeypatch, request.module, harness.wait, support.measurements)
    values = (request.getfixturevalue(name) for name in ("plane", "control_plane") if name in request.fixturenames)
    for plane in values:
        if isinstance(plane, EmbeddedControlPlane):
            plane.enter()
            break


def embedded(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--server") == "embedded")


@pytest.fixture(scope="session")
def provider(control_plane: object, request: pytest.FixtureRequest) -> ProviderKind:
    """A provider kind shared by the tests of this worker; a test that changes its CRD makes one of its own."""
    plane = request.getfixturevalue("control_plane")
    kind = ProviderKind(plane.api, f"Played{secrets.token_hex(3).capitalize()}")
    kind.install()
    return kind


@pytest.fixture
def own_provider(api: Api) -> Iterator[Callable[..., ProviderKind]]:
    """Makes provider kinds for this test alone (not installed yet); they are removed at its end."""
    made: list[ProviderKind] = []

    def make(**options: object) -> ProviderKind:
        kind = ProviderKind(api, f"Own{secrets.token_hex(3).capitalize()}", **options)  # type: ignore[arg-type]
        made.append(kind)
        return kind

    yield make
    for kind in made:
        with contextlib.suppress(Exception):
            kind.remove(wait=False)


@pytest.fixture
def scenario(api: Api, namespace: str, provider: ProviderKind, manager: ManagerProcess) -> Scenario:
    """A namespace with a Cluster, an object ``hours`` of the played provider (inactive), and the manager running."""
    provider.create(namespace, active=False)
    # Otherwise it may be known without its verdict when the first machine comes, which would be reported.
    caught_up(manager, api.get(provider.api_version, provider.kind, "hours", namespace))
    return Scenario(api, namespace, provider)
