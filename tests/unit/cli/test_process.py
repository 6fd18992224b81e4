"""Assembly of a manager's process, and its messages when the server is not usable."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from fivespot.cli.options import ManagerOptions
from fivespot.cli.process import assemble
from fivespot.controllers import scheduledmachine
from fivespot.controllers.scheduledmachine import MachineSettings
from fivespot.controllers.scheduledmachine.activation_limiter import ActivationLimits
from fivespot.runtime import ConfigError, Connection, Manager
from fivespot.runtime.client import HttpTransport, Request, Response
from fivespot.runtime.clock import InlineOffload, LoopClock
from fivespot.runtime.manager.entrypoint import loop_factory

OPTIONS = ManagerOptions(
    controllers=("scheduledmachine", "timebasedspotschedule"), namespaces=None, kubeconfig=None, context=None,
    bind_address=None, metrics_port=0, health_port=0, log_format="json", verbose=0, leader_election=True,
    lease_name="5spot-leader", lease_namespace="5spot-system", lease_duration=15, lease_renew_deadline=10,
    lease_retry_period=2, dry_run=False, force_finalizer_on_timeout=True, max_deletions_per_minute=6,
    capi_version="v1beta1", instance_id=4, pod_name="pod-1", event_loop="asyncio",
)  # fmt: skip


class ScriptedTransport:
    def __init__(self, answer: Response) -> None:
        self.answer = answer
        self.sent: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.sent.append(request)
        return self.answer


def connection(transport: ScriptedTransport, *, in_cluster: bool = False) -> Connection:
    return Connection(
        cast("Any", None), cast("HttpTransport", transport), "default", in_cluster, "https://api:6443", "kubeconfig k"
    )


def build(*, in_cluster: bool = False, **changes: Any) -> tuple[Manager, ScriptedTransport]:
    transport = ScriptedTransport(Response(200, {}, b"{}"))
    manager = assemble(
        dataclasses.replace(OPTIONS, **changes),
        connection(transport, in_cluster=in_cluster),
        clock=LoopClock(datetime(2026, 3, 1, tzinfo=UTC)),
        rng=random.Random(1),
        offload=InlineOffload(),
    )
    return manager, transport


async def test_what_was_asked_for_reaches_the_controllers() -> None:
    manager, _ = build(namespaces=("a", "b"))
    settings = manager.context.settings
    assert settings.namespaces == ("a", "b")
    assert settings.instance == "pod-1"


async def test_the_machine_controller_gets_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[MachineSettings] = []

    def build_instead(context: Any, *, settings: MachineSettings, holds: Any) -> Any:
        given.append(settings)

    monkeypatch.setattr(scheduledmachine, "build", build_instead)
    manager, _ = build(
        shortest_grace=300,
        max_activations_per_hour=1,
        max_namespace_activations_per_hour=2,
        max_machines_per_namespace=3,
    )
    for factory in manager._factories:
        if isinstance(factory, partial) and factory.func is build_instead:
            factory(manager.context)
    wanted = MachineSettings(
        capi_version="v1beta1",
        force_finalizer_on_timeout=True,
        max_deletions_per_minute=6,
        shortest_grace=timedelta(minutes=5),
        activations=ActivationLimits(per_machine=1, per_namespace=2, machines=3),
    )
    assert given == [wanted]


async def test_the_lease_names_the_pod_and_its_reconcilers() -> None:
    election = build()[0].settings.election
    assert election is not None
    assert (election.identity, election.namespace, election.name) == ("pod-1", "5spot-system", "5spot-leader")
    assert election.members == ("scheduledmachine", "timebasedspotschedule")


async def test_outside_a_pod_the_identity_is_unlike_any_other() -> None:
    first, second = build(pod_name="")[0].settings.election, build()[0].settings.election
    assert first is not None
    assert second is not None
    assert "_" in first.identity


async def test_without_leader_election_no_lease_is_asked_for() -> None:
    assert build(leader_election=False)[0].settings.election is None


async def test_in_a_cluster_there_is_an_election_unless_it_is_switched_off() -> None:
    assert build(leader_election=None, in_cluster=True)[0].settings.election is not None
    assert build(leader_election=None)[0].settings.election is None


@pytest.mark.parametrize(("in_cluster", "address"), [(True, ""), (False, "127.0.0.1")])
async def test_only_in_a_cluster_do_others_reach_the_endpoints_by_default(in_cluster: bool, address: str) -> None:
    serving = build(in_cluster=in_cluster)[0].settings.serving
    assert serving is not None
    assert serving.bind_address == address
    given = build(in_cluster=in_cluster, bind_address="::1")[0].settings.serving
    assert given is not None
    assert given.bind_address == "::1"


async def test_debug_views_are_served_on_request_and_in_a_dry_run() -> None:
    def served(**changes: Any) -> bool:
        serving = build(**changes)[0].settings.serving
        assert serving is not None
        return serving.debug

    assert [served(), served(debug=True), served(dry_run=True)] == [False, True, True]


async def test_a_dry_run_can_write_nothing_not_even_a_lease() -> None:
    manager, transport = build(dry_run=True)
    assert manager.context.settings.dry_run
    assert manager.settings.election is None
    with pytest.raises(Exception, match="dry run"):
        await manager.context.client.raw("POST", "/apis/x", body=b"{}")
    assert not transport.sent
    await manager.context.client.raw("GET", "/version")
    assert [request.method for request in transport.sent] == ["GET"]


async def test_requests_are_counted_and_tell_that_the_server_answers() -> None:
    manager, _ = build()
    assert "api server" in manager.health.ready().problems
    await manager.context.client.raw("GET", "/version")
    assert "api server" not in manager.health.ready().problems
    text = manager.context.metrics.render().decode()
    assert 'rest_client_requests_total{code="200",method="GET"} 1.0' in text
    assert 'instance_id="4"' in text
    assert "fivespot_tzdata_info{" in text


async def test_lease_timings_that_do_not_fit_are_a_mistake_on_the_command_line() -> None:
    with pytest.raises(ConfigError, match=r"--lease-.*lease duration > renew deadline > retry period"):
        build(lease_duration=5)


def test_the_other_event_loop_is_asked_for_by_name_and_its_absence_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loop_factory("asyncio") is asyncio.new_event_loop

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("fivespot.runtime.manager.entrypoint.import_module", missing)
    with pytest.raises(ConfigError, match="uvloop is not installed"):
        loop_factory("uvloop")
    assert loop_factory("auto") is asyncio.new_event_loop
