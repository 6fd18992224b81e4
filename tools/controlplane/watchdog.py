"""The program behind :class:`controlplane.process.Watchdog`; run as a script, standard library only.

Standard input holds one command a line: ``+PID`` and ``-PID`` add and remove a process group, ``keep`` spares the
folder. At its end the remaining groups are killed and the folder is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time


def main(folder: str) -> None:
    """Follows the commands until the parent is gone, then cleans up behind it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    groups: set[int] = set()
    keep = False
    for line in sys.stdin:
        command = line.strip()
        if command == "keep":
            keep = True
        elif command.startswith("+"):
            groups.add(int(command[1:]))
        elif command.startswith("-"):
            groups.discard(int(command[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    # A killed process may still be finishing a write, which would make the folder come back.
    for _ in range(20):
        if keep or not os.path.exists(folder):  # noqa: PTH110 - pathlib doubles the start-up time of this program
            return
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1])
