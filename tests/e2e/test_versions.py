"""B2.1: each version of Machines that Cluster API serves can be chosen, and one serves for everything."""

from __future__ import annotations

import pytest

from controlplane import select
from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario


@pytest.mark.contract("B2.1")
def test_the_older_api_version_works_throughout_with_its_own_form_of_references(environment: Environment) -> None:
    """Cluster API converts what was sent: a reference in the form of the other version would be refused or lost.

    The newer version, which the manager takes by itself, serves in all other tests.
    """
    version = "v1beta1"
    namespace = environment.namespace("version")
    scenario = LiveScenario(environment, namespace)
    with environment.other_manager(environment={"CAPI_MACHINE_API_VERSION": version}):
        mark = environment.plane.audit_log.mark()
        machine = scenario.run(nodeDrainTimeout="90s")
        assert scenario.status["machineRef"]["apiVersion"] == f"cluster.x-k8s.io/{version}"
        assert scenario.condition("MachineReady")["status"] == "True"
        scenario.rescript(node={"ready": False})
        # Ready in today's sense lives elsewhere at v1beta1.
        scenario.wait_condition("MachineReady", "False")
        scenario.active(False)
        scenario.wait_phase("Inactive")
        scenario.wait_gone()
        events = environment.plane.audit(since=mark)
    sent = select(events, user=MANAGER_USER, resource="machines", namespace=namespace)
    assert {event["objectRef"]["apiVersion"] for event in sent} == {version}
    # A read of the Machine is sent only where a cache is behind.
    assert {event["verb"] for event in sent} - {"get"} == {"create", "delete"}
    if environment.core_version == "v1beta2":
        group = scenario.family.machine.group
        reference = {"apiGroup": group, "kind": scenario.family.machine.kind, "name": scenario.name}
        assert machine["spec"]["infrastructureRef"] == reference
        assert machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 90
