"""Metrics over TLS for those who may read them: handshakes, reviews of tokens and what is remembered of them."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import ConfigError, ForbiddenError, TransportError
from fivespot.runtime.manager import Connectivity, Health, Serving, ServingSettings, http_server
from fivespot.runtime.manager.access_review import AccessReview
from fivespot.runtime.telemetry import Metrics
from support.faulty_servers import ManualClock

Json = dict[str, Any]


class Reviews:
    """Plays the API server: tokens by the name of their user, and who may read."""

    def __init__(self) -> None:
        self.users = {"good": "prometheus", "poor": "somebody"}
        self.readers = {"prometheus"}
        self.asked: list[Json] = []
        self.error: Exception | None = None
        self.answer: bytes | None = None

    async def raw(self, method: str, path: str, *, body: bytes | None = None) -> bytes:
        assert method == "POST"
        assert body is not None
        if self.error is not None:
            raise self.error
        if self.answer is not None:
            return self.answer
        review = json.loads(body)
        self.asked.append(review)
        spec = review["spec"]
        if review["kind"] == "TokenReview":
            user = self.users.get(spec["token"])
            known = {"authenticated": True, "user": {"username": user, "groups": ["g"], "extra": {"a": ["b"]}}}
            return json.dumps({"status": known if user else {"authenticated": False, "error": "bad"}}).encode()
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        assert (spec["groups"], spec["extra"]) == (["g"], {"a": ["b"]})
        return json.dumps({"status": {"allowed": spec["user"] in self.readers}}).encode()


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def status(access: AccessReview, token: str, scheme: str = "Bearer") -> int:
    return (await access.check(f"{scheme} {token}".strip(), "/metrics")).status


async def test_who_may_get_the_metrics_is_for_the_api_server_to_say(reviews: Reviews, clock: ManualClock) -> None:
    access = AccessReview(reviews, clock)
    assert await status(access, "good") == 200
    assert await status(access, "poor") == 403
    assert await status(access, "unknown") == 401
    assert await status(access, "good", "bearer") == 200
    for authorization in ("", "Bearer", "Bearer  ", "Basic Z29vZDo=", "good"):
        assert (await access.check(authorization, "/metrics")).status == 401


async def test_an_answer_holds_for_a_minute_and_a_refusal_for_ten_seconds(reviews: Reviews, clock: ManualClock) -> None:
    access = AccessReview(reviews, clock)
    for _ in range(100):
        assert (await status(access, "good"), await status(access, "poor")) == (200, 403)
    assert len(reviews.asked) == 4
    reviews.readers = {"somebody"}
    clock.advance(11)
    assert (await status(access, "good"), await status(access, "poor")) == (200, 200)
    clock.advance(50)
    assert await status(access, "good") == 403, "the right was revoked"


async def test_made_up_tokens_cost_the_api_server_a_handful_of_requests_a_second(
    reviews: Reviews, clock: ManualClock
) -> None:
    access = AccessReview(reviews, clock)
    assert await status(access, "good") == 200
    answers = [await status(access, f"made-up-{number}") for number in range(1000)]
    assert len(reviews.asked) <= 2 * 5
    assert set(answers) == {401, 429}
    assert await status(access, "good") == 200, "who is known is not kept out"
    for _ in range(200):
        clock.advance(1)
        for number in range(5):
            await status(access, f"more-{clock.monotonic()}-{number}")
    assert len(access._known) <= 256


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ForbiddenError(403, "Forbidden", "no", request="POST"), 500),
        (TransportError("refused"), 503),
        (TimeoutError(), 503),
    ],
)
async def test_a_review_that_fails_lets_nobody_in_and_is_tried_again(
    reviews: Reviews, clock: ManualClock, error: Exception, code: int
) -> None:
    access = AccessReview(reviews, clock)
    reviews.error = error
    assert await status(access, "good") == code
    reviews.error = None
    assert await status(access, "good") == 200


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"status": 1}', b'{"status": {"authenticated": "true"}}'])
async def test_an_answer_of_any_shape_lets_nobody_in(reviews: Reviews, clock: ManualClock, answer: bytes) -> None:
    reviews.answer = answer
    assert await status(AccessReview(reviews, clock), "good") in (401, 503)


# Over TLS ------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(reviews: Reviews | None, **settings: Any) -> AsyncIterator[Serving]:
    metrics = Metrics(process=False)
    made = Serving(
        ServingSettings(**{"metrics_port": 0, "health_port": 0, "metrics_secure": True, **settings}),
        health=Health(),
        metrics=metrics,
        connectivity=Connectivity(""),
        offload=InlineOffload(),
        debug={},
        reviews=AccessReview(reviews, ManualClock()) if reviews is not None else None,
    )
    async with made:
        yield made


async def scrape(port: int, token: str = "", trust: ssl.SSLContext | bool = False) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://localhost:{port}/metrics", headers=headers, ssl=trust) as answer,
    ):
        return answer.status, await answer.text()


@pytest.fixture
def certificates(tmp_path: Path) -> tuple[Path, trustme.CA]:
    """A directory as a Secret is mounted, and the authority that signed what is in it."""
    authority = trustme.CA()
    issue(authority, tmp_path)
    return tmp_path, authority


def issue(authority: trustme.CA, directory: Path) -> None:
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(directory / "tls.crt")
    certificate.private_key_pem.write_to_path(directory / "tls.key")


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_metrics_need_a_token_that_may_read_them(reviews: Reviews) -> None:
    async with serving(reviews) as made:
        assert (await scrape(made.metrics_port))[0] == 401
        assert (await scrape(made.metrics_port, "poor"))[0] == 403
        code, text = await scrape(made.metrics_port, "good")
        assert code == 200
        assert "# HELP" in text or text == ""


async def test_a_certificate_from_files_is_served_and_read_again_when_it_changes(
    reviews: Reviews, certificates: tuple[Path, trustme.CA]
) -> None:
    directory, authority = certificates
    async with serving(reviews, metrics_cert_dir=str(directory)) as made:
        assert (await scrape(made.metrics_port, "good", trusting(authority)))[0] == 200
        other = trustme.CA()
        issue(other, directory)
        os.utime(directory / "tls.crt", ns=(1, 1))
        await scrape(made.metrics_port, "good", trusting(authority))
        assert (await scrape(made.metrics_port, "good", trusting(other)))[0] == 200
        (directory / "tls.key").write_text("no key")
        await scrape(made.metrics_port, "good", trusting(other))
        assert (await scrape(made.metrics_port, "good", trusting(other)))[0] == 200, "the last good one stays"


async def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--metrics-cert-dir: .*tls\.crt and tls\.key cannot be used: No such file"):
        async with serving(None, metrics_cert_dir=str(tmp_path)):
            pass


async def test_a_client_that_does_not_trust_the_certificate_leaves_the_server_as_it_was(
    reviews: Reviews, certificates: tuple[Path, trustme.CA]
) -> None:
    directory, authority = certificates
    async with asyncio.timeout(10), serving(reviews, metrics_cert_dir=str(directory)) as made:
        with pytest.raises(aiohttp.ClientError):
            await scrape(made.metrics_port, "good", trusting(trustme.CA()))
        assert (await scrape(made.metrics_port, "good", trusting(authority)))[0] == 200


async def test_without_tls_nothing_is_answered(reviews: Reviews) -> None:
    async with serving(reviews) as made, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://localhost:{made.metrics_port}/metrics")


async def test_probes_stay_as_they_are(reviews: Reviews) -> None:
    async with (
        serving(reviews) as made,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{made.health_port}/healthz") as answer,
    ):
        assert answer.status == 200


async def test_handshakes_that_never_end_keep_nobody_out(reviews: Reviews, monkeypatch: pytest.MonkeyPatch) -> None:
    http_server.raise_descriptor_limit()
    async with serving(reviews) as made:
        peers = [await asyncio.open_connection("127.0.0.1", made.metrics_port) for _ in range(400)]
        for _, writer in peers[::2]:
            writer.write(b"\x16\x03\x01")
        assert (await scrape(made.metrics_port, "good"))[0] == 200
        ended = [reader.at_eof() or reader.exception() is not None for reader, _ in peers]
        assert 0 < ended.count(False) <= http_server.MAX_CONNECTIONS
        for _, writer in peers:
            writer.close()


async def test_a_handshake_that_never_ends_is_dropped_at_its_limit(
    reviews: Reviews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.3)
    async with serving(reviews) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.metrics_port)
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
