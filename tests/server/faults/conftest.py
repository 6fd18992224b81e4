"""A control plane whose managers meet faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane import ControlPlane
from harness import install
from harness.providers import ProviderKind


@pytest.fixture(scope="session")
def plane(session_control_plane: Callable[..., ControlPlane]) -> ControlPlane:
    """One without a manager, for all modules here: each ends the managers that it starts."""
    found = session_control_plane()
    install(found)
    ProviderKind(found.api, "Played").install()
    return found


@pytest.fixture(scope="session")
def played(plane: ControlPlane) -> ProviderKind:
    """A provider kind that is always there."""
    return ProviderKind(plane.api, "Played")
