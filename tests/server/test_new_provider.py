"""The project that `fivespot new-provider` writes passes its own tests and works as it is deployed, unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import ControlPlane
from fivespot.cli.new_provider.project import name_project, write_project
from fivespot.testing.conformance import RULES
from harness import ManagerProcess
from support import eventually, make_namespace

NAMES = name_project("NightShift")
API_VERSION = "spotschedules.5spot.finos.org/v1alpha1"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project") / "night-shift"
    write_project(NAMES, folder)
    yield folder
    control_plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-k", str(folder / "manifests"))


@pytest.mark.timeout(240)
def test_its_tests_pass_as_generated_and_every_rule_is_kept(project: Path, control_plane: ControlPlane) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-W", "error", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=project,
        env={**os.environ, "KUBECONFIG": str(control_plane.admin_kubeconfig), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=220,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = dict(re.findall(r"TestConformance::test_rule\[([a-z-]+)\] (PASSED|SKIPPED)", done.stdout))
    assert outcomes == {rule.id: "PASSED" for rule in RULES}, done.stdout
    assert len(re.findall(r"test_(?:decide|manifests)\.py::\S+ PASSED", done.stdout)) > 8


@pytest.mark.contract("A14")
def test_it_works_under_the_rights_of_its_own_manifests(project: Path, control_plane: ControlPlane) -> None:
    plane = control_plane
    plane.kubectl("apply", "--server-side", "-k", str(project / "manifests"))
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(project / "manifests" / "crd.yaml"))
    kubeconfig = plane.service_account_kubeconfig(NAMES.slug, NAMES.slug, project.parent / "kubeconfig")
    namespace = make_namespace(plane.api, "night-shift", cluster=None)
    deployed = ("--provider", f"{NAMES.package}:PROVIDER", "--enable-leader-election")
    path = os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"PYTHONPATH": path, "POD_NAMESPACE": NAMES.slug, "POD_NAME": "night-shift-1"}
    with ManagerProcess(plane, *deployed, kubeconfig=kubeconfig, environment=variables) as manager:
        plane.kubectl("apply", "-n", namespace, "-f", str(project / "examples" / "example.yaml"))
        status = eventually(
            lambda: plane.api.get(API_VERSION, NAMES.kind, "example", namespace)["status"], 30, what="a verdict"
        )
        assert status["conditions"][0]["status"] == "True"
        shown = plane.kubectl("get", NAMES.kind.lower(), "-n", namespace)
        assert re.match(r"NAME +ACTIVE +OPENS +CLOSES +NEXTTRANSITION +AGE\n", shown), shown
        eventually(lambda: plane.api.list("events.k8s.io/v1", "Event", namespace) is not None)
        refused = [record for record in manager.logs() if "forbidden" in str(record).lower()]
        assert not refused
        [lease] = plane.api.list("coordination.k8s.io/v1", "Lease", NAMES.slug)
        assert lease["metadata"]["name"] == f"5spot-{NAMES.kind.lower()}-leader"
    plane.api.delete("v1", "Namespace", namespace)
