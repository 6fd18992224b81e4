"""Whether the server can be used, told to a person who waits."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from fivespot.runtime.client import Client, Connection, HttpTransport, Request, Response
from fivespot.runtime.errors import ConfigError, ConnectError, TransportError
from support.faulty_servers import FixedRandom, ManualClock


class ScriptedTransport:
    def __init__(self, answer: Response | TransportError | None = None) -> None:
        self.answer = answer
        self.sent: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.sent.append(request)
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, TransportError):
            raise self.answer
        return cast("Response", self.answer)


def connection(transport: ScriptedTransport) -> Connection:
    client = Client(cast("Any", transport), clock=ManualClock(), rng=FixedRandom())
    http = cast("HttpTransport", transport)
    return Connection(client, http, "default", False, "https://api:6443", "kubeconfig k")


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            ConnectError("cannot reach https://api:6443: refused"),
            "kubeconfig k: cannot reach https://api:6443: refused",
        ),
        (Response(401, {}, b"Unauthorized"), "kubeconfig k: https://api:6443 does not accept the credentials"),
        (None, "kubeconfig k: https://api:6443 did not answer within 10 s"),
    ],
)
async def test_a_server_that_cannot_be_used_is_one_line_that_names_source_and_cause(answer: Any, words: str) -> None:
    transport = ScriptedTransport(answer)
    with pytest.raises(ConfigError, match=words) as caught:
        await connection(transport).check()
    assert "\n" not in str(caught.value)
    assert len(transport.sent) == 1, "nobody who waits is kept waiting by another try"


@pytest.mark.parametrize(
    ("answer", "version"), [(Response(200, {}, b'{"major":"1"}'), '{"major":"1"}'), (Response(403, {}, b"no"), "")]
)
async def test_a_server_that_answers_is_there_whether_it_tells_its_version_or_not(
    answer: Response, version: str
) -> None:
    assert await connection(ScriptedTransport(answer)).check() == version
