"""EmbeddedCluster in virtual time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fivespot.controllers import scheduledmachine
from fivespot.providers.registry import shipped_controller
from fivespot.runtime import Discovery, GroupKind, Key, NotFoundError, Object, Resource
from fivespot.runtime.client import WATCH_LIMITS, WatchEnd, WatchEnded
from fivespot.testing.cluster import START, EmbeddedCluster
from fivespot.testing.faults import HalfOpen, Rule
from fivespot.testing.virtual_time import StuckError, run_virtual

CRDS = Path(__file__).resolve().parents[4] / "manifests" / "crds"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SCHEDULES = Resource("spotschedules.5spot.finos.org", "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")


def definitions() -> list[dict[str, Any]]:
    return [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]


async def is_active(cluster: EmbeddedCluster, name: str) -> Any:
    found = (await cluster.client.get(SCHEDULES, Key("default", name))).decode()
    return found.get("status", {}).get("active")


async def test_what_is_written_is_there_and_the_clock_stands_still_meanwhile(fivespot_cluster: EmbeddedCluster) -> None:
    client = fivespot_cluster.client
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    await client.create(CONFIG_MAPS, body)
    found = await client.get(CONFIG_MAPS, Key("default", "a"))
    assert found.head.name == "a"
    assert fivespot_cluster.clock.now() == START
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, Key("default", "b"))


async def test_a_day_of_a_schedule_passes_and_flips_at_the_minute(fivespot_cluster: EmbeddedCluster) -> None:
    cluster = fivespot_cluster
    await cluster.install(*definitions())
    async with cluster.manager(shipped_controller("TimeBasedSpotSchedule")):
        spec = {"windows": [{"days": ["mon"], "start": "06:30", "end": "18:00"}]}
        metadata = {"name": "day", "namespace": "default"}
        body = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": metadata, "spec": spec}
        await cluster.client.create(SCHEDULES, body)
        await asyncio.sleep((START + timedelta(hours=6, minutes=29, seconds=59) - cluster.clock.now()).total_seconds())
        assert await is_active(cluster, "day") is False
        await asyncio.sleep(1.1)
        assert await is_active(cluster, "day") is True
        await asyncio.sleep(timedelta(hours=12).total_seconds())
        assert await is_active(cluster, "day") is False


async def test_a_manager_becomes_ready_and_can_die_and_be_followed_by_another(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    cluster = fivespot_cluster
    await cluster.install(*definitions())
    async with cluster.manager(scheduledmachine.build, shipped_controller("TimeBasedSpotSchedule")) as running:
        await cluster.until(lambda: len(running.manager.controllers) == 2, what="it has begun")
        await cluster.until(lambda: all(c.ready for c in running.manager.controllers), what="it is ready")
        await running.kill()
    async with cluster.manager(shipped_controller("TimeBasedSpotSchedule"), name="next") as running:
        await cluster.until(lambda: running.manager.controllers[0].ready, what="the next one is ready")


async def test_what_does_not_come_true_is_said_with_what_was_seen_last(fivespot_cluster: EmbeddedCluster) -> None:
    with pytest.raises(AssertionError, match=r"not within 5 s: pigs fly; last: 'AssertionError: no wings'"):
        await fivespot_cluster.until(_no_wings, within=5, what="pigs fly")
    assert fivespot_cluster.clock.now() - START >= timedelta(seconds=5)


@pytest.mark.parametrize("resource", [CONFIG_MAPS, Resource("no.example", "v1", "things", "Thing")])
async def test_an_object_or_kind_that_does_not_exist_is_waited_for(
    fivespot_cluster: EmbeddedCluster, resource: Resource
) -> None:
    async def found() -> Object:
        return await fivespot_cluster.client.get(resource, Key("default", "late"))

    with pytest.raises(AssertionError, match=r"last: '(NotFoundError|NotServedError): get "):
        await fivespot_cluster.until(found, within=1)
    await fivespot_cluster.client.create(CONFIG_MAPS, {"metadata": {"name": "late", "namespace": "default"}})
    if resource is CONFIG_MAPS:
        assert await fivespot_cluster.until(found, within=1)


async def test_a_kind_that_discovery_does_not_know_is_waited_for(fivespot_cluster: EmbeddedCluster) -> None:
    discovery = Discovery(fivespot_cluster.client)
    with pytest.raises(AssertionError, match="KindNotServedError"):
        await fivespot_cluster.until(lambda: discovery.resource(GroupKind("no.example", "Thing")), within=1)


def _no_wings() -> bool:
    raise AssertionError("no wings")


def test_a_program_in_which_everything_waits_ends_with_an_error_instead_of_hanging() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StuckError):
        run_virtual(wait_for_ever())


def test_the_same_seed_gives_the_same_cluster_and_another_one_another() -> None:
    async def uid(seed: int) -> str:
        async with EmbeddedCluster(seed=seed) as cluster:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}
            made = await cluster.client.create(CONFIG_MAPS, body, namespace="default")
            return f"{made.head.name} {made.head.uid}"

    first, again, other = (run_virtual(uid(seed)) for seed in (1, 1, 2))
    assert first == again != other


async def test_a_watch_ends_when_nothing_has_come_for_its_idle_time(fivespot_cluster: EmbeddedCluster) -> None:
    """The time-out counts from the last block."""
    cluster = fivespot_cluster
    cluster.faults.add(Rule(HalfOpen(after=30.0), verb="watch"))
    client = cluster.connect().client
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": "default"}}
    idle = WATCH_LIMITS.read
    assert idle > 30
    async with await client.watch(CONFIG_MAPS, "default", version="2", server_timeout=3600.0) as watch:
        await asyncio.sleep(20.0)
        await cluster.client.create(CONFIG_MAPS, body)
        event = await watch.next()
        assert event.type == "ADDED"
        since = cluster.elapsed
        with pytest.raises(WatchEnded) as ended:
            await watch.next()
        assert ended.value.reason is WatchEnd.IDLE
        assert cluster.elapsed - since == pytest.approx(idle, abs=0.01)
        with pytest.raises(WatchEnded):
            await watch.next()
