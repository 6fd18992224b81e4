"""A control plane whose managers meet faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controlplane import ControlPlane, read_crds
from harness import MANIFESTS, install
from support.providers import ProviderKind


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """One without a manager, for all modules here: each ends the managers that it starts."""
    with ControlPlane(crds=read_crds(MANIFESTS / "crds"), audit=True) as found:
        install(found)
        ProviderKind(found.api, "Played").install()
        yield found


@pytest.fixture(scope="session")
def played(plane: ControlPlane) -> ProviderKind:
    """A provider kind that is always there."""
    return ProviderKind(plane.api, "Played")
