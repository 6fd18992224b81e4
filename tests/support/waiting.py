"""Waiting for something to become true on a real server."""

from harness.waiting import eventually, eventually_async

__all__ = ["eventually", "eventually_async"]
