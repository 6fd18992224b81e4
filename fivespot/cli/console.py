"""What a terminal can show."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["colours", "shows"]


def colours() -> bool | None:
    """Whether to write colours, for click's ``color``: None lets it look for a terminal.

    ``NO_COLOR`` set to anything turns them off, as its users have agreed.
    """
    return False if os.environ.get("NO_COLOR") else None


def shows(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
