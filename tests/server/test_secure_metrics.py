"""Metrics over TLS on the real server: tokens of accounts with and without the right to read them."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane import ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, SYSTEM_NAMESPACE, ManagerProcess, install
from support import eventually

pytestmark = pytest.mark.server

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
RBAC = "rbac.authorization.k8s.io"


def scrape(manager: ManagerProcess, token: str = "") -> tuple[int, str]:
    """The answer of /metrics to a token, over TLS with whatever certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", manager.ports()[0], timeout=10, context=context)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_metrics_are_for_accounts_that_may_get_them(own_control_plane: Callable[..., ControlPlane]) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    for name in ("prometheus", "stranger"):
        metadata = {"name": name, "namespace": SYSTEM_NAMESPACE}
        api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    subject = {"kind": "ServiceAccount", "name": "prometheus", "namespace": SYSTEM_NAMESPACE}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "prometheus-reads-fivespot"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "5spot-metrics-reader"},
        "subjects": [subject],
    }
    api.create(binding)
    good, poor = (plane.service_account_token(SYSTEM_NAMESPACE, name) for name in ("prometheus", "stranger"))
    with ManagerProcess(plane, "--metrics-secure") as manager:
        code, text = scrape(manager, good)
        assert (code, "grant the manager TokenReviews" in text) == (500, True), "the rights are not there yet"
        plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "metrics-secure" / "rights.yaml"))
        code, text = eventually(lambda: _allowed(scrape(manager, good)), what="the rights count")
        assert "fivespot_controller_info" in text
        assert scrape(manager)[0] == 401
        assert scrape(manager, "made-up")[0] == 401
        code, text = scrape(manager, poor)
        assert code == 403
        assert text.startswith("system:serviceaccount:5spot-system:stranger may not get /metrics")
        assert good not in manager.log.read_text()
    reviewed = {
        event["objectRef"]["resource"]
        for event in select(plane.audit(), user=MANAGER_USER)
        if event["verb"] == "create" and event["responseStatus"]["code"] == 201
    }
    assert reviewed >= {"tokenreviews", "subjectaccessreviews"}, "both rights are used"


def _allowed(answer: tuple[int, str]) -> tuple[int, str]:
    assert answer[0] == 200, answer
    return answer


@pytest.mark.usefixtures("own_control_plane")
def test_the_component_turns_it_on(own_control_plane: Callable[..., ControlPlane], tmp_path: Path) -> None:
    plane = own_control_plane(controller_manager=False, audit=False)
    # kustomize takes relative paths only, and no files above its own root.
    root = tmp_path / "root"
    root.mkdir()
    (root / "manifests").symlink_to(MANIFESTS)
    (root / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        "resources: [manifests]\ncomponents: [manifests/metrics-secure]\n"
    )
    rendered = plane.kubectl("kustomize", str(root))
    assert "- --metrics-secure" in rendered
    assert "name: 5spot-metrics-auth" in rendered
