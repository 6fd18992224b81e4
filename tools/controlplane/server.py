"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and the few controllers that tests need."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .api import Api, ApiError
from .audit import COMPLETE, POLICY, AuditLog
from .build import Say, build, say_to_stderr
from .crds import Crd, cluster_api_crds, is_established, stand_in_crds
from .credentials import ADMIN, CONTROLLER_MANAGER, Credentials, write_kubeconfig
from .ports import free_ports
from .process import Child, Watchdog, remove_folder
from .versions import kubernetes_version

# Without these, ownerReferences are not cleaned up, namespaces never go, and policies are not type-checked.
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "validatingadmissionpolicy-status-controller",
)

_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_READY_SECONDS = 90.0
_POLL_SECONDS = 0.05
_ATTEMPTS = 3


class ControlPlaneFailed(RuntimeError):
    """A program did not start, or ended; the message holds the end of its log and where the rest is."""


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
        controllers: which of its controllers.
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
        controllers: Sequence[str] = CONTROLLERS,
        version: str | None = None,
        say: Say = say_to_stderr,
    ) -> None:
        self.version = version or kubernetes_version()
        self._crds = list(crds)
        self._install_crds = install_crds
        self._with_audit = audit
        self._with_controller_manager = controller_manager
        self._controllers = tuple(controllers)
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
        """Builds what is missing, starts everything and returns when it is ready (about 4 seconds when built).

        Raises:
            BuildFailed: the programs could not be built.
            ControlPlaneFailed: one of them did not become ready.
        """
        self.binaries = build(self.version, self._say)
        crds = [*(cluster_api_crds(self._say) + stand_in_crds() if self._install_crds else ()), *self._crds]
        for attempt in range(1, _ATTEMPTS + 1):
            self._prepare()
            try:
                self._launch(crds)
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
        etcd, peer, secure, manager = free_ports(4)
        self.url = f"https://127.0.0.1:{secure}"
        self._etcd_url = f"http://127.0.0.1:{etcd}"
        self._manager_port = manager
        self.audit_log = AuditLog(self.folder / "audit.log")
        self.api = Api(self.url, ca_file=self.ca_file, token=self.token)
        self.admin_kubeconfig = self.kubeconfig(self.folder / "admin.kubeconfig")
        self._etcd = self._child("etcd", self._etcd_command(peer))
        # A larger heap before collecting: the machine has memory to spare and few cores.
        self._apiserver = self._child("kube-apiserver", self._apiserver_command(secure), {"GOGC": "200"})
        self._manager = self._child("kube-controller-manager", self._manager_command())
        self._children = [self._etcd, self._apiserver, self._manager]
        self._started = True

    def _launch(self, crds: list[Crd]) -> None:
        self._etcd.start()
        self._await(self._etcd, self._etcd_answers)
        self._apiserver.start()
        self.wait_ready()
        self.install_crds(crds)
        if self._with_controller_manager:
            self._manager.start()
            self._await(self._manager, self._manager_answers)

    def _child(self, name: str, command: list[str], env: dict[str, str] | None = None) -> Child:
        return Child(name, command, log=self.folder / f"{name}.log", watchdog=self._watchdog, env=env)

    # -- command lines -------------------------------------------------------------------------------------------

    def _etcd_command(self, peer: int) -> list[str]:
        peer_url = f"http://127.0.0.1:{peer}"
        return [
            str(self.binaries.etcd),
            "--unsafe-no-fsync",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--log-level=warn",
        ]

    def _apiserver_command(self, port: int) -> list[str]:
        pki = self.credentials
        command = [
            str(self.binaries.kube_apiserver),
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            # The default reconciler refuses to advertise a loopback address.
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.folder / 'apiserver'}",
            f"--tls-cert-file={pki.cert_file}",
            f"--tls-private-key-file={pki.key_file}",
            f"--client-ca-file={pki.ca_file}",
            f"--token-auth-file={pki.token_file}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki.service_account_key}",
            f"--service-account-signing-key-file={pki.service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            # Nobody makes the ServiceAccount "default" here, without which the plugin refuses every Pod.
            "--disable-admission-plugins=ServiceAccount",
            # Tests of load measure the product, not the server's fairness.
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
        ]
        if self._with_audit:
            policy = self.folder / "audit-policy.json"
            policy.write_text(json.dumps(POLICY))
            command += [
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit_log.path}",
                # By default the file is rotated at 100 MB, and the events before it would be lost to the reader.
                "--audit-log-maxsize=8192",
            ]
        return command

    def _manager_command(self) -> list[str]:
        kubeconfig = self.kubeconfig(
            self.folder / "controller-manager.kubeconfig", token=self.credentials.tokens[CONTROLLER_MANAGER]
        )
        return [
            str(self.binaries.kube_controller_manager),
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._manager_port}",
            f"--tls-cert-file={self.credentials.cert_file}",
            f"--tls-private-key-file={self.credentials.key_file}",
            "--leader-elect=false",
            f"--controllers={','.join(self._controllers)}",
            # Its default of 20 requests a second makes clean-up the slowest part of a test with many objects.
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        ]

    # -- readiness -----------------------------------------------------------------------------------------------

    def wait_ready(self) -> None:
        """Returns when kube-apiserver says that it is ready.

        Raises:
            ControlPlaneFailed: it ended, or is not ready after 90 seconds.
        """
        self._await(self._apiserver, self._apiserver_answers)

    def _await(self, child: Child, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not ready():
            ended = not child.running
            if ended or time.monotonic() > deadline:
                what = "ended" if ended else f"is not ready after {_READY_SECONDS:.0f} s"
                raise ControlPlaneFailed(f"{child.name} {what}; the end of {child.log}:\n{child.tail()}")
            time.sleep(_POLL_SECONDS)

    def _apiserver_answers(self) -> bool:
        try:
            self.api.request("GET", "/readyz")
        except (ApiError, OSError, http.client.HTTPException):
            return False
        return True

    def _etcd_answers(self) -> bool:
        host, port = self._etcd_url.removeprefix("http://").split(":")
        return _answers(http.client.HTTPConnection(host, int(port), timeout=1), "/health")

    def _manager_answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        connection = http.client.HTTPSConnection("127.0.0.1", self._manager_port, timeout=1, context=context)
        return _answers(connection, "/healthz")

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

        self._await(self._apiserver, established)

    # -- use -----------------------------------------------------------------------------------------------------

    @property
    def ca_file(self) -> Path:
        """The certificate authority that signed the serving certificate."""
        return self.credentials.ca_file

    @property
    def token(self) -> str:
        """The administrator's bearer token (group system:masters)."""
        return self.credentials.tokens[ADMIN]

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of what runs, by program."""
        return {child.name: child.pid for child in self._children if child.pid is not None}

    def failed(self) -> str | None:
        """What has ended by itself, with the end of its log; None while all is well."""
        for child in self._children:
            if child.pid is None and (child is not self._manager or self._with_controller_manager):
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
        self._await(self._etcd, self._etcd_answers)
        self.wait_ready()


def _answers(connection: http.client.HTTPConnection, path: str) -> bool:
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
