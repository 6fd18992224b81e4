"""B2.7 while Cluster API's feature gate for taints is off, as it is by default: nothing runs without them."""

from __future__ import annotations

import pytest

from controlplane import select
from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario
from support.machines import taint

KEY = "example.com/spot"


@pytest.mark.contract("B2.7")
def test_without_the_feature_gate_nothing_is_created(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("gate-off"))
    mark = environment.plane.audit_log.mark()
    scenario.create(nodeTaints=[taint(KEY, value="true")])
    status = scenario.wait_phase("Error", "NodeTaintsUnsupported")
    assert "MachineTaintPropagation" in status["message"], "the remedy"
    assert scenario.condition("Stalled")["status"] == "True"
    assert scenario.present() == []
    tries = select(environment.plane.audit(since=mark), user=MANAGER_USER, verbs="create", namespace=scenario.namespace)
    tries = [event for event in tries if event["objectRef"]["resource"] != "events"]
    assert tries
    assert all("dryRun=All" in event["requestURI"] for event in tries), "only asked, and nothing else created before"
    scenario.edit(nodeTaints=[])
    scenario.wait_ready()
