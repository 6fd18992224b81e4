"""The embedded API server as a control plane in virtual time, for synchronous tests.

Everything happens in the test's own thread. The loop with the server and the manager runs while the test asks the
server something and while it sleeps, and what it sleeps costs nothing.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from controlplane import Api, cluster_api_crds, kubernetes_version, read_crds, stand_in_crds
from controlplane.audit import COMPLETE
from controlplane.build import Binaries
from controlplane.credentials import ADMIN
from controlplane.server import KubectlFailed
from fivespot.apiserver import ApiRequest, ApiResponse, Handler, HttpListener, kubeconfig, write_kubeconfig
from fivespot.apiserver.messages import parse_query
from fivespot.testing.cluster import EmbeddedCluster
from harness import MANAGER_USER, MANIFESTS, SYSTEM_NAMESPACE

from .audit import Audit
from .loop import EnteredContext, PacedLoop
from .request_faults import RequestFaults

if TYPE_CHECKING:
    from .manager import EmbeddedManager

__all__ = ["AGENT", "EmbeddedApi", "EmbeddedControlPlane", "RealOnly", "definitions", "kubectl_binary"]

Json = dict[str, Any]
T = TypeVar("T")

AGENT = "5spot-controller"
START = datetime(2026, 6, 1, 10, tzinfo=UTC)


class RealOnly(Exception):
    """The test needs something that only the real control plane has."""


class EmbeddedApi(Api):
    """The tests' client, without a socket."""

    def __init__(self, plane: EmbeddedControlPlane, *, user_agent: str = "fivespot-tests") -> None:
        super().__init__("https://in-process", ca_file=None, token="", user_agent=user_agent)
        self._plane = plane

    @property
    def request_faults(self) -> RequestFaults:
        return self._plane.request_faults

    def create_many(self, bodies: Iterable[Json], *, workers: int = 8) -> list[Json]:
        return [self.create(body) for body in bodies]

    def _exchange(self, method: str, target: str, payload: bytes | None, headers: Any) -> tuple[int, bytes]:
        path, _, query = target.partition("?")
        asked = {name.lower(): value for name, value in headers.items()}
        request = ApiRequest(method, path, parse_query(query), asked, payload or b"")
        answer = self._plane.run(self._plane.cluster.server.handle(request))
        assert isinstance(answer.body, bytes)
        return answer.status, answer.body


class EmbeddedControlPlane:
    """The part of a control plane that tests use; anything else raises :class:`RealOnly`.

    Options are those of :class:`controlplane.ControlPlane`. There is no controller manager to leave out: what it does
    for tests, the server does by itself.
    """

    current: EmbeddedControlPlane
    """The one whose time a test has: the last that was made, or :meth:`enter`ed."""

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
        self._loop = PacedLoop()
        self.cluster = EmbeddedCluster(start=START)
        self.audit_log = Audit(self.cluster.clock.now, user_of)
        self.request_faults = RequestFaults(user_of)
        self.cluster.server.middleware = self._answer
        self._held = EnteredContext(self._loop, self.cluster)
        self._front: EnteredContext[HttpListener] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fivespot-embedded-")
        self.api = EmbeddedApi(self)
        self.managers: list[EmbeddedManager] = []
        self.install_crds(read_crds(MANIFESTS / "crds") if crds is None else crds)
        if install_crds:
            self.install_crds(definitions())
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
        self.enter()

    def enter(self) -> None:
        """Have the test that follows live in this one's time."""
        EmbeddedControlPlane.current = self

    def stop(self) -> None:
        for manager in self.managers:
            manager.stop()
        if self._front is not None:
            self._front.close()
        self._held.close()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        with self._loop.paced():
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._folder.cleanup()

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(main)

    def hold(self, context: AbstractAsyncContextManager[T]) -> EnteredContext[T]:
        return EnteredContext(self._loop, context)

    # What stands for the modules time and datetime.

    def sleep(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    def monotonic(self) -> float:
        return self._loop.time()

    def now(self) -> datetime:
        return self.run(_call(self.cluster.clock.now))

    # As the real one has it.

    def audit(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[Json]:
        return self.audit_log.events(since=since, stages=stages)

    def api_of(self, user: str) -> EmbeddedApi:
        """The tests' client as somebody else."""
        return EmbeddedApi(self, user_agent=user)

    def install_crds(self, crds: Iterable[Json]) -> None:
        for definition in crds:
            self.api.create(definition)
        self.sleep(0.1)

    def kubectl(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        """The real kubectl, with the server on a port and time as outside meanwhile."""
        binary = kubectl_binary()
        if self._front is None:
            self._front = self.hold(HttpListener(self.cluster.server))
        home = Path(self._folder.name)
        config = home / "kubeconfig"
        write_kubeconfig(config, kubeconfig(self._front.value.url))
        command = [str(binary), *arguments]
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(config)}
        with self._loop.paced():
            done = self.run(_run(command, stdin or "", environment, seconds))
        if done.returncode:
            raise KubectlFailed(arguments, done.returncode, done.stderr)
        return done.stdout

    def __getattr__(self, name: str) -> Any:
        raise RealOnly(f"the server in memory has no {name}")

    async def _answer(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        async def go_on(request: ApiRequest) -> ApiResponse:
            return await self.request_faults(request, handler)

        return await self.audit_log.note(request, go_on)


def user_of(request: ApiRequest) -> str:
    """Nobody has credentials here: the manager is known by its name, and others say who they are."""
    agent = request.header("user-agent")
    if agent.startswith(AGENT):
        return MANAGER_USER
    return agent if agent.startswith("system:") else ADMIN


@cache
def definitions() -> list[Json]:
    """Cluster API's own definitions and the stand-ins, as the real control plane has them."""
    return [*cluster_api_crds(), *stand_in_crds()]


def kubectl_binary() -> Path:
    """The real kubectl; a test that needs it is skipped where nobody has built it."""
    binary = Binaries.of(kubernetes_version()).kubectl
    if not binary.is_file():
        pytest.skip("kubectl is not built: ./dev build-controlplane")
    return binary


async def _call(function: Callable[[], T]) -> T:
    """On the loop, for what reads its clock."""
    return function()


async def _run(
    command: list[str], stdin: str, environment: dict[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        command,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environment,
    )
