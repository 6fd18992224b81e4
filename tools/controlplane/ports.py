"""Free ports on loopback."""

from __future__ import annotations

import contextlib
import random
import socket

__all__ = ["free_ports"]

# Below the range from which the kernel takes ports for outgoing connections, so that none of those takes ours.
_PORTS = range(18000, 32000)


def free_ports(count: int) -> list[int]:
    """Distinct loopback ports on which nobody listens now."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        # All are held until the last is found, so that they differ.
        for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
            probe = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise RuntimeError(f"no free port between {_PORTS.start} and {_PORTS.stop}")
