"""The control plane that the other server tests stand on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane import (
    Api,
    ApiError,
    ControlPlane,
    ControlPlaneFailed,
    KubectlFailed,
    cluster_api_crds,
    kubernetes_version,
    select,
    stand_in_crds,
    tally,
)
from controlplane.audit import COMPLETE, STARTED
from controlplane.crds import is_established
from support import CLUSTER_NAME, eventually, make_namespace
from support.processes import LOOPBACK, alive, listening

TOOLS = Path(__file__).resolve().parents[2] / "tools"
CLUSTER_API = "cluster.x-k8s.io/v1beta2"


def config_map(namespace: str, name: str = "one") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_kubectl_and_the_server_report_the_release_that_was_asked_for(kubectl: Callable[..., str]) -> None:
    versions = json.loads(kubectl("version", "-o", "json"))
    assert versions["serverVersion"]["gitVersion"] == f"v{kubernetes_version()}"
    assert versions["clientVersion"]["gitVersion"] == f"v{kubernetes_version()}"


def test_cluster_api_and_the_stand_ins_are_established(control_plane: ControlPlane) -> None:
    served = control_plane.api.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    established = {crd["metadata"]["name"] for crd in served if is_established(crd)}
    assert len(cluster_api_crds()) == 13
    assert {crd["metadata"]["name"] for crd in cluster_api_crds() + stand_in_crds()} <= established


def test_machines_are_served_in_both_versions_of_cluster_api(api: Api, namespace: str) -> None:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StandInMachine", "name": "m"}
    bootstrap = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "StandInBootstrap", "name": "m"}
    api.create(
        {
            "apiVersion": CLUSTER_API,
            "kind": "Machine",
            "metadata": {"name": "m", "namespace": namespace},
            "spec": {
                "clusterName": CLUSTER_NAME,
                "bootstrap": {"configRef": bootstrap},
                "infrastructureRef": reference,
            },
        }
    )
    assert api.get(CLUSTER_API, "Machine", "m", namespace)["spec"]["infrastructureRef"] == reference
    assert api.get("cluster.x-k8s.io/v1beta1", "Machine", "m", namespace)["spec"]["clusterName"] == CLUSTER_NAME


def test_a_namespace_comes_with_its_cluster(kubectl: Callable[..., str], namespace: str) -> None:
    assert kubectl("get", "cluster", CLUSTER_NAME, "-n", namespace, "-o", "name").strip()


def test_the_audit_log_tells_who_did_what(control_plane: ControlPlane, namespace: str) -> None:
    before = control_plane.audit_log.mark()
    control_plane.api.create(config_map(namespace))
    control_plane.api.patch("v1", "ConfigMap", "one", namespace, {"data": {"a": "b"}})
    with pytest.raises(ApiError) as refused:
        control_plane.api.create(config_map(namespace))
    assert refused.value.status == 409
    events = select(control_plane.audit(since=before), user="test-admin", namespace=namespace)
    assert tally(events) == {"create configmaps": 2, "patch configmaps": 1}
    assert len(select(events, verbs="create", code=409, agent="fivespot-tests")) == 1


def test_a_watch_shows_in_the_audit_log_while_it_is_open(control_plane: ControlPlane, namespace: str) -> None:
    before = control_plane.audit_log.mark()
    with subprocess.Popen(
        [control_plane.binaries.kubectl, "get", "configmaps", "-n", namespace, "-w"],
        env={"KUBECONFIG": str(control_plane.admin_kubeconfig), "HOME": str(control_plane.folder)},
        stdout=subprocess.DEVNULL,
    ) as watching:

        def seen() -> bool:
            events = control_plane.audit(since=before, stages=[STARTED])
            return bool(select(events, verbs="watch", resource="configmaps", namespace=namespace))

        eventually(seen, 60)
        complete = control_plane.audit(since=before, stages=[COMPLETE])
        assert not select(complete, verbs="watch", namespace=namespace)
        watching.terminate()


def test_a_service_account_has_the_rights_that_rbac_gives_it_and_no_others(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "serviceaccount", "worker", "-n", namespace)
    mine = control_plane.service_account_kubeconfig(namespace, "worker")
    with pytest.raises(KubectlFailed, match="Forbidden"):
        control_plane.kubectl("get", "configmaps", kubeconfig=mine)
    control_plane.kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=configmaps")
    subject = f"--serviceaccount={namespace}:worker"
    control_plane.kubectl("create", "rolebinding", "reader", "-n", namespace, "--role=reader", subject)
    eventually(lambda: "No resources" in allowed(control_plane, mine))
    whoami = json.loads(control_plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=mine))
    assert whoami["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:worker"


def allowed(plane: ControlPlane, kubeconfig: Path) -> str:
    try:
        return plane.kubectl("get", "configmaps", kubeconfig=kubeconfig) or "No resources"
    except KubectlFailed as error:
        raise AssertionError(error.stderr) from error


def test_a_person_with_a_certificate_is_that_person(control_plane: ControlPlane, tmp_path: Path) -> None:
    mine = control_plane.user_kubeconfig(tmp_path / "jane", "jane", group="team-a")
    info = json.loads(control_plane.kubectl("auth", "whoami", "-o", "json", kubeconfig=mine))["status"]["userInfo"]
    assert info["username"] == "jane"
    assert set(info["groups"]) == {"team-a", "system:authenticated"}


def test_dependants_of_a_deleted_owner_are_collected(api: Api, namespace: str) -> None:
    owner = api.create(
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "StandInMachine",
            "metadata": {"name": "owner", "namespace": namespace},
        }
    )
    child = config_map(namespace, "child")
    reference = {"apiVersion": owner["apiVersion"], "kind": "StandInMachine", "name": "owner"}
    child["metadata"] |= {"ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}]}  # type: ignore[operator]
    api.create(child)
    api.delete(owner["apiVersion"], "StandInMachine", "owner", namespace)
    # The collector pauses for half a minute at most when kinds come and go, as those of other tests do.
    eventually(lambda: api.find("v1", "ConfigMap", "child", namespace) is None, 60)


def test_a_deleted_namespace_goes_with_what_is_in_it(api: Api) -> None:
    name = make_namespace(api, "short-lived")
    api.delete("v1", "Namespace", name)
    # Those of other tests are in the queue before it.
    eventually(lambda: api.find("v1", "Namespace", name) is None, timeout=90)


def test_an_admission_policy_is_type_checked_and_enforced(own_control_plane: Callable[..., ControlPlane]) -> None:
    plane = own_control_plane(install_crds=False, crds=[])
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    plane.api.create(
        {
            **policy,
            "metadata": {"name": "no-map"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "object.metadata.name != 'no'", "message": "not that name"}],
            },
        }
    )
    plane.api.create(
        {
            "apiVersion": policy["apiVersion"],
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-map"},
            "spec": {"policyName": "no-map", "validationActions": ["Deny"]},
        }
    )

    def checked() -> bool:
        status = plane.api.get(policy["apiVersion"], policy["kind"], "no-map").get("status", {})
        return "typeChecking" in status

    eventually(checked, 60)

    def denial() -> str:
        try:
            plane.api.create(config_map("default", "no"), dry_run=True)
        except ApiError as error:
            return str(error)
        return ""

    eventually(lambda: plane.api.find("v1", "Namespace", "default"))
    # A binding takes effect some time after it is stored.
    eventually(lambda: "not that name" in denial(), 60)


def test_the_server_comes_back_on_its_port_with_its_data(own_control_plane: Callable[..., ControlPlane]) -> None:
    plane = own_control_plane(install_crds=False, crds=[], controller_manager=False)
    eventually(lambda: plane.api.find("v1", "Namespace", "default"))
    plane.api.create(config_map("default"))
    plane.kill_apiserver()
    with pytest.raises(ConnectionRefusedError):
        plane.api.request("GET", "/readyz")
    plane.restart_apiserver()
    assert plane.api.get("v1", "ConfigMap", "one", "default")
    plane.kill_etcd()
    assert plane.failed() is not None
    plane.restart_etcd()
    assert plane.failed() is None
    assert plane.api.get("v1", "ConfigMap", "one", "default")


def test_all_of_it_listens_on_loopback_only(control_plane: ControlPlane) -> None:
    found = listening(control_plane.pids.values())
    assert len(found) >= 4
    assert set(found) == {LOOPBACK}


def test_nothing_is_left_behind_after_the_end() -> None:
    with ControlPlane(install_crds=False) as plane:
        pids = set(plane.pids.values())
        assert len(pids) == 3
        folder = plane.folder
    assert not any(alive(pid) for pid in pids)
    assert not folder.exists()


def test_nothing_is_left_behind_after_a_kill() -> None:
    program = (
        "import json, sys, time\n"
        "from controlplane import ControlPlane\n"
        "plane = ControlPlane(install_crds=False)\n"
        "plane.start()\n"
        "print(json.dumps([list(plane.pids.values()), str(plane.folder)]), flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as victim:
        assert victim.stdout is not None
        pids, folder = json.loads(victim.stdout.readline())
        assert all(alive(pid) for pid in pids)
        victim.send_signal(signal.SIGKILL)
    eventually(lambda: not any(alive(pid) for pid in pids))
    eventually(lambda: not Path(folder).exists())


def test_a_program_that_does_not_start_is_named_with_the_end_of_its_log() -> None:
    plane = ControlPlane(install_crds=False, controllers=["no-such-controller"])
    with pytest.raises(ControlPlaneFailed, match=r"kube-controller-manager ended; .*controller-manager.log"):
        plane.start()
    assert plane.pids == {}
    assert (plane.folder / "kube-controller-manager.log").is_file()
    shutil.rmtree(plane.folder)


def test_the_command_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "controlplane", "--kubeconfig", str(kubeconfig), "--no-crds"]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().strip() == f"export KUBECONFIG={kubeconfig}"
        assert kubeconfig.stat().st_mode & 0o077 == 0
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 0, errors
    assert not kubeconfig.exists()
    assert time.monotonic() - began < 15
    assert "Traceback" not in errors


def test_the_command_leaves_a_kubeconfig_alone_that_is_not_its_own(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\n")
    done = subprocess.run(
        [sys.executable, "-m", "controlplane", "--kubeconfig", str(kubeconfig)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        check=False,
    )
    assert done.returncode == 2
    assert "is left alone" in done.stderr
    assert kubeconfig.read_text() == "apiVersion: v1\n"


def test_a_release_that_is_none_is_refused_in_one_line() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOOLS), "FIVESPOT_KUBERNETES_VERSION": "newest"}
    done = subprocess.run(
        [sys.executable, "-m", "controlplane", "build"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: FIVESPOT_KUBERNETES_VERSION='newest'")
    assert done.stderr.count("\n") == 1
