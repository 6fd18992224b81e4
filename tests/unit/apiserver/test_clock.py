"""The formats of timestamps."""

from __future__ import annotations

from datetime import UTC, datetime

from fivespot.apiserver.clock import micro_time, timestamp


def test_a_timestamp_is_in_whole_seconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert (timestamp(moment), micro_time(moment)) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z")
