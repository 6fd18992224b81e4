"""Distribution of test files to workers: files of a folder that share an expensive fixture stay together."""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

__all__ = ["FolderScheduling"]

_TOGETHER: Final = ("tests/e2e/", "tests/server/faults/")
"""Folders whose tests share a control plane, which every worker that runs one of their files would start. Even an idle
one takes a tenth of a CPU."""


class FolderScheduling(LoadFileScheduling):  # type: ignore[misc]
    """As ``--dist loadfile``, with some folders in the place of their files."""

    def _split_scope(self, nodeid: str) -> str:
        folder = next((folder for folder in _TOGETHER if nodeid.startswith(folder)), None)
        return folder or nodeid.split("::", 1)[0]
