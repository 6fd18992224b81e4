"""Removing entries of ``spec.overrides`` from a schedule that others change at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.cli.crds.definitions import definitions
from fivespot.cli.override.entries import remove_entries
from fivespot.cli.override.schedule import LiveSchedule, read_schedule
from fivespot.runtime import Client, ConfigError, Key, Resource, merge_patch
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.faults import Rule

SWITCHES = Resource(PROVIDER_GROUP, PROVIDER_VERSION, "manualschedules", "ManualSchedule")
KEY = Key("default", "web")


def body(*names: str) -> dict[str, object]:
    entries = [{"name": name, "active": True, "until": "forever"} for name in names]
    return {
        "apiVersion": SWITCHES.api_version,
        "kind": SWITCHES.kind,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {"enabled": False, "overrides": entries},
    }


@dataclass
class BeforePatch:
    """Something that another client does before a patch arrives, a number of times."""

    act: Callable[[], Awaitable[object]]
    times: int
    seen: int = 0

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        self.seen += 1
        if self.seen <= self.times:
            await self.act()
        return await handler(request)


async def with_overrides(cluster: EmbeddedCluster, *names: str) -> LiveSchedule:
    await cluster.install(*(one for one in definitions() if one["spec"]["names"]["kind"] == SWITCHES.kind))
    await cluster.client.create(SWITCHES, body(*names))
    return await read_schedule(cluster.client, SWITCHES, KEY)


def interrupted(
    cluster: EmbeddedCluster, act: Callable[[], Awaitable[object]], times: int = 1
) -> tuple[Client, BeforePatch]:
    fault = BeforePatch(act, times)
    cluster.faults.add(Rule(fault, verb="patch", resource=SWITCHES.plural))
    return cluster.connect().client, fault


async def test_entries_are_removed_though_the_provider_reports_at_the_same_time(
    fivespot_cluster: EmbeddedCluster,
) -> None:
    found = await with_overrides(fivespot_cluster, "release", "by-hand")

    async def report() -> None:
        await fivespot_cluster.client.patch(
            SWITCHES, KEY, merge_patch({"status": {"active": True}}), subresource="status"
        )

    client, patches = interrupted(fivespot_cluster, report)
    left = await remove_entries(client, found, ["by-hand"])
    assert [entry["name"] for entry in left.entries] == ["release"]
    assert patches.seen == 2


async def test_the_entry_is_found_again_where_the_list_has_changed(fivespot_cluster: EmbeddedCluster) -> None:
    found = await with_overrides(fivespot_cluster, "release", "by-hand")
    shorter = body("by-hand", "other")["spec"]

    async def edit() -> None:
        await fivespot_cluster.client.patch(SWITCHES, KEY, merge_patch({"spec": shorter}))

    client, _ = interrupted(fivespot_cluster, edit)
    left = await remove_entries(client, found, ["by-hand"])
    assert [entry["name"] for entry in left.entries] == ["other"]


async def test_an_entry_that_somebody_else_removed_meanwhile_is_no_error(fivespot_cluster: EmbeddedCluster) -> None:
    found = await with_overrides(fivespot_cluster, "by-hand")

    async def clear() -> None:
        await fivespot_cluster.client.patch(SWITCHES, KEY, merge_patch({"spec": {"overrides": None}}))

    client, patches = interrupted(fivespot_cluster, clear)
    left = await remove_entries(client, found, ["by-hand"])
    assert left.entries == []
    assert patches.seen == 1


async def test_a_schedule_that_is_created_again_keeps_its_entries(fivespot_cluster: EmbeddedCluster) -> None:
    found = await with_overrides(fivespot_cluster, "by-hand")

    async def recreate() -> None:
        await fivespot_cluster.client.delete(SWITCHES, KEY, uid=found.uid)
        await fivespot_cluster.client.create(SWITCHES, body("by-hand"))

    client, _ = interrupted(fivespot_cluster, recreate)
    with pytest.raises(ConfigError, match="ManualSchedule/web was deleted and created again meanwhile"):
        await remove_entries(client, found, ["by-hand"])
    assert (await read_schedule(fivespot_cluster.client, SWITCHES, KEY)).entries


async def test_a_schedule_that_changes_all_the_time_is_given_up(fivespot_cluster: EmbeddedCluster) -> None:
    found = await with_overrides(fivespot_cluster, "by-hand")
    count = 0

    async def touch() -> None:
        nonlocal count
        count += 1
        change = merge_patch({"metadata": {"labels": {"count": str(count)}}})
        await fivespot_cluster.client.patch(SWITCHES, KEY, change)

    client, patches = interrupted(fivespot_cluster, touch, times=100)
    with pytest.raises(ConfigError, match="changes all the time, nothing was removed"):
        await remove_entries(client, found, ["by-hand"])
    assert patches.seen == 5
