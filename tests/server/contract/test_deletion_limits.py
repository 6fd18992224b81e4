"""B3.3 and B3.4: a deletion that takes too long, and one without Cluster API. Both have a server of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from controlplane import ControlPlane, cluster_api_crds, free_ports, stand_in_crds
from controlplane.audit import select
from fivespot.controllers.scheduledmachine import Timings
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import cluster_objects, eventually, make_namespace
from support.machines import MACHINE
from support.manager import manager_in_process
from support.measurements import scrape, total, writes
from support.scenario import CHILDREN, MACHINES, Scenario

TIMEOUTS = "fivespot_finalizer_cleanup_timeouts_total"
OVERDUE = "FinalizerCleanupTimeout"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.long
@pytest.mark.contract("B3.3")
@pytest.mark.timeout(240)
def test_a_deletion_that_takes_too_long_is_said_once_and_forced_only_when_asked(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane()
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    scenarios = []
    for name in ("patient", "forced"):
        namespace = make_namespace(plane.api, name)
        provider.create(namespace, active=True)
        scenarios.append(Scenario(plane.api, namespace, provider))
    patient, forced = scenarios
    [port] = free_ports(1)
    # The limit is six seconds and twice the time to drain: long enough to be seen waiting on a busy machine.
    limit = timedelta(seconds=10)
    timings = Timings(deletion_limit=6.0)
    with manager_in_process(plane, timings, metrics_port=port):
        for scenario in scenarios:
            scenario.create(nodeDrainTimeout="2s")
            scenario.wait_made()
            scenario.hold_machine()
        patient.delete()
        begun = instant(patient.get()["metadata"]["deletionTimestamp"])
        patient.wait_phase("ShuttingDown", "NodeDraining")
        assert patient.events(OVERDUE) == []
        assert total(scrape(port), TIMEOUTS) == 0
        [event] = eventually(lambda: patient.events(OVERDUE), 40, what="it is said")
        assert event["type"] == "Warning"
        assert "still waits" in event["note"]
        assert instant(event["eventTime"]) >= begun + limit
        assert total(scrape(port), TIMEOUTS) == 1
        # Looked at again, it is neither said nor counted again.
        plane.api.patch(*MACHINE, "web", patient.namespace, {"spec": {"priority": 51}})
        generation = patient.get()["metadata"]["generation"]
        eventually(lambda: patient.status["observedGeneration"] == generation, what="the edit was seen")
        assert total(scrape(port), TIMEOUTS) == 1
        [event] = patient.events(OVERDUE)
        assert "series" not in event
        # And it is waited for, however long it takes.
        assert "5spot.finos.org/scheduledmachine" in patient.get()["metadata"]["finalizers"]
        patient.let_machine_go()
        eventually(lambda: patient.find() is None, what="the deletion ends")
        patient.wait_gone()
    with manager_in_process(plane, timings, metrics_port=port, force_finalizer_on_timeout=True):
        mark = plane.audit_log.mark()
        forced.delete()
        forced.wait_phase("ShuttingDown", "NodeDraining")
        eventually(lambda: forced.find() is None, 40, what="it is forced")
        machine = forced.machine()
        assert machine["metadata"]["finalizers"] == ["machine.cluster.x-k8s.io"], "Cluster API's part goes on"
        assert machine["metadata"]["deletionTimestamp"]
        eventually(lambda: total(scrape(port), TIMEOUTS) == 1, what="it is counted")
        eventually(lambda: len(forced.events(OVERDUE)) == 1, what="it is said")
        own = select(writes(plane, mark, forced.namespace), resource="scheduledmachines", subresource="")
        assert [event["verb"] for event in own] == ["patch"]
        forced.let_machine_go()


@pytest.mark.long
@pytest.mark.contract("B3.4")
@pytest.mark.timeout(240)
def test_without_cluster_api_nothing_is_waited_for_and_its_installation_is_noticed(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = own_control_plane(install_crds=False)
    install(plane)
    api = plane.api
    provider = ProviderKind(api, "Played")
    provider.install()
    namespace = make_namespace(api, "b3-4", cluster=None)
    provider.create(namespace, active=True)
    provider.create(namespace, "never", active=False)
    wanted, unwanted, deleted, killed = (
        Scenario(api, namespace, provider, name) for name in ("wanted", "unwanted", "deleted", "killed")
    )
    with ManagerProcess(plane) as manager:
        wanted.create(gracefulShutdownTimeout="1h")
        unwanted.create(schedule=provider.reference("never"))
        killed.create(killSwitch=True)
        deleted.create()
        for scenario in (wanted, deleted):
            status = scenario.wait_phase("Error", "MachineCreationFailed")
            assert "Cluster API is not installed" in status["message"]
            assert "install Cluster API" in status["message"], "the remedy"
            assert scenario.condition("Stalled")["status"] == "True"
        unwanted.wait_phase("Inactive", "ScheduleInactive")
        killed.wait_phase("Terminated", "KillSwitchActivated")
        mark = plane.audit_log.mark()
        deleted.delete()
        eventually(lambda: deleted.find() is None, what="the deletion ends")
        killed.delete()
        eventually(lambda: killed.find() is None, what="the deletion ends")
        sent = select(plane.audit(since=mark), user=MANAGER_USER, namespace=namespace)
        assert {event["objectRef"]["resource"] for event in sent} <= {"scheduledmachines", "events"}
        # Installed while the manager runs, it is used without a restart and without waiting for anything.
        plane.install_crds([*cluster_api_crds(), *stand_in_crds()])
        eventually(lambda: wanted.wait_phase("Pending", "ClusterNotFound"), 30, what="Cluster API is noticed")
        for body in cluster_objects(namespace):
            api.create(body)
        wanted.wait_made(20)
        wanted.wait_phase("Active", "MachineCreated")
        unwanted.wait_phase("Inactive", "ScheduleInactive")
        assert [unwanted.child(kind) for kind in CHILDREN] == [None, None, None]
        # From here on a deletion is waited for again.
        wanted.hold_machine()
        wanted.delete()
        wanted.wait_phase("ShuttingDown", "NodeDraining")
        assert api.find(*MACHINES, "wanted", namespace) is not None
        wanted.let_machine_go()
        eventually(lambda: wanted.find() is None, what="the deletion ends")
        wanted.wait_gone()
        assert manager.exit_code is None
