"""Verdicts: defaults, and instants without a time zone."""

from __future__ import annotations

from datetime import datetime

import pytest

from fivespot.providers.sdk import (
    Verdict,
)


def test_a_verdict_names_its_reason_and_takes_no_instant_without_a_zone() -> None:
    assert (Verdict(True).reason, Verdict(False).reason) == ("Active", "Inactive")
    with pytest.raises(ValueError, match=r"Verdict\.until .* has no time zone"):
        Verdict(True, datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake
