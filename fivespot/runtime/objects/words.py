"""One copy of each word that stands in thousands of cached objects."""

from __future__ import annotations

from typing import Final

__all__ = ["share"]

_LIMIT: Final = 1 << 17
"""Words that are remembered: those of some ten thousand objects. To forget them all costs nothing but sharing."""

_words: dict[str, str] = {}


def share(word: str) -> str:
    """The copy of a word that others hold already, or the word itself.

    Not :func:`sys.intern`: CPython 3.12 never lets go of what it interned, and names are generated without end.
    """
    found = _words.get(word)
    if found is None:
        if len(_words) >= _LIMIT:
            _words.clear()
        found = _words[word] = word
    return found
