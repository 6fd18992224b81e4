"""B2.7 while Cluster API's feature gate for taints is off, as it is by default: nothing runs without them."""

from __future__ import annotations

import pytest

from controlplane import select
from support.clusterapi import World
from support.live import LiveScene
from support.machines import taint
from support.manager import MANAGER_USER

KEY = "example.com/spot"


@pytest.mark.contract("B2.7")
def test_without_the_feature_gate_nothing_is_made(world: World) -> None:
    scene = LiveScene(world, world.namespace("gate-off"))
    mark = world.plane.audit_log.mark()
    scene.create(nodeTaints=[taint(KEY, value="true")])
    status = scene.wait_phase("Error", "NodeTaintsUnsupported")
    assert "MachineTaintPropagation" in status["message"], "the remedy"
    assert scene.condition("Stalled")["status"] == "True"
    assert scene.present() == []
    tries = select(world.plane.audit(since=mark), user=MANAGER_USER, verbs="create", namespace=scene.namespace)
    tries = [event for event in tries if event["objectRef"]["resource"] != "events"]
    assert tries
    assert all("dryRun=All" in event["requestURI"] for event in tries), "only asked, and nothing else created before"
    scene.edit(nodeTaints=[])
    scene.wait_ready()
