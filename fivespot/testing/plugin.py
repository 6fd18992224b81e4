"""The pytest plugin: a cluster in memory, in virtual time, as fixture ``fivespot_cluster``.

It is there as soon as fivespot is installed, and does nothing to tests that do not ask for the fixture. Needs
pytest-asyncio.
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
    """A test with the fixture runs on a loop with virtual time; others on what they would have had."""
    chosen = yield
    if _FIXTURE in getattr(item, "fixturenames", ()):
        from .virtual_time import VirtualTimeLoop  # noqa: PLC0415 - most tests need none

        return {"virtual": VirtualTimeLoop}
    return chosen or {"asyncio": asyncio.new_event_loop}


@pytest.fixture
async def fivespot_cluster() -> AsyncIterator[EmbeddedCluster]:
    """An empty :class:`fivespot.testing.cluster.EmbeddedCluster` of this test's own; it is Monday, midnight UTC."""
    from .cluster import EmbeddedCluster  # noqa: PLC0415 - most tests need none

    async with EmbeddedCluster() as cluster:
        yield cluster
