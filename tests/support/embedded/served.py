"""The server in memory behind TLS on a port, in real time: for clients, kubectl and managers that are processes.

It looks like :class:`controlplane.ControlPlane` to tests, credentials included. Whoever shows one is who it says.
Accounts may do everything, and people nothing: there are no roles.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, TypeVar

from controlplane import Api, read_crds
from controlplane.audit import COMPLETE
from controlplane.credentials import ADMIN, Credentials, write_kubeconfig
from controlplane.ports import free_ports
from controlplane.server import KubectlFailed
from fivespot.apiserver import ApiRequest, ApiResponse, ApiServer, Handler, HttpListener, StatusError
from fivespot.testing.faults import HalfOpen, RequestInfo
from harness import MANIFESTS, SERVICE_ACCOUNT, SYSTEM_NAMESPACE
from harness.wait import eventually

from .audit import Audit
from .plane import RealOnly, definitions, kubectl_binary
from .request_faults import RequestFaults, forbidden

__all__ = ["ServedControlPlane"]

Json = dict[str, Any]
T = TypeVar("T")

_SECONDS = 20.0
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class ServedApi(Api):
    """The tests' client, which knows what may be put in the way of others."""

    def __init__(self, plane: ServedControlPlane) -> None:
        super().__init__(plane.url, ca_file=plane.ca_file, token=plane.token)
        self.request_faults = plane.request_faults


class ServedControlPlane:
    """The part of a control plane that tests use; anything else raises :class:`RealOnly`.

    Options are those of :class:`controlplane.ControlPlane`. There is no controller manager to leave out: what it does
    for tests, the server does by itself.
    """

    def __init__(
        self,
        *,
        crds: Iterable[Json] | None = None,
        install_crds: bool = True,
        audit: bool = True,
        controller_manager: bool = True,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise RealOnly(f"the server in memory has no {', '.join(unknown)}")
        self._folder = tempfile.TemporaryDirectory(prefix="fivespot-embedded-")
        self.folder = Path(self._folder.name)
        self.credentials = Credentials(self.folder / "pki")
        self._users = {token: name for name, token in self.credentials.tokens.items()}
        self._people: set[str] = set()
        self.audit_log = Audit(lambda: datetime.now(UTC), self._user)
        self.request_faults = RequestFaults(self._user)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded API server", daemon=True)
        self._thread.start()
        [self._port] = free_ports(1)
        self.url = f"https://127.0.0.1:{self._port}"
        self._server = ApiServer(middleware=self._answer)
        self._front: HttpListener | None = None
        self._resume: Callable[[], None]
        self._ended = asyncio.Event()
        self._entered = threading.Event()
        self._life = asyncio.run_coroutine_threadsafe(self._live(), self._loop)
        assert self._entered.wait(_SECONDS), "the server did not start"
        self.start_apiserver()
        self.api = ServedApi(self)
        self.admin_kubeconfig = self.kubeconfig(self.folder / "admin.kubeconfig")
        self.install_crds(read_crds(MANIFESTS / "crds") if crds is None else crds)
        if install_crds:
            self.install_crds(definitions())
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
        account = {"name": SERVICE_ACCOUNT, "namespace": SYSTEM_NAMESPACE}
        self.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.api.close()
        if self._front is not None:
            self._call(self._front.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._ended.set)
        self._life.result(_SECONDS)
        self._call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()
        self._folder.cleanup()

    # As the real one has it.

    @property
    def ca_file(self) -> Path:
        return self.credentials.ca_file

    @property
    def token(self) -> str:
        return self.credentials.tokens[ADMIN]

    @property
    def binaries(self) -> SimpleNamespace:
        return SimpleNamespace(kubectl=kubectl_binary())

    def kubeconfig(self, path: Path, *, token: str | None = None, namespace: str | None = None) -> Path:
        user = {"token": token or self.token}
        return write_kubeconfig(path, url=self.url, ca_file=self.ca_file, user=user, namespace=namespace)

    def user_kubeconfig(self, path: Path, user: str, *, group: str | None = None, namespace: str | None = None) -> Path:
        """A person has a token here, in place of a certificate."""
        token = f"token-of-{user}"
        self._users[token] = user
        self._people.add(user)
        return self.kubeconfig(path, token=token, namespace=namespace)

    def service_account_token(self, namespace: str, name: str) -> str:
        user = f"system:serviceaccount:{namespace}:{name}"
        token = f"token-of-{user}"
        self._users[token] = user
        return token

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path | None = None) -> Path:
        target = path or self.folder / f"{namespace}.{name}.kubeconfig"
        return self.kubeconfig(target, token=self.service_account_token(namespace, name), namespace=namespace)

    def audit(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[Json]:
        return self.audit_log.events(since=since, stages=stages)

    def install_crds(self, crds: Iterable[Json]) -> None:
        bodies = list(crds)
        for body in bodies:
            self.api.create(body)
        paths = [
            f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            for spec in (body["spec"] for body in bodies)
            for version in spec["versions"]
            if version["served"]
        ]
        for path in paths:
            eventually(lambda path=path: self._served(path), what=f"{path} is served")  # type: ignore[misc]

    def kubectl(
        self, *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, seconds: float = 60
    ) -> str:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(kubectl_binary()), *arguments],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(kubeconfig or self.admin_kubeconfig)},
        )
        if done.returncode:
            raise KubectlFailed(arguments, done.returncode, done.stderr)
        return done.stdout

    def kill_apiserver(self) -> None:
        """Nobody listens from now on, and all connections end; what was stored stays."""
        front, self._front = self._front, None
        assert front is not None
        assert front._runner is not None
        # Not by its own end, which ends the watches of the server behind it for good.
        self._call(front._runner.cleanup())
        self.api.close()

    def start_apiserver(self) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.credentials.cert_file, self.credentials.key_file)
        self._front = self._call(HttpListener(self._server, port=self._port, tls=tls).__aenter__())

    def restart_apiserver(self) -> None:
        if self._front is not None:
            self.kill_apiserver()
        self.start_apiserver()

    def pause_apiserver(self) -> None:
        """No request is answered any more."""
        self._resume = self.request_faults.add(HalfOpen())

    def resume_apiserver(self) -> None:
        self._resume()

    def copy_logs(self, folder: Path) -> None:
        """There are none."""

    def __getattr__(self, name: str) -> Any:
        raise RealOnly(f"the server in memory has no {name}")

    # Inside --------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        async with self._server:
            self._entered.set()
            await self._ended.wait()

    async def _answer(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        user = self._user(request)
        if not user:
            return StatusError(401, "Unauthorized", "Unauthorized").response()

        async def go_on(request: ApiRequest) -> ApiResponse:
            if user in self._people and RequestInfo.of(request).verb:
                return await forbidden(user).apply(request, handler)
            return await self.request_faults(request, handler)

        return await self.audit_log.note(request, go_on)

    def _user(self, request: ApiRequest) -> str:
        return self._users.get(request.header("authorization").partition(" ")[2], "")

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def _served(self, path: str) -> bool:
        try:
            self.api.request("GET", path, query={"limit": "1"})
        except Exception as error:
            raise AssertionError(str(error)) from None
        return True
