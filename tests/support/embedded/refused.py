"""What a test cannot have on the server in memory."""

from __future__ import annotations

__all__ = ["RealOnly"]


class RealOnly(Exception):
    """The test needs something that only the real control plane has."""
