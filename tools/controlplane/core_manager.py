"""Cluster API's own core manager beside a control plane: its definitions, its webhooks, and its process."""

from __future__ import annotations

import base64
import copy
import http.client
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .api import Api, ApiError
from .clusterapi import WEBHOOK_HOST, Manifests
from .credentials import CLUSTER_API, Credentials
from .process import Child, Watchdog, answers, await_ready

Json = dict[str, Any]

FAST_GATES: Mapping[str, bool] = {"ReconcilerRateLimiting": False}
"""Without the limit of one reconcile per object and second a Machine runs after 0.3 s instead of 3 s."""

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_RBAC = "rbac.authorization.k8s.io/v1"
_ROLE = "cluster-api-core"
_GATES_SINCE = {"ReconcilerRateLimiting": (1, 12), "MachineTaintPropagation": (1, 12)}
_MIGRATION_SINCE = (1, 11)


class CoreManager:
    """The core manager of one Cluster API release and what it installs; for one control plane.

    Its user in the audit log is ``cluster-api-core``, with the rights that the release ships.

    Args:
        binary: what :func:`controlplane.clusterapi.build_cluster_api` made.
        kubeconfig: for the manager's user.
        ports: of the webhooks, health and diagnostics, all on loopback.
        gates: feature gates by name; what the release does not know is left out.
    """

    def __init__(
        self,
        version: str,
        manifests: Manifests,
        *,
        binary: Path,
        api: Api,
        credentials: Credentials,
        kubeconfig: Path,
        ports: Sequence[int],
        folder: Path,
        watchdog: Watchdog,
        gates: Mapping[str, bool],
    ) -> None:
        self.version = version
        self._release = tuple(map(int, version.split(".")[:2]))
        self._manifests = manifests
        self._binary = binary
        self._api = api
        self._credentials = credentials
        self._kubeconfig = kubeconfig
        self._webhook_port, self._health_port, self._diagnostics_port = ports
        self._authority = base64.b64encode(credentials.ca_file.read_bytes()).decode()
        self.gates = dict(gates)
        self.wanted = False
        """Whether it was started and not stopped since."""
        self.child = Child(
            "cluster-api-core",
            self._command(),
            log=folder / "cluster-api-core.log",
            watchdog=watchdog,
            env={WEBHOOK_HOST: "127.0.0.1"},
        )

    # -- what it installs ----------------------------------------------------------------------------------------

    @property
    def definitions(self) -> list[Json]:
        """Its CRDs, converted by its webhook."""
        client = {"url": f"https://127.0.0.1:{self._webhook_port}/convert", "caBundle": self._authority}
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
        found = copy.deepcopy(self._manifests.definitions)
        for definition in found:
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return found

    def install_rights(self) -> None:
        """Its ClusterRole, bound to its user."""
        role = {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": _ROLE}, "rules": self._manifests.rules}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _ROLE}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CLUSTER_API}
        binding = {"kind": "ClusterRoleBinding", "metadata": {"name": _ROLE}, "roleRef": reference}
        for body in (role, {"apiVersion": _RBAC, **binding, "subjects": [subject]}):
            self._api.create(body)

    def install_webhooks(self) -> None:
        """Its admission webhooks: until it runs, nothing can be written that they judge."""
        for body in self._webhook_configurations():
            self._api.create(body)

    def uninstall(self) -> None:
        """Remove Cluster API as an administrator would: manager, webhooks, and CRDs with all objects.

        Finalizers that only the manager would take off are taken off here. Returns when the deletion of every
        definition was accepted; the server removes the objects in the background.
        """
        self.stop()
        for body in self._webhook_configurations():
            self._api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"], missing_ok=True)
        names = [definition["metadata"]["name"] for definition in self._manifests.definitions]
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(lambda name: self._api.delete(*_CRD, name, missing_ok=True), names))
        for definition in self._manifests.definitions:
            self._let_go(definition)

    def _let_go(self, definition: Json) -> None:
        spec = definition["spec"]
        version = next(v["name"] for v in spec["versions"] if v["storage"])
        api_version, kind = f"{spec['group']}/{version}", spec["names"]["kind"]
        try:
            # Not by discovery, which retries for seconds when a kind is gone.
            found = self._api.request("GET", f"/apis/{api_version}/{spec['names']['plural']}")["items"]
        except ApiError as error:
            if error.status == 404:
                return
            raise
        for obj in found:
            metadata = obj["metadata"]
            if metadata.get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                try:
                    self._api.patch(api_version, kind, metadata["name"], metadata.get("namespace"), patch)
                except ApiError as error:
                    if error.status != 404:
                        raise

    def _webhook_configurations(self) -> list[Json]:
        found = copy.deepcopy(self._manifests.webhooks)
        for body in found:
            body["metadata"]["name"] = f"cluster-api-{body['metadata']['name']}"
            for webhook in body["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {
                    "url": f"https://127.0.0.1:{self._webhook_port}{path}",
                    "caBundle": self._authority,
                }
        return found

    # -- the process ---------------------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> None:
        """Starts it and returns when its webhooks answer (half a second), or at once."""
        self.wanted = True
        self.child.start()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Returns when its webhooks answer.

        Raises:
            ControlPlaneFailed: it ended, or is not ready after 90 seconds.
        """
        await_ready(self.child, self._answers)

    def stop(self) -> None:
        """Ends it at once: webhooks and conversion are refused from now on, and nothing moves."""
        self.wanted = False
        self.child.kill()

    def restart(self, gates: Mapping[str, bool] | None = None) -> None:
        """Stops and starts it, with other feature gates if given."""
        self.stop()
        if gates is not None:
            self.gates = dict(gates)
            self.child.command = self._command()
        self.start()

    def _answers(self) -> bool:
        return answers(http.client.HTTPConnection("127.0.0.1", self._health_port, timeout=1), "/readyz")

    def _command(self) -> list[str]:
        known = {name: on for name, on in self.gates.items() if self._release >= _GATES_SINCE.get(name, (0,))}
        command = [
            str(self._binary),
            f"--kubeconfig={self._kubeconfig}",
            "--leader-elect=false",
            f"--webhook-port={self._webhook_port}",
            f"--webhook-cert-dir={self._credentials.folder}",
            f"--health-addr=127.0.0.1:{self._health_port}",
            f"--diagnostics-address=127.0.0.1:{self._diagnostics_port}",
            "--insecure-diagnostics=true",
            # With the default of 100 a small machine is so busy with conflicts that it is slower.
            "--machine-concurrency=5",
            # The workload cluster is the same server, which is not to be spared.
            "--clustercache-client-qps=100",
            "--clustercache-client-burst=200",
        ]
        if known:
            command.append("--feature-gates=" + ",".join(f"{name}={str(on).lower()}" for name, on in known.items()))
        if self._release >= _MIGRATION_SINCE:
            command.append("--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
        return command
