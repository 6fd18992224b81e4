"""Log lines of the controller, whatever else configures structlog in this process."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest
import structlog

from fivespot.runtime.reconcile import controller


@pytest.fixture(autouse=True)
def logged(monkeypatch: pytest.MonkeyPatch) -> list[MutableMapping[str, Any]]:
    """The records that controllers log, with level and context, in order."""
    capture = structlog.testing.LogCapture()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(),
        processors=[structlog.contextvars.merge_contextvars, capture],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    monkeypatch.setattr(controller, "_log", logger)
    return capture.entries
