"""The world that the other tests here stand on: what runs in it is real, and keeps to this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane import ApiError
from support.clusterapi import World
from support.live import LiveScene


def listening_addresses(pids: list[int]) -> set[str]:
    """The local addresses that processes listen on, as the kernel writes them (IPv4 in hexadecimal, reversed)."""
    inodes = {str(link.readlink()) for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    return {
        fields[1].rpartition(":")[0]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in (line.split() for line in Path(table).read_text().splitlines()[1:])
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes
    }


def test_cluster_apis_own_manager_listens_on_loopback_only(world: World) -> None:
    assert listening_addresses([world.plane.pids["cluster-api-core"]]) == {"0100007F"}


def test_its_webhooks_judge_what_is_written(world: World) -> None:
    namespace = world.namespace("judged", cluster=None)
    body = {
        "apiVersion": world.machines[0],
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {
            "clusterName": "prod",
            "bootstrap": {},
            "infrastructureRef": {"apiGroup": "a.example", "kind": "A", "name": "m"},
        },
    }
    if world.core_version == "v1beta1":
        body["spec"] |= {"infrastructureRef": {"apiVersion": "a.example/v1", "kind": "A", "name": "m"}}  # type: ignore[operator]
    with pytest.raises(ApiError, match=r"bootstrap") as refused:
        world.api.create(body)
    assert refused.value.status in {400, 403, 422}
    assert "admission webhook" in str(refused.value) or "spec.bootstrap" in str(refused.value)


def test_its_conversion_serves_both_versions_of_one_machine(world: World) -> None:
    if world.core_version == "v1beta1":
        pytest.skip("this release of Cluster API serves one version only")
    scene = LiveScene(world, world.namespace("converted"))
    newer = scene.run(nodeDrainTimeout="90s")
    older = world.api.get("cluster.x-k8s.io/v1beta1", "Machine", scene.name, scene.namespace)
    assert newer["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert older["spec"]["nodeDrainTimeout"] == "1m30s"
    assert older["spec"]["infrastructureRef"]["apiVersion"] == scene.infrastructure[0]
