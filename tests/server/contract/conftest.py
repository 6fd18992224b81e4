"""Fixtures of the contract's rows: a provider kind that the tests play, and one ScheduledMachine in a namespace."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator

import pytest

from controlplane import Api
from support.manager import ManagerProcess
from support.providers import ProviderKind
from support.scene import Scene


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
def scene(api: Api, namespace: str, provider: ProviderKind, manager: ManagerProcess) -> Scene:
    """A namespace with a Cluster, an object ``hours`` of the played provider (inactive), and the manager running."""
    provider.create(namespace, active=False)
    return Scene(api, namespace, provider)
