"""A cluster in memory for tests.

:class:`EmbeddedCluster` is an API server with a client, clock, faults and managers on one event loop.
:class:`ServerTransport` connects a client of the runtime to an :class:`~fivespot.apiserver.ApiServer` without a socket.
"""

from .cluster import START, EmbeddedCluster, RunningManager
from .transport import ServerTransport

__all__ = ["START", "EmbeddedCluster", "RunningManager", "ServerTransport"]
