"""The runtime knows Kubernetes, and none of the kinds that controllers on it are about."""

from __future__ import annotations

import re
from pathlib import Path

import fivespot.runtime

_OF_CONTROLLERS = re.compile(
    r"scheduledmachine|spotschedule|5spot|capi(?![a-z])|cluster[.]x-k8s[.]io|cluster api", re.IGNORECASE
)


def test_the_runtime_names_nothing_of_the_controllers_on_it() -> None:
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(Path(fivespot.runtime.__file__).parent.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _OF_CONTROLLERS.search(line)
    ]
    assert not found
