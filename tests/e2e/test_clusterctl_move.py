"""B6.3: the real `clusterctl move` moves ScheduledMachines; nothing is created twice or deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, clusterctl, select
from harness import MANAGER_USER
from support.environment import Environment
from support.live_scenario import LiveScenario
from support.machines import MACHINE, SCHEDULE, reference, schedule

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MOVABLE = "clusterctl.cluster.x-k8s.io"
ALWAYS = {"windows": [{"days": ["mon-sun"], "start": "00:00", "end": "24:00"}]}
OWN_GROUPS = {"5spot.finos.org", "spotschedules.5spot.finos.org"}


def as_clusterctl_installs(api: Api) -> None:
    """The label by which clusterctl knows what to move; on our own definitions it has to be there already."""
    for definition in api.list(*CRD):
        group = definition["spec"]["group"]
        if group.endswith("cluster.x-k8s.io"):
            api.patch(*CRD, definition["metadata"]["name"], None, {"metadata": {"labels": {MOVABLE: ""}}})
        elif group in OWN_GROUPS and not definition["metadata"]["name"].startswith("played"):
            assert MOVABLE in definition["metadata"]["labels"]


def written(environment: Environment, mark: Any, namespace: str) -> list[str]:
    """Return the manager's creations and deletions in a namespace since a mark, Events excepted."""
    events = select(
        environment.plane.audit(since=mark), user=MANAGER_USER, verbs=("create", "delete"), namespace=namespace
    )
    return [f"{e['verb']} {e['objectRef']['resource']}" for e in events if e["objectRef"]["resource"] != "events"]


@pytest.mark.contract("B6.3")
@pytest.mark.timeout(300)
def test_a_moved_cluster_keeps_its_machines_and_follows_their_schedules(
    environment: Environment, own_environment: Callable[..., Environment], tmp_path: Path
) -> None:
    # By default Cluster API reconciles an object once a second, which the other tests do without.
    target = own_environment(feature_gates={})
    source = LiveScenario(environment, environment.namespace("move"))
    namespace = source.namespace
    as_clusterctl_installs(environment.api)
    as_clusterctl_installs(target.api)
    environment.api.create(schedule("hours", namespace, ALWAYS))
    before = source.run(active=None, schedule=reference(), nodeDrainTimeout="0s")
    marks = [(w, w.plane.audit_log.mark()) for w in (environment, target)]

    clusterctl(
        *("move", "--namespace", namespace),
        *(
            "--kubeconfig",
            str(environment.plane.admin_kubeconfig),
            "--to-kubeconfig",
            str(target.plane.admin_kubeconfig),
        ),
        folder=tmp_path,
    )

    assert source.find() is None
    assert source.present() == []
    moved = LiveScenario(target, namespace)
    after = moved.wait_ready(60)
    assert after["spec"]["providerID"] == before["spec"]["providerID"], "the same machine"
    [owner] = after["metadata"]["ownerReferences"]
    assert owner["uid"] == moved.get()["metadata"]["uid"]
    assert moved.wait_phase("Active", "MachineReady")["inSchedule"] is True
    assert "replacements" not in moved.status
    # Both managers evaluate the moved objects again.
    for found in (environment, target):
        found.manager.restart()
    moved.wait_ready()
    assert [written(w, mark, namespace) for w, mark in marks] == [[], []]

    target.api.patch(*SCHEDULE, "hours", namespace, {"spec": {"enabled": False}})
    moved.wait_phase("Inactive", "ScheduleInactive")
    moved.wait_gone()
    assert environment.api.find("v1", "Node", before["status"]["nodeRef"]["name"]) is None, "of the workload cluster"
    assert target.api.get(*MACHINE, "web", namespace)["metadata"]["finalizers"]

    # The target has the feature gates that users have, so a whole lifecycle runs here.
    scenario = LiveScenario(target, target.namespace("default-gates"))
    machine = scenario.run()
    scenario.active(False)
    # A verdict that changes back within milliseconds may not be seen, and then nothing is replaced.
    scenario.until(lambda: scenario.begun(machine), what="the Machine goes")
    scenario.active(True)
    scenario.wait_ready(60, after=machine)
    assert target.forbidden() == []
