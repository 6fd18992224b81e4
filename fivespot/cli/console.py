"""Capabilities of the terminal: colours and characters."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["colours", "shows"]


def colours() -> bool | None:
    """The value for click's ``color``: False if ``NO_COLOR`` is set, else None, which lets click detect a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def shows(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding can represent the text."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
