"""A transport that blocks every request that could change the cluster."""

from __future__ import annotations

import msgspec

from fivespot.runtime.client.transport import ByteStream, Request, Response, Transport

__all__ = ["DryRunTransport"]

_REVIEWS = frozenset(
    {"/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"}
)
"""Questions that are posted; the server stores nothing of them."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class DryRunTransport:
    """Forwards reads and answers every other request with 403 instead of sending it.

    Controllers in a dry run do not write; this enforces it.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, request: Request) -> Response:
        if request.method.upper() not in _READS and request.path not in _REVIEWS:
            return _refusal(request)
        return await self._inner.request(request)

    async def stream(self, request: Request) -> ByteStream:
        return await self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _refusal(request: Request) -> Response:
    status = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
        "message": f"dry run: {request.description or request.method} was not sent",
    }
    return Response(403, {"content-type": "application/json"}, msgspec.json.encode(status))
