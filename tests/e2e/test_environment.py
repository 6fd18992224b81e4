"""The environment of the other tests in this directory: its processes are the real ones and listen on loopback only."""

from __future__ import annotations

import pytest

from controlplane import ApiError
from support.environment import Environment
from support.live_scenario import LiveScenario
from support.processes import LOOPBACK, listening


def test_cluster_apis_own_manager_listens_on_loopback_only(environment: Environment) -> None:
    assert set(listening([environment.plane.pids["cluster-api-core"]])) == {LOOPBACK}


def test_cluster_apis_webhooks_validate_writes(environment: Environment) -> None:
    namespace = environment.namespace("judged", cluster=None)
    body = {
        "apiVersion": environment.machines[0],
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": namespace},
        "spec": {
            "clusterName": "prod",
            "bootstrap": {},
            "infrastructureRef": {"apiGroup": "a.example", "kind": "A", "name": "m"},
        },
    }
    if environment.core_version == "v1beta1":
        body["spec"] |= {"infrastructureRef": {"apiVersion": "a.example/v1", "kind": "A", "name": "m"}}  # type: ignore[operator]
    with pytest.raises(ApiError, match=r"bootstrap") as refused:
        environment.api.create(body)
    assert refused.value.status in {400, 403, 422}
    assert "admission webhook" in str(refused.value) or "spec.bootstrap" in str(refused.value)


def test_cluster_apis_conversion_webhook_serves_both_versions_of_a_machine(environment: Environment) -> None:
    if environment.core_version == "v1beta1":
        pytest.skip("this release of Cluster API serves one version only")
    scenario = LiveScenario(environment, environment.namespace("converted"))
    newer = scenario.run(nodeDrainTimeout="90s")
    older = environment.api.get("cluster.x-k8s.io/v1beta1", "Machine", scenario.name, scenario.namespace)
    assert newer["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
    assert older["spec"]["nodeDrainTimeout"] == "1m30s"
    assert older["spec"]["infrastructureRef"]["apiVersion"] == scenario.infrastructure[0]
