"""The world that the other tests here stand on: what runs in it is real, and keeps to this machine."""

from __future__ import annotations

import pytest

from controlplane import ApiError
from support.clusterapi import World
from support.live import LiveScene
from support.processes import LOOPBACK, listening


def test_cluster_apis_own_manager_listens_on_loopback_only(world: World) -> None:
    assert set(listening([world.plane.pids["cluster-api-core"]])) == {LOOPBACK}


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
