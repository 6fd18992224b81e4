"""The parts of the Cluster API runner that need neither a compiler nor a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from controlplane import BuildFailed, cluster_api_version
from controlplane.clusterapi import Manifests, add_webhook_host
from controlplane.core_manager import FAST_GATES, CoreManager
from controlplane.credentials import Credentials
from controlplane.versions import DEFAULT_CLUSTER_API

MAIN = """import (
\t"os"
)
\t\tWebhookServer: webhook.NewServer(
\t\t\twebhook.Options{
\t\t\t\tPort: webhookPort,
"""


class Server:
    """Notes what is created and deleted."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []

    def create(self, body: dict[str, Any]) -> None:
        self.created.append(body)


def manager(
    folder: Path, version: str = "1.14.2", gates: Mapping[str, bool] = FAST_GATES, server: Server | None = None
) -> CoreManager:
    service = {"name": "webhook-service", "namespace": "system", "path": "/mutate"}
    webhook = {"metadata": {"name": "mutating"}, "kind": "A", "webhooks": [{"clientConfig": {"service": service}}]}
    return CoreManager(
        version,
        Manifests([{"metadata": {"name": "machines"}, "spec": {}}], [webhook], [{"verbs": ["get"]}]),
        binary=Path("core"),
        api=cast("Any", server or Server()),
        credentials=Credentials(folder / "pki"),
        kubeconfig=Path("kubeconfig"),
        ports=[1, 2, 3],
        folder=folder,
        watchdog=cast("Any", None),
        gates=gates,
    )


def gates_of(found: CoreManager) -> list[str]:
    return [argument for argument in found.child.command if argument.startswith("--feature-gates")]


@pytest.mark.parametrize(("given", "expected"), [("v1.10.7", "1.10.7"), ("", DEFAULT_CLUSTER_API)])
def test_the_release_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, given: str, expected: str) -> None:
    monkeypatch.setenv("FIVESPOT_CLUSTER_API_VERSION", given)
    assert cluster_api_version() == expected


def test_what_is_no_release_is_refused_with_the_variables_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIVESPOT_CLUSTER_API_VERSION", "main")
    with pytest.raises(ValueError, match="FIVESPOT_CLUSTER_API_VERSION='main'"):
        cluster_api_version()


def test_one_line_is_added_to_the_program_and_nothing_else_is_changed() -> None:
    changed = add_webhook_host(MAIN)
    [added] = set(changed.splitlines()) - set(MAIN.splitlines())
    assert added == 'Host: os.Getenv("CAPI_WEBHOOK_HOST"),'
    assert changed.replace(f"{added}\n", "") == MAIN


@pytest.mark.parametrize("program", ["", MAIN + MAIN, MAIN.replace('"os"', '"io"')])
def test_a_program_that_is_not_as_expected_is_not_built(program: str) -> None:
    with pytest.raises(BuildFailed, match="not known here"):
        add_webhook_host(program)


def test_everything_that_calls_it_calls_loopback(tmp_path: Path) -> None:
    server = Server()
    found = manager(tmp_path, server=server)
    [definition] = found.definitions
    client = definition["spec"]["conversion"]["webhook"]["clientConfig"]
    assert client["url"] == "https://127.0.0.1:1/convert"
    found.install_webhooks()
    found.install_rights()
    webhooks, role, binding = server.created
    assert webhooks["webhooks"][0]["clientConfig"]["url"] == "https://127.0.0.1:1/mutate"
    assert webhooks["webhooks"][0]["clientConfig"]["caBundle"] == client["caBundle"]
    assert role["rules"] == [{"verbs": ["get"]}]
    assert binding["subjects"][0]["name"] == "cluster-api-core"
    assert "--health-addr=127.0.0.1:2" in found.child.command
    assert "--diagnostics-address=127.0.0.1:3" in found.child.command


def test_a_release_is_given_the_gates_and_flags_that_it_knows(tmp_path: Path) -> None:
    gates = {**FAST_GATES, "MachineTaintPropagation": True}
    assert gates_of(manager(tmp_path / "a", gates=gates)) == [
        "--feature-gates=ReconcilerRateLimiting=false,MachineTaintPropagation=true"
    ]
    older = manager(tmp_path / "b", "1.10.7", gates)
    assert gates_of(older) == []
    assert not any("migration" in argument for argument in older.child.command)
    assert gates_of(manager(tmp_path / "c", gates={})) == []
