"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and the few controllers that tests need."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .api import Api, ApiError
from .audit import COMPLETE, POLICY, AuditLog
from .build import Say, build, say_to_stderr
from .clusterapi import build_cluster_api, cluster_api_manifests
from .commands import apiserver_command, etcd_command, manager_command
from .core_manager import FAST_GATES, CoreManager
from .crds import Crd, cluster_api_crds, is_established, stand_in_crds
from .credentials import ADMIN, CLUSTER_API, CONTROLLER_MANAGER, Credentials, write_kubeconfig
from .ports import free_ports
from .process import Child, ControlPlaneFailed, Watchdog, answers, await_ready, remove_folder
from .versions import cluster_api_version, kubernetes_version

# Without these, ownerReferences are not cleaned up, namespaces never go, and policies are not type-checked.
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "validatingadmissionpolicy-status-controller",
)

# Budgets are never computed without the third, and every eviction that one covers is refused.
CLUSTER_API_CONTROLLERS = (*CONTROLLERS, "disruption-controller")

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_ATTEMPTS = 3


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; the message is what it wrote."""

    def __init__(self, arguments: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} ended with {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


class ControlPlane:
    """One control plane; a context manager. Nothing of it is left behind, also if the process is killed.

    Args:
        crds: installed, with those of Cluster API and the stand-ins, before the controllers start: the garbage
            collector looks for new kinds only every 30 seconds.
        install_crds: whether Cluster API's and the stand-in CRDs are installed.
        audit: whether requests are logged (Metadata level); see :meth:`audit`.
        controller_manager: whether kube-controller-manager runs.
        apiserver_arguments: more arguments of kube-apiserver.
        controllers: which of its controllers; by default those that tests need.
        cluster_api: whether Cluster API's own core manager runs too, with its webhooks (see :attr:`cluster_api`), of
            the release that ``FIVESPOT_CLUSTER_API_VERSION`` says, else the newest known.
        feature_gates: of Cluster API; the default takes its limit of one reconcile per object and second away.
        version: a Kubernetes release; by default what ``FIVESPOT_KUBERNETES_VERSION`` says, else the newest known.
        say: where progress of a build goes.

    Synchronous on purpose: it is independent of any event loop, so one serves tests that each have their own.
    """

    def __init__(
        self,
        *,
        crds: Iterable[Crd] = (),
        install_crds: bool = True,
        audit: bool = True,
        controller_manager: bool = True,
        apiserver_arguments: Sequence[str] = (),
        controllers: Sequence[str] | None = None,
        cluster_api: bool = False,
        feature_gates: Mapping[str, bool] = FAST_GATES,
        version: str | None = None,
        say: Say = say_to_stderr,
    ) -> None:
        self.version = version or kubernetes_version()
        self._crds = list(crds)
        self._install_crds = install_crds
        self._with_audit = audit
        self._with_controller_manager = controller_manager
        self._apiserver_arguments = tuple(apiserver_arguments)
        self._controllers = controllers or (CLUSTER_API_CONTROLLERS if cluster_api else CONTROLLERS)
        self._with_cluster_api = cluster_api
        self._feature_gates = feature_gates
        self._say = say
        self._started = False

    # -- life ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Builds what is missing, starts everything and returns when it is ready.

        About 4 seconds when built, 7 with Cluster API.

        Raises:
            BuildFailed: the programs could not be built.
            ControlPlaneFailed: one of them did not become ready.
        """
        self.binaries = build(self.version, self._say)
        if self._with_cluster_api:
            build_cluster_api(say=self._say)
        for attempt in range(1, _ATTEMPTS + 1):
            self._prepare()
            try:
                self._launch()
            except BaseException as error:
                taken = any("address already in use" in child.tail() for child in self._children)
                # Between choosing a port and listening on it, another process may have taken it.
                if isinstance(error, ControlPlaneFailed) and taken and attempt < _ATTEMPTS:
                    self.stop()
                    continue
                self.stop(keep_logs=isinstance(error, ControlPlaneFailed))
                raise
            return

    def stop(self, *, keep_logs: bool = False) -> None:
        """Kills everything and removes the data; with ``keep_logs`` the folder stays."""
        if not self._started:
            return
        self._started = False
        self.api.close()
        for child in reversed(self._children):
            child.kill()
        if keep_logs:
            self._watchdog.keep_folder()
            remove_folder(self.folder / "etcd")
        else:
            remove_folder(self.folder)
        self._watchdog.close()

    def _prepare(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fivespot-controlplane-"))
        self._watchdog = Watchdog(self.folder)
        self.credentials = Credentials(self.folder / "pki")
        etcd, peer, secure, manager, *core = free_ports(7)
        self.url = f"https://127.0.0.1:{secure}"
        self._etcd_url = f"http://127.0.0.1:{etcd}"
        self._manager_port = manager
        self.audit_log = AuditLog(self.folder / "audit.log")
        self.api = Api(self.url, ca_file=self.ca_file, token=self.token)
        self.admin_kubeconfig = self.kubeconfig(self.folder / "admin.kubeconfig")
        command = etcd_command(self.binaries, self.folder, client_url=self._etcd_url, peer_port=peer)
        self._etcd = self._child("etcd", command)
        command = apiserver_command(
            self.binaries,
            self.folder,
            self.credentials,
            etcd_url=self._etcd_url,
            port=secure,
            audit_log=self.audit_log.path,
            audit_policy=POLICY if self._with_audit else None,
        )
        command += self._apiserver_arguments
        # Collect seldom, up to a gigabyte: the machine has memory to spare and few cores.
        self._apiserver = self._child("kube-apiserver", command, {"GOGC": "800", "GOMEMLIMIT": "1GiB"})
        command = manager_command(
            self.binaries,
            self.credentials,
            kubeconfig=self._component_kubeconfig(CONTROLLER_MANAGER),
            port=manager,
            controllers=self._controllers,
        )
        self._manager = self._child("kube-controller-manager", command)
        self._children = [self._etcd, self._apiserver, self._manager]
        self._core = self._core_manager(core) if self._with_cluster_api else None
        if self._core is not None:
            self._children.append(self._core.child)
        self._started = True

    def _core_manager(self, ports: Sequence[int]) -> CoreManager:
        version = cluster_api_version()
        return CoreManager(
            version,
            cluster_api_manifests(version, self._say),
            binary=build_cluster_api(version, self._say),
            api=self.api,
            credentials=self.credentials,
            kubeconfig=self._component_kubeconfig(CLUSTER_API),
            ports=ports,
            folder=self.folder,
            watchdog=self._watchdog,
            gates=self._feature_gates,
        )

    def _launch(self) -> None:
        self._etcd.start()
        await_ready(self._etcd, self._etcd_answers)
        self._apiserver.start()
        self.wait_ready()
        core = self._core
        definitions = (core.definitions if core else cluster_api_crds(self._say)) if self._install_crds else []
        self.install_crds([*definitions, *(stand_in_crds() if self._install_crds else ()), *self._crds])
        if core is not None:
            core.install_rights()
            core.install_webhooks()
            core.start(wait=False)
        if self._with_controller_manager:
            self._manager.start()
            await_ready(self._manager, self._manager_answers)
        if core is not None:
            core.wait_ready()

    def _component_kubeconfig(self, user: str) -> Path:
        name = user.removeprefix("system:")
        return self.kubeconfig(self.folder / f"{name}.kubeconfig", token=self.credentials.tokens[user])

    def _child(self, name: str, command: list[str], env: dict[str, str] | None = None) -> Child:
        return Child(name, command, log=self.folder / f"{name}.log", watchdog=self._watchdog, env=env)

    # -- readiness -----------------------------------------------------------------------------------------------

    def wait_ready(self) -> None:
        """Returns when kube-apiserver says that it is ready.

        Raises:
            ControlPlaneFailed: it ended, or is not ready after 90 seconds.
        """
        await_ready(self._apiserver, self._apiserver_answers)

    def _apiserver_answers(self) -> bool:
        try:
            self.api.request("GET", "/readyz")
        except (ApiError, OSError, http.client.HTTPException):
            return False
        return True

    def _etcd_answers(self) -> bool:
        host, port = self._etcd_url.removeprefix("http://").split(":")
        return answers(http.client.HTTPConnection(host, int(port), timeout=1), "/health")

    def _manager_answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        connection = http.client.HTTPSConnection("127.0.0.1", self._manager_port, timeout=1, context=context)
        return answers(connection, "/healthz")

    def install_crds(self, crds: Iterable[Crd]) -> None:
        """Creates CRDs and returns when the server serves them.

        Raises:
            ApiError: one was refused.
            ControlPlaneFailed: one is not established after 90 seconds.
        """
        bodies = list(crds)
        names = {crd["metadata"]["name"] for crd in bodies}
        self.api.create_many(bodies)

        def established() -> bool:
            served = {crd["metadata"]["name"] for crd in self.api.list(*_CRD) if is_established(crd)}
            return names <= served

        await_ready(self._apiserver, established)

    # -- use -----------------------------------------------------------------------------------------------------

    @property
    def ca_file(self) -> Path:
        """The certificate authority that signed the serving certificate."""
        return self.credentials.ca_file

    @property
    def cluster_api(self) -> CoreManager:
        """Cluster API's core manager, to stop, start and uninstall it.

        Raises:
            RuntimeError: the control plane was made without it.
        """
        if self._core is None:
            raise RuntimeError("this control plane has no Cluster API: ControlPlane(cluster_api=True)")
        return self._core

    @property
    def token(self) -> str:
        """The administrator's bearer token (group system:masters)."""
        return self.credentials.tokens[ADMIN]

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of what runs, by program."""
        return {child.name: child.pid for child in self._children if child.pid is not None}

    def failed(self) -> str | None:
        """Return the process that ended unexpectedly, with the end of its log; None while all run."""
        for child in self._children:
            unwanted = (child is self._manager and not self._with_controller_manager) or (
                self._core is not None and child is self._core.child and not self._core.wanted
            )
            if child.pid is None and not unwanted:
                return f"{child.name} ended; the end of {child.log}:\n{child.tail()}"
        return None

    def kubeconfig(self, path: Path, *, token: str | None = None, namespace: str | None = None) -> Path:
        """Writes a kubeconfig for the holder of ``token`` (by default the administrator) and returns its path."""
        user = {"token": token or self.token}
        return write_kubeconfig(path, url=self.url, ca_file=self.ca_file, user=user, namespace=namespace)

    def user_kubeconfig(self, path: Path, user: str, *, group: str | None = None, namespace: str | None = None) -> Path:
        """Writes a kubeconfig with a client certificate for a person who has no rights but those that RBAC gives."""
        credentials = self.credentials.user(user, group)
        return write_kubeconfig(path, url=self.url, ca_file=self.ca_file, user=credentials, namespace=namespace)

    def service_account_token(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """A real token of an existing ServiceAccount (TokenRequest API; the server's minimum is 600 seconds).

        Raises:
            ApiError: there is no such ServiceAccount.
        """
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        token: str = self.api.request("POST", path, body)["status"]["token"]
        return token

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path | None = None) -> Path:
        """Writes a kubeconfig with a real token of an existing ServiceAccount, and its namespace as default."""
        target = path or self.folder / f"{namespace}.{name}.kubeconfig"
        return self.kubeconfig(target, token=self.service_account_token(namespace, name), namespace=namespace)

    def kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, seconds: float = 60
    ) -> str:
        """Runs the real kubectl and returns what it printed.

        Raises:
            KubectlFailed: it ended with an error.
            subprocess.TimeoutExpired: it took longer than ``seconds``.
        """
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(self.binaries.kubectl), *arguments],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            # A home of its own: discovery is cached there by address, and addresses are used again.
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(kubeconfig or self.admin_kubeconfig)},
        )
        if done.returncode:
            raise KubectlFailed(arguments, done.returncode, done.stderr)
        return done.stdout

    def audit(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[dict[str, Any]]:
        """Audit events, oldest first; see :class:`controlplane.audit.AuditLog` for ``since`` and ``stages``."""
        return self.audit_log.events(since=since, stages=stages)

    def copy_logs(self, folder: Path) -> Path:
        """Copies the logs of all programs and the audit log, replacing the folder."""
        remove_folder(folder)
        folder.mkdir(parents=True)
        for log in self.folder.glob("*.log"):
            shutil.copy(log, folder)
        return folder

    # -- faults --------------------------------------------------------------------------------------------------

    def kill_apiserver(self) -> None:
        """Ends kube-apiserver at once; clients see broken connections, then refused ones."""
        self._apiserver.kill()
        self.audit_log.server_died()
        self.api.close()

    def start_apiserver(self) -> None:
        """Starts it again on the same port after :meth:`kill_apiserver`, and does not wait for anything."""
        self._apiserver.start()

    def restart_apiserver(self) -> None:
        """Starts it again on the same port and returns when it is ready."""
        self.kill_apiserver()
        self.start_apiserver()
        self.wait_ready()

    def pause_apiserver(self) -> None:
        """Makes it silent with its connections open, until :meth:`resume_apiserver`."""
        self._apiserver.pause()

    def resume_apiserver(self) -> None:
        """Undoes :meth:`pause_apiserver`."""
        self._apiserver.resume()

    def kill_etcd(self) -> None:
        """Ends etcd at once; the API server goes on with what it has cached and answers the rest with errors."""
        self._etcd.kill()

    def start_etcd(self) -> None:
        """Starts it again with its data after :meth:`kill_etcd`, and does not wait for anything."""
        self._etcd.start()

    def restart_etcd(self) -> None:
        """Starts it again with its data, and returns when the API server is ready."""
        self.kill_etcd()
        self.start_etcd()
        await_ready(self._etcd, self._etcd_answers)
        self.wait_ready()
