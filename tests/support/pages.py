"""Python that pages of the documentation hold, as the files that a reader would make of it."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["python_files"]

_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([a-z_]+\.py)")


def python_files(page: Path) -> dict[str, str]:
    """File name -> text. Each block begins with a comment that names its file; blocks of one file follow each other."""
    files: dict[str, str] = {}
    for block in _FENCE.findall(page.read_text()):
        first, _, rest = block.partition("\n")
        named = _NAME.fullmatch(first)
        if named is None:
            raise AssertionError(f"{page.name}: a block of Python that does not name its file: {first!r}")
        files[named[1]] = files.get(named[1], "") + rest
    return files
