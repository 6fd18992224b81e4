"""The transport of a dry run."""

from __future__ import annotations

import json

import pytest

from fivespot.runtime.client import DryRunTransport
from fivespot.runtime.client.transport import ByteStream, Limits, Request, Response


class Recording:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed = False

    async def request(self, request: Request) -> Response:
        self.sent.append(request.method)
        return Response(200, {}, b"{}")

    async def stream(self, request: Request) -> ByteStream:
        raise NotImplementedError

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "delete", "MADE-UP"])
async def test_nothing_that_could_change_the_cluster_is_sent_in_a_dry_run(method: str) -> None:
    inner = Recording()
    request = Request(method, "/x", Limits(1, 1, 1), description="create machines prod/web")
    answer = await DryRunTransport(inner).request(request)
    assert not inner.sent
    assert answer.status == 403
    assert json.loads(answer.body)["message"] == "dry run: create machines prod/web was not sent"


async def test_reads_go_through_in_a_dry_run() -> None:
    inner = Recording()
    transport = DryRunTransport(inner)
    assert (await transport.request(Request("GET", "/x", Limits(1, 1, 1)))).status == 200
    await transport.close()
    assert (inner.sent, inner.closed) == (["GET"], True)
