"""The real kubectl on both servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from controlplane import build, kubernetes_version
from support.targets import NAMESPACES, EmbeddedServer, Target, definition, embedded_target, real_target

# kubectl is built with the real server.
pytestmark = pytest.mark.server

GROUP = "kubectl.example.com"
SPEC = {
    "type": "object",
    "description": "What is wanted.",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How large."},
        "note": {"type": "string"},
    },
}


@pytest.fixture(scope="module", params=["embedded", "real"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The embedded or the real server, with a kind Gizmo (gz)."""
    names = {"kind": "Gizmo", "plural": "gizmos", "shortNames": ["gz"]}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    kind = definition(GROUP, SPEC, names=names, subresources={"status": {}}, additionalPrinterColumns=columns)
    kind["metadata"]["name"] = f"gizmos.{GROUP}"

    def prepared(made: Target) -> Iterator[Target]:
        made.kubectl("apply", "-f", "-", stdin=json.dumps(kind))
        made.kubectl("wait", "--for=condition=Established", f"crd/gizmos.{GROUP}", "--timeout=50s")
        # The real server lists a kind some time after it serves it.
        listed(made)
        yield made
        made.kubectl("delete", "crd", f"gizmos.{GROUP}", "--timeout=50s")
        made.close()

    if request.param == "real":
        yield from prepared(real_target(request.getfixturevalue("control_plane")))
        return
    with EmbeddedServer(tmp_path_factory.mktemp("kubectl")) as server:
        yield from prepared(embedded_target(server, build(kubernetes_version()).kubectl))


def gizmo(ns: str, size: int = 3, note: str = "hi") -> str:
    metadata = {"name": "one", "namespace": ns}
    return json.dumps(
        {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": metadata, "spec": {"size": size, "note": note}}
    )


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def listed(target: Target) -> list[list[str]]:
    """The kinds of the group, once there are some.

    kubectl ends with an error also when a group of somebody else, which is going, cannot be asked.
    """

    def look() -> list[list[str]]:
        try:
            return rows(target.kubectl("api-resources", "--api-group", GROUP, "--no-headers"))
        except AssertionError:
            return []

    found: list[list[str]] = target.eventually(look)
    return found


def test_versions_and_resources(target: Target) -> None:
    versions = json.loads(target.kubectl("version", "-o", "json"))
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]
    assert listed(target) == [["gizmos", "gz", f"{GROUP}/v1", "true", "Gizmo"]]


def test_apply_twice_and_get(target: Target, ns: str) -> None:
    assert "created" in target.kubectl("apply", "-f", "-", stdin=gizmo(ns))
    assert "unchanged" in target.kubectl("apply", "-f", "-", stdin=gizmo(ns))
    assert "configured" in target.kubectl("apply", "-f", "-", stdin=gizmo(ns, 4))
    assert rows(target.kubectl("get", "gz", "-n", ns))[0] == ["NAME", "SIZE", "AGE"]
    assert rows(target.kubectl("get", "gizmos", "-n", ns, "-o", "wide"))[1][:3] == ["one", "4", "hi"]
    assert yaml.safe_load(target.kubectl("get", "gz", "one", "-n", ns, "-o", "yaml"))["spec"] == {
        "size": 4,
        "note": "hi",
    }
    assert target.kubectl("get", "gz", "-n", ns, "-o", "name").strip() == f"gizmo.{GROUP}/one"


def test_server_side_apply_and_diff(target: Target, ns: str) -> None:
    arguments = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in target.kubectl(*arguments, stdin=gizmo(ns))
    before = target.get(f"/apis/{GROUP}/v1/namespaces/{ns}/gizmos/one").ok()
    target.kubectl(*arguments, stdin=gizmo(ns))
    assert target.get(f"/apis/{GROUP}/v1/namespaces/{ns}/gizmos/one").ok() == before
    assert target.kubectl("diff", "--server-side", "-f", "-", stdin=gizmo(ns)) == ""
    conflict = target.kubectl(*arguments, "--field-manager=other", stdin=gizmo(ns, 5), fails=True)
    assert 'conflict with "kubectl": .spec.size' in conflict
    target.kubectl(*arguments, "--field-manager=other", "--force-conflicts", stdin=gizmo(ns, 5))
    assert target.get(f"/apis/{GROUP}/v1/namespaces/{ns}/gizmos/one").ok()["spec"]["size"] == 5


def test_built_in_kinds_are_applied_too(target: Target, ns: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: k, namespace: {ns}}}\ndata: {{a: b}}\n"
    assert "created" in target.kubectl("apply", "-f", "-", stdin=text)
    assert "unchanged" in target.kubectl("apply", "-f", "-", stdin=text)
    assert "configured" in target.kubectl("apply", "-f", "-", stdin=text.replace("a: b", "a: c"))
    assert "serverside-applied" in target.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    assert "labeled" in target.kubectl("label", "cm", "k", "-n", ns, "x=y")
    assert "annotated" in target.kubectl("annotate", "cm", "k", "-n", ns, "x=y")
    assert rows(target.kubectl("get", "cm", "k", "-n", ns, "--no-headers"))[0][:2] == ["k", "1"]


