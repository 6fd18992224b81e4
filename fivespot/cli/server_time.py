"""The time by the API server's clock, for commands that compute instants for controllers in the cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from fivespot.runtime import Connection
from fivespot.runtime.client import REQUEST_LIMITS
from fivespot.runtime.client.transport import Request

__all__ = ["server_now"]


async def server_now(connection: Connection) -> datetime:
    """Read the server's clock from the Date header of a response, to the second; the local clock if there is none.

    :raises TransportError: the server does not answer.
    """
    request = Request("GET", "/version", REQUEST_LIMITS, description="GET /version")
    response = await connection.transport.request(request)
    try:
        instant = parsedate_to_datetime(response.headers["date"])
    except (KeyError, ValueError):
        return connection.client.clock.now().replace(microsecond=0)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
