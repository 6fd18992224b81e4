"""The page "Create your own provider" works as it is written: files, commands, and what they print."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from controlplane import ControlPlane
from support.doc_pages import read_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "write-a-provider.md"
SECONDS = 270.0
"""Two minutes on two busy cores; most of it is waiting for what the page waits for."""


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_page_works_from_top_to_bottom(control_plane: ControlPlane, tmp_path: Path) -> None:
    """On the API server that the page starts; of the control plane only kubectl is used."""
    guide = read_page(PAGE)
    assert {"toggle.py", "test_toggle.py", "night-shift.yaml", "worker-2.yaml", "samples.yaml"} <= set(guide.files)
    assert len(guide.steps) > 12
    tools = [Path(sys.executable).parent, control_plane.binaries.kubectl.parent]
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {
        "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        # Other tests listen on this machine, too.
        "METRICS_PORT": "0",
        "HEALTH_PORT": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The plugins of this checkout would look for options of their own.
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:randomly",
    }
    guide.run(folder, environment, SECONDS)
