"""Facts about processes from /proc; a process may end, or close a file, at any time meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["LOOPBACK", "alive", "listening"]

LOOPBACK = "0100007F"
"""127.0.0.1 as the kernel writes it."""

_LISTEN = "0A"


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended; a zombie whose parent has not looked yet is dead."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def listening(pids: Iterable[int]) -> list[str]:
    """The local addresses that processes listen on, as the kernel writes them (IPv4 in hexadecimal, reversed)."""
    inodes = {name for pid in pids for name in _open(pid)}
    return [
        fields[1].rpartition(":")[0]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in (line.split() for line in Path(table).read_text().splitlines()[1:])
        if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in inodes
    ]


def _open(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(link.readlink())
        except FileNotFoundError:
            # Closed since the folder was read.
            continue