def test_typed_clients_send_protobuf(target: Target, ns: str) -> None:
    target.kubectl("create", "configmap", "k", "-n", ns, "--from-literal=a=b")
    target.kubectl("create", "secret", "generic", "s", "-n", ns, "--from-literal=a=b")
    target.kubectl("create", "serviceaccount", "r", "-n", ns)
    target.kubectl("create", "namespace", f"{ns}-2")
    assert target.get(f"{NAMESPACES}/{ns}/configmaps/k").ok()["data"] == {"a": "b"}
    secret = target.get(f"{NAMESPACES}/{ns}/secrets/s").ok()
    assert (secret["data"], secret["type"]) == ({"a": "Yg=="}, "Opaque")
    assert target.get(f"{NAMESPACES}/{ns}/serviceaccounts/r").status == 200
    assert target.get(f"{NAMESPACES}/{ns}-2").ok()["status"] == {"phase": "Active"}
    target.leave(f"{ns}-2")


def test_invalid_objects_are_told_by_field(target: Target, ns: str) -> None:
    assert "spec.size" in target.kubectl("apply", "-f", "-", stdin=gizmo(ns, 0), fails=True)
    odd = gizmo(ns).replace('"note"', '"nothing"')
    assert 'unknown field "spec.nothing"' in target.kubectl("apply", "-f", "-", stdin=odd, fails=True)
    assert "unknown field" in target.kubectl("create", "--validate=strict", "-f", "-", stdin=odd, fails=True)


def test_patches_and_labels(target: Target, ns: str) -> None:
    target.kubectl("create", "-f", "-", stdin=gizmo(ns))
    target.kubectl("label", "gz", "one", "-n", ns, "a=b")
    target.kubectl("patch", "gz", "one", "-n", ns, "--type=merge", "-p", '{"spec":{"size":4}}')
    target.kubectl("patch", "gz", "one", "-n", ns, "--type=json", "-p", '[{"op":"remove","path":"/spec/note"}]')
    status = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    target.kubectl("patch", "gz", "one", "-n", ns, "--type=merge", "--subresource=status", "-p", status)
    target.kubectl("wait", "--for=condition=Ready", "gz/one", "-n", ns, "--timeout=10s")
    assert target.kubectl("get", "gz", "-n", ns, "-l", "a=b", "-o", "jsonpath={.items[*].spec}") == '{"size":4}'
    told = target.kubectl("describe", "gz", "one", "-n", ns)
    assert "Size:  4" in told
    assert "Labels:       a=b" in told


def test_explain(target: Target) -> None:
    def look() -> str:
        try:
            return target.kubectl("explain", "gizmo.spec")
        except AssertionError:
            return ""

    text = target.eventually(look)
    assert "What is wanted." in text
    assert "size\t<integer> -required-" in text
    assert "How large." in text
    assert "FIELDS:" in target.kubectl("explain", "configmap")


def test_watching(target: Target, ns: str) -> None:
    target.kubectl("create", "-f", "-", stdin=gizmo(ns))
    command = [str(target._kubectl), "get", "gz", "-n", ns, "-w", "--no-headers", "--request-timeout=20s"]
    environment = {"KUBECONFIG": str(target.config), "HOME": str(target.config.parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:2] == ["one", "3"]
        target.patch(f"/apis/{GROUP}/v1/namespaces/{ns}/gizmos/one", {"spec": {"size": 7}}).ok()
        assert watching.stdout.readline().split()[:2] == ["one", "7"]
        watching.terminate()


def test_deletions_wait_for_the_end(target: Target, ns: str) -> None:
    target.kubectl("create", "-f", "-", stdin=gizmo(ns))
    target.kubectl("delete", "gz", "one", "-n", ns, "--timeout=20s")
    assert target.get(f"/apis/{GROUP}/v1/namespaces/{ns}/gizmos/one").status == 404
    target.kubectl("create", "-f", "-", stdin=gizmo(ns))
    target.kubectl("delete", "gz", "--all", "-n", ns, "--timeout=20s")
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kubectl-short-lived}\n"
    target.kubectl("create", "-f", "-", stdin=text)
    assert rows(target.kubectl("get", "ns", "kubectl-short-lived", "--no-headers"))[0][1] == "Active"
    # On the real server those of other tests are in the queue before it.
    target.kubectl("delete", "ns", "kubectl-short-lived", "--timeout=90s", seconds=100)
    assert target.get(f"{NAMESPACES}/kubectl-short-lived").status == 404
