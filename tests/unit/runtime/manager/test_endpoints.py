"""Probes, metrics and debug views over real HTTP on the loopback interface."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from fivespot.runtime.clock import InlineOffload
from fivespot.runtime.errors import ConfigError
from fivespot.runtime.manager import Connectivity, Health, Serving, ServingSettings
from fivespot.runtime.manager.endpoints import is_loopback
from fivespot.runtime.telemetry import Metrics


class Bench:
    def __init__(self, **settings: Any) -> None:
        self.health = Health()
        self.metrics = Metrics(process=False)
        self.connectivity = Connectivity("https://api")
        self.views: dict[str, Any] = {"queues": lambda: {"machines": [1]}, "broken": self._break}
        self.serving = Serving(
            ServingSettings(**{"metrics_port": 0, "health_port": 0, "debug": True, **settings}),
            health=self.health,
            metrics=self.metrics,
            connectivity=self.connectivity,
            offload=InlineOffload(),
            debug=self.views,
        )

    def _break(self) -> None:
        raise RuntimeError("bug in a view")

    async def get(self, path: str, *, metrics: bool = False, host: str = "127.0.0.1") -> tuple[int, str, str]:
        port = self.serving.metrics_port if metrics else self.serving.health_port
        async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}") as answer:
            return answer.status, await answer.text(), answer.headers["Content-Type"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    async with bench.serving:
        yield bench


async def test_liveness_says_nothing_about_the_api_server(bench: Bench) -> None:
    bench.connectivity.observed("get", 0)
    bench.health.add_readiness("api server", bench.connectivity.not_ready_reason)
    for path in ("/healthz", "/health"):
        assert await bench.get(path) == (200, "ok\n", "text/plain; charset=utf-8")
    assert (await bench.get("/readyz"))[0] == 503


async def test_a_dead_owner_task_turns_liveness_red(bench: Bench) -> None:
    bench.health.add_liveness("owners", lambda: "ended: cache")
    assert await bench.get("/healthz") == (503, "[-]owners: ended: cache\nnot ok\n", "text/plain; charset=utf-8")


async def test_readiness_says_why_not_and_everything_when_asked(bench: Bench) -> None:
    bench.health.add_readiness("a", lambda: "")
    bench.health.add_readiness("b", lambda: "machines is not synced")
    assert (await bench.get("/readyz"))[1] == "[-]b: machines is not synced\nnot ok\n"
    assert (await bench.get("/ready?verbose"))[1] == "[+]a ok\n[-]b: machines is not synced\nnot ok\n"
    bench.health.add_readiness("b", lambda: "")
    assert (await bench.get("/readyz"))[:2] == (200, "ok\n")
    bench.health.stopping = True
    assert (await bench.get("/readyz"))[0] == 503


async def test_status_is_what_5_spot_answers(bench: Bench) -> None:
    bench.connectivity.observed("get", 403)
    status, text, kind = await bench.get("/health/status")
    assert (status, kind) == (200, "application/json")
    assert text.split() == ["{", '"healthy":', "true,", '"ready":', "true,", '"k8s_connected":', "true", "}"]
    bench.connectivity.observed("get", 0)
    assert '"k8s_connected": false' in (await bench.get("/health/status"))[1]


async def test_the_api_server_is_a_readiness_matter_until_its_first_answer_only() -> None:
    connectivity = Connectivity("https://api")
    assert connectivity.not_ready_reason() == "no answer from the API server at https://api yet"
    connectivity.observed("list", 500)
    connectivity.observed("list", 0)
    assert connectivity.not_ready_reason() == ""
    assert not connectivity.connected


async def test_metrics_are_served_in_the_text_format(bench: Bench) -> None:
    bench.metrics.counter("fivespot_errors_total", "Errors.").child().inc()
    status, text, kind = await bench.get("/metrics", metrics=True)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert "fivespot_errors_total 1.0\n" in text


async def test_probes_and_debug_views_are_not_on_the_metrics_port(bench: Bench) -> None:
    assert (await bench.get("/healthz", metrics=True))[0] == 404
    assert (await bench.get("/debug/queues", metrics=True))[0] == 404
    assert (await bench.get("/metrics"))[0] == 404


async def test_debug_views_answer_and_name_each_other(bench: Bench) -> None:
    status, text, _ = await bench.get("/debug/queues")
    assert status == 200
    assert '"machines": [' in text
    assert await bench.get("/debug/other") == (
        404,
        "no such view; there are: broken, queues\n",
        "text/plain; charset=utf-8",
    )
    assert (await bench.get("/debug/broken"))[0] == 500
    assert (await bench.get("/healthz"))[0] == 200


@pytest.mark.parametrize(
    ("peer", "answers"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("fe80::1%eth0", False),
        ("", False),
    ],
)
def test_debug_views_answer_peers_on_the_loopback_interface_only(peer: str, answers: bool) -> None:
    assert is_loopback(peer) is answers


async def test_debug_views_do_not_exist_unless_they_are_asked_for() -> None:
    bench = Bench(debug=False)
    async with bench.serving:
        status, text, _ = await bench.get("/debug/queues")
    assert (status, text) == (404, "not found; there are: /healthz, /readyz, /health/status\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_all_addresses_are_those_of_both_families(host: str) -> None:
    if host == "[::1]" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    bench = Bench(bind_address="")
    async with bench.serving:
        assert (await bench.get("/healthz", host=host))[0] == 200
        assert (await bench.get("/metrics", host=host, metrics=True))[0] == 200
        assert (await bench.get("/debug/queues", host=host))[0] == 200


async def test_a_host_without_ipv6_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    bench = Bench(bind_address="")
    async with bench.serving:
        assert (await bench.get("/healthz"))[0] == 200


async def test_a_port_that_is_taken_on_all_addresses_is_named() -> None:
    async with Bench(bind_address="").serving as taken:
        with pytest.raises(ConfigError, match=rf"\*:{taken.health_port} for health: .*in use.*--health-port"):
            async with Bench(bind_address="", health_port=taken.health_port).serving:
                pass


async def test_a_taken_port_is_named_with_its_flag() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"127.0.0.1:{port} for health: .*in use.*--health-port"):
            async with Bench(health_port=port).serving:
                pass


async def test_an_address_that_is_not_ours_is_named_with_its_flag() -> None:
    with pytest.raises(ConfigError, match=r"203\.0\.113\.1:0 for metrics: .*--bind-address"):
        async with Bench(bind_address="203.0.113.1").serving:
            pass
