"""Event loops: what meets the network runs on each that the manager can be told to use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

_ON_EVERY_LOOP = frozenset({"test_http", "test_http1", "test_permit", "test_pool"})


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops for a test; those without a network are the same on all."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in _ON_EVERY_LOOP:
        factories["uvloop"] = uvloop.new_event_loop
    return factories
