"""Rights for servers with other options, and the roles that are generated: sufficient, and used.

That every other right is used and none is missing, `tests/e2e/test_rbac.py` shows with the real Cluster API.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import ApiError, ControlPlane, read_crds
from controlplane.audit import STARTED, select
from controlplane.crds import stand_in_crds
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import infrastructure
from support.scenario import BOOTSTRAP, MACHINES, Scenario

pytestmark = pytest.mark.server

Json = dict[str, Any]
Start = Callable[..., ControlPlane]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
MACHINE_ROLE = "5spot-scheduledmachine-controller"
K0SMOTRON = ("k0smotron.io/v1beta1", "StandInMachine")


def k0smotron_kind() -> Json:
    """An infrastructure kind of the group k0smotron.io."""
    [found] = [crd for crd in stand_in_crds() if crd["spec"]["names"]["kind"] == "StandInMachine"]
    definition = copy.deepcopy(found)
    definition["metadata"]["name"] = "standinmachines.k0smotron.io"
    definition["spec"]["group"] = "k0smotron.io"
    return definition


def started(start: Start, **options: Any) -> tuple[ControlPlane, ProviderKind]:
    """A control plane with everything installed, and a kind of schedule that the test plays."""
    plane = start(crds=[*read_crds(MANIFESTS / "crds"), k0smotron_kind()], **options)
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    return plane, provider


def live_and_die(plane: ControlPlane, provider: ProviderKind, *, infrastructure_of: tuple[str, str]) -> None:
    """Have a machine made and removed, with its bootstrap and infrastructure objects left for the manager to delete."""
    namespace = make_namespace(plane.api, "rights")
    provider.create(namespace, active=True)
    scenario = Scenario(plane.api, namespace, provider)
    scenario.create(infrastructureSpec=infrastructure(infrastructure_of[0], kind=infrastructure_of[1]))
    kinds = (MACHINES, BOOTSTRAP, infrastructure_of)
    eventually(lambda: all(scenario.child(kind) is not None for kind in kinds), what="all children exist")
    scenario.wait_phase("Active")
    scenario.active(False)
    scenario.wait_phase("Inactive")
    eventually(lambda: all(scenario.child(kind) is None for kind in kinds), what="all children are gone")
    scenario.delete()
    eventually(lambda: scenario.find() is None, what="the ScheduledMachine is gone")


def requests(plane: ControlPlane) -> list[Json]:
    return list(select(plane.audit(stages=["ResponseComplete", STARTED]), user=MANAGER_USER))


def forbidden(plane: ControlPlane) -> list[str]:
    return [
        f"{event['verb']} {event['requestURI']}" for event in requests(plane) if event["responseStatus"]["code"] == 403
    ]


def used(plane: ControlPlane, group: str) -> set[tuple[str, str]]:
    """Verbs and resources of a group that were used with success."""
    return {
        (event["verb"], event["objectRef"]["resource"])
        for event in requests(plane)
        if event.get("objectRef", {}).get("apiGroup") == group and event["responseStatus"]["code"] != 403
    }


def test_the_roles_without_wildcards_are_enough(own_control_plane: Start) -> None:
    plane, provider = started(own_control_plane)
    command = [sys.executable, "-m", "fivespot.cli", "rbac", "--kubeconfig", str(plane.admin_kubeconfig)]
    written = subprocess.run(command, env=os.environ, check=True, capture_output=True, text=True).stdout
    documents = list(yaml.safe_load_all(written))
    assert [document["metadata"]["name"] for document in documents] == [MACHINE_ROLE, "5spot-manualschedule-controller"]
    assert "'*'" not in written
    file = plane.folder / "roles.yaml"
    file.write_text(written)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", str(file))
    stored = plane.api.get(*ROLE, MACHINE_ROLE)
    assert not [rule for rule in stored["rules"] if "*" in rule["resources"]], "the wildcards are replaced"
    with ManagerProcess(plane, "--enable-leader-election"):
        live_and_die(plane, provider, infrastructure_of=K0SMOTRON)
        live_and_die(plane, provider, infrastructure_of=("infrastructure.cluster.x-k8s.io/v1beta1", "StandInMachine"))
    assert forbidden(plane) == []


def test_the_rights_on_hosted_machines_are_used(own_control_plane: Start) -> None:
    """The group k0smotron.io, which the test with the real Cluster API leaves out."""
    plane, provider = started(own_control_plane)
    with ManagerProcess(plane, "--enable-leader-election"):
        live_and_die(plane, provider, infrastructure_of=K0SMOTRON)
    assert forbidden(plane) == []
    assert {verb for verb, _ in used(plane, "k0smotron.io")} >= {"watch", "create", "delete"}


def test_a_server_that_does_not_stream_lists_is_asked_for_lists(own_control_plane: Start) -> None:
    """``list`` beside ``watch`` is for servers without the feature WatchList."""
    plane, provider = started(own_control_plane, apiserver_arguments=["--feature-gates=WatchList=false"])
    with ManagerProcess(plane, "--enable-leader-election"):
        live_and_die(plane, provider, infrastructure_of=K0SMOTRON)
    assert forbidden(plane) == []
    for group, resources in {
        "5spot.finos.org": {"scheduledmachines"},
        "cluster.x-k8s.io": {"machines", "clusters"},
        "bootstrap.cluster.x-k8s.io": {"standinbootstraps"},
        "k0smotron.io": {"standinmachines"},
        "spotschedules.5spot.finos.org": {provider.definition["spec"]["names"]["plural"], "timebasedspotschedules"},
        "apiextensions.k8s.io": {"customresourcedefinitions"},
    }.items():
        assert {("list", resource) for resource in resources} <= used(plane, group)


def test_the_right_on_finalizers_is_needed_where_owner_references_are_enforced(own_control_plane: Start) -> None:
    plugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    plane, provider = started(own_control_plane, apiserver_arguments=[plugin])
    with ManagerProcess(plane, "--enable-leader-election"):
        live_and_die(plane, provider, infrastructure_of=K0SMOTRON)
        assert forbidden(plane) == []
        rules = plane.api.get(*ROLE, MACHINE_ROLE)["rules"]
        kept = [rule for rule in rules if rule["resources"] != ["scheduledmachines/finalizers"]]
        assert len(kept) == len(rules) - 1
        plane.api.patch(*ROLE, MACHINE_ROLE, None, {"rules": kept})
        namespace = make_namespace(plane.api, "refused")
        provider.create(namespace, active=True)
        scenario = Scenario(plane.api, namespace, provider)

        def refused() -> bool:
            if scenario.find() is None:
                scenario.create()
            found: str = scenario.status.get("message", "")
            assert "blockOwnerDeletion" in found, found
            return True

        eventually(refused, 30, what="the creation is refused")
        with pytest.raises(ApiError):
            plane.api.get(*MACHINES, scenario.name, namespace)
