"""A cluster in memory for tests: API server, client, clock, faults and managers on one loop, virtual time included.

:class:`EmbeddedCluster` is all of it. :class:`ServerTransport` alone connects a client of the runtime to an
:class:`~fivespot.apiserver.ApiServer` without a socket.
"""

from .cluster import START, EmbeddedCluster, RunningManager
from .transport import ServerTransport

__all__ = ["START", "EmbeddedCluster", "RunningManager", "ServerTransport"]
