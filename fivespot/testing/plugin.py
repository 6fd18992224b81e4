"""The pytest plugin: a cluster in memory and virtual time as the fixture ``fivespot_cluster``.

Installed with fivespot; tests without the fixture are unaffected. Needs pytest-asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .cluster import EmbeddedCluster

_FIXTURE = "fivespot_cluster"
_LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Generator[None, _LoopFactories | None, _LoopFactories]:
    """Run tests with the fixture on a virtual-time loop, others on their usual loop."""
    chosen = yield
    if _FIXTURE in getattr(item, "fixturenames", ()):
        from .virtual_time import VirtualTimeLoop  # noqa: PLC0415 - most tests need none

        return {"virtual": VirtualTimeLoop}
    return chosen or {"asyncio": asyncio.new_event_loop}


@pytest.fixture
async def fivespot_cluster() -> AsyncIterator[EmbeddedCluster]:
    """An empty :class:`fivespot.testing.cluster.EmbeddedCluster` for one test; the time is Monday, midnight UTC."""
    from .cluster import EmbeddedCluster  # noqa: PLC0415 - most tests need none

    async with EmbeddedCluster() as cluster:
        yield cluster
