"""B2.7 with the real feature gate of Cluster API: taints reach the node, or nothing runs without them."""

from __future__ import annotations

from collections.abc import Callable

from controlplane import FAST_GATES, select
from support.clusterapi import World
from support.live import LiveScene
from support.machines import taint
from support.manager import MANAGER_USER

KEY = "example.com/spot"


def test_b2_7_without_the_feature_gate_nothing_is_made(world: World) -> None:
    scene = LiveScene(world, world.namespace("gate-off"))
    mark = world.plane.audit_log.mark()
    scene.create(nodeTaints=[taint(KEY, value="true")])
    status = scene.wait_phase("Error", "NodeTaintsUnsupported")
    assert "MachineTaintPropagation" in status["message"], "the remedy"
    assert scene.condition("Stalled")["status"] == "True"
    assert scene.present() == []
    tries = select(world.plane.audit(since=mark), user=MANAGER_USER, verbs="create", namespace=scene.namespace)
    assert {e["requestURI"].partition("?")[2] for e in tries if e["objectRef"]["resource"] != "events"} == {
        "dryRun=All"
    }
    scene.edit(nodeTaints=[])
    scene.wait_ready()


def test_b2_7_with_the_feature_gate_the_node_carries_them(own_world: Callable[..., World]) -> None:
    world = own_world(feature_gates={**FAST_GATES, "MachineTaintPropagation": True})
    scene = LiveScene(world, world.namespace("gate-on"))
    scene.run(nodeTaints=[taint(KEY, value="true"), taint(KEY, "NoExecute")])

    def tainted() -> bool:
        node = scene.node()
        assert node is not None
        found = {(t["key"], t.get("value", ""), t["effect"]) for t in node["spec"].get("taints", [])}
        return {(KEY, "true", "NoSchedule"), (KEY, "", "NoExecute")} <= found

    scene.until(tainted, what="the Node carries the taints")
    # Somebody takes one off: Cluster API puts it back, since it is to be there always.
    scene.api.patch("v1", "Node", scene.node_name, None, {"spec": {"taints": []}})
    scene.until(tainted, what="the Node carries them again")
    scene.active(False)
    scene.wait_phase("Inactive")
    scene.wait_gone()
