"""B1 again, where Cluster API has a part in it: replaced, lost, kept in grace, disabled, made of another kind."""

from __future__ import annotations

from functools import partial

import pytest

from controlplane import ApiError
from fivespot.testing.clusterapi import SIMULATED_EARLIER
from support.clusterapi import World
from support.live import LiveScene, seconds_between

pytestmark = pytest.mark.together

BRAKE = 60.0
"""Seconds within which a replacement comes: it waits for ten."""


@pytest.mark.contract("B1.3", "B7.1")
def test_a_machine_that_somebody_deletes_is_drained_and_replaced_after_a_wait(world: World) -> None:
    scene = LiveScene(world, world.namespace("deleted"))
    before = scene.run(script={"delete": "Never"})
    node = scene.node_name
    scene.api.delete(*scene.machines, scene.name, scene.namespace)
    scene.wait_phase("ShuttingDown", "MachineDeleting")
    scene.wait_message(scene.family.machine.kind)
    deleted = scene.machine()["metadata"]["deletionTimestamp"]
    scene.rescript(delete="Succeed")
    machine = scene.wait_ready(BRAKE, after=before)
    assert seconds_between(deleted, machine["metadata"]["creationTimestamp"]) >= 9, "whole seconds hide one"
    assert scene.node(node) is None
    assert scene.status["replacements"]["count"] == 1
    assert scene.condition("SpotScheduleResolved")["status"] == "True"


@pytest.mark.contract("B1.6", "B7.1")
def test_a_machine_that_vanished_is_told_and_replaced_once_what_it_owned_is_gone(world: World) -> None:
    """Kubernetes collects the bootstrap and infrastructure objects of a Machine that is no more."""
    scene = LiveScene(world, world.namespace("vanished"))
    before = scene.run()
    scene.annotate_machine(**{"cluster.x-k8s.io/paused": ""})
    scene.until(lambda: scene.machine_condition("Paused").get("status") == "True", what="Cluster API lets go of it")
    scene.until(partial(_vanish, scene), what="the Machine vanishes")
    scene.until(lambda: scene.events("MachineLost"), what="the loss is told")
    scene.wait_ready(BRAKE, after=before)
    assert scene.status["replacements"]["count"] == 1
    assert len(scene.present()) == 3


@pytest.mark.contract("B1.6", "B7.1")
def test_a_machine_whose_objects_vanish_before_it_began_is_made_anew(world: World) -> None:
    """Cluster API waits for them for ever, and nobody else would make them again."""
    scene = LiveScene(world, world.namespace("unbegun"))
    scene.create(script={"create": "Never"})
    scene.until(lambda: _phase(scene) == "Provisioning", what="the Machine waits for its infrastructure")
    before = scene.machine()
    scene.api.delete(*scene.infrastructure, scene.name, scene.namespace)
    scene.until(lambda: _uid(scene) not in {"", before["metadata"]["uid"]}, BRAKE, what="another Machine")
    assert scene.status["replacements"]["count"] == 1
    scene.rescript(create="Succeed")
    scene.wait_ready()


def _vanish(scene: LiveScene) -> bool:
    """Delete the Machine while nothing holds it: Cluster API puts its finalizer back, also under a pause."""
    bare = {"metadata": {"finalizers": None}}
    version = scene.api.patch(*scene.machines, scene.name, scene.namespace, bare)["metadata"]["resourceVersion"]
    try:
        scene.api.delete(*scene.machines, scene.name, scene.namespace, version=version)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _phase(scene: LiveScene) -> str:
    phase: str = (scene.find_machine() or {}).get("status", {}).get("phase", "")
    return phase


def _uid(scene: LiveScene) -> str:
    uid: str = (scene.find_machine() or {}).get("metadata", {}).get("uid", "")
    return uid


@pytest.mark.contract("B1.9", "B1.13", "B1.20")
def test_disabling_takes_grace_in_which_nothing_is_touched(world: World) -> None:
    scene = LiveScene(world, world.namespace("grace"))
    machine = scene.run(gracefulShutdownTimeout="1h")
    scene.edit(enabled=False)
    status = scene.wait_phase("ShuttingDown", "GracePeriodActive")
    assert status["nextCleanup"] > status["shutdownRequestedTime"]
    scene.edit(enabled=True)
    scene.wait_phase("Active", "MachineReady")
    assert scene.machine()["metadata"]["uid"] == machine["metadata"]["uid"]
    assert "deletionTimestamp" not in scene.machine()["metadata"]
    scene.edit(enabled=False, gracefulShutdownTimeout="1s")
    scene.wait_phase("Disabled", "ScheduleDisabled")
    scene.wait_gone()


@pytest.mark.contract("B1.5", "B2.3")
def test_after_a_change_of_kind_the_next_machine_is_of_the_new_one_and_the_old_leaks_nothing(
    world: World,
) -> None:
    scene = LiveScene(world, world.namespace("kinds"), family=world.families[0])
    if world.family is SIMULATED_EARLIER:
        pytest.skip("this release of Cluster API knows one contract only")
    before = scene.run()
    later = LiveScene(world, scene.namespace, family=SIMULATED_EARLIER)
    body = later.body()["spec"]
    scene.edit(bootstrapSpec=body["bootstrapSpec"], infrastructureSpec=body["infrastructureSpec"])
    scene.wait_condition("UpToDate", "False", "TemplateChanged")
    assert scene.machine()["metadata"]["uid"] == before["metadata"]["uid"], "nothing changes before the next activation"
    scene.active(False)
    scene.wait_phase("Inactive")
    scene.wait_gone()
    scene.active(True)
    later.wait_ready()
    assert later.condition("UpToDate")["status"] == "True"
    assert len(later.present()) == 3
    assert scene.present() == ["Machine"], "none of the old kinds"


@pytest.mark.contract("B2.4")
def test_a_kind_that_cluster_api_would_never_let_go_is_refused_before_anything_is_made(world: World) -> None:
    scene = LiveScene(world, world.namespace("unlabelled"))
    unlabelled = {"apiVersion": scene.infrastructure[0], "kind": "UnlabelledMachine", "spec": {}}
    scene.create(infrastructureSpec=unlabelled)
    status = scene.wait_phase("Error", "MachineCreationFailed")
    assert "contract label" in status["message"]
    assert scene.present() == []
    scene.edit(infrastructureSpec={"kind": scene.infrastructure[1]})
    scene.wait_ready()


@pytest.mark.contract("B1.14", "B1.15")
def test_the_switch_ends_it_and_its_clearing_begins_it_anew(world: World) -> None:
    scene = LiveScene(world, world.namespace("switch"))
    before = scene.run()
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated", "KillSwitchActivated")
    scene.wait_gone()
    scene.edit(killSwitch=False)
    scene.wait_ready(after=before)
    assert "replacements" not in scene.status
