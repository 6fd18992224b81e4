"""A control plane with the real Cluster API: core manager, simulated providers and `fivespot manager`.

Everything runs as a process of its own; the manager has the shipped rights and is judged by the shipped policy. The
workload cluster of every Cluster is the control plane itself.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from controlplane import FAST_GATES, Api, ControlPlane, cluster_api_version, read_crds, select
from controlplane.credentials import PROVIDERS, WORKLOAD
from controlplane.server import CLUSTER_API_CONTROLLERS
from fivespot.testing.clusterapi import SIMULATED, SIMULATED_EARLIER, CoreVersion, KindFamily, cluster_bodies, is_usable
from harness import MANAGER_USER, MANIFESTS, ManagerProcess, install
from harness.manager import REPOSITORY
from harness.providers import ProviderKind
from harness.wait import eventually

from .cluster import CLUSTER_NAME, unique_name

Json = dict[str, Any]

POLL = 0.25
"""Seconds between two looks: many tests wait here at once, on few cores."""

_AS_SHIPPED = ("--enable-leader-election", "--require-admission-policy")
_SIMULATED = ("--core", "--drain-interval", "5")

_FIRST_WITH_V1BETA2 = (1, 11)


class Environment:
    """One control plane with all of it; a context manager (about 10 s until it is ready).

    :param feature_gates: of Cluster API.
    :param arguments: of the manager.
    :param simulated: with the simulated core in place of Cluster API's own.
    """

    def __init__(
        self,
        *,
        feature_gates: Mapping[str, bool] = FAST_GATES,
        arguments: Sequence[str] = (),
        simulated: bool = False,
    ) -> None:
        self.simulated = simulated
        self.families = (SIMULATED, SIMULATED_EARLIER)
        definitions = [definition for family in self.families for definition in family.definitions()]
        self.plane = ControlPlane(
            crds=[*read_crds(MANIFESTS / "crds"), *definitions],
            cluster_api=not simulated,
            controllers=CLUSTER_API_CONTROLLERS,
            feature_gates=feature_gates,
        )
        self._arguments = arguments
        self._stack = contextlib.ExitStack()
        self.schedules: ProviderKind
        """A kind of schedule that tests play."""
        self.manager: ManagerProcess
        self.providers: ProvidersProcess

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.plane)
            install(self.plane)
            self.schedules = ProviderKind(self.api, "Played")
            self.schedules.install()
            self.providers = stack.enter_context(ProvidersProcess(self.plane, *(_SIMULATED if self.simulated else ())))
            self.manager = stack.enter_context(ManagerProcess(self.plane, *_AS_SHIPPED, *self._arguments))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def api(self) -> Api:
        return self.plane.api

    @property
    def release(self) -> tuple[int, ...]:
        """Of Cluster API: (major, minor)."""
        return tuple(map(int, cluster_api_version().split(".")[:2]))

    @property
    def core_version(self) -> CoreVersion:
        """The newest version of Machines that is served, which is the one that is stored and that the manager takes."""
        return "v1beta2" if self.release >= _FIRST_WITH_V1BETA2 else "v1beta1"

    @property
    def machines(self) -> tuple[str, str]:
        """Machines as the test client wants them named."""
        return f"cluster.x-k8s.io/{self.core_version}", "Machine"

    @property
    def clusters(self) -> tuple[str, str]:
        return f"cluster.x-k8s.io/{self.core_version}", "Cluster"

    @property
    def family(self) -> KindFamily:
        """The simulated kinds that follow the newest contract of the release."""
        return SIMULATED if self.release >= _FIRST_WITH_V1BETA2 else SIMULATED_EARLIER

    def namespace(self, base: str, *, cluster: str | None = CLUSTER_NAME, family: KindFamily | None = None) -> str:
        """A new namespace with a usable Cluster in it (3 s); None for no Cluster."""
        name = unique_name(base)
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        if cluster is not None:
            self.create_cluster(name, cluster, family=family)
        return name

    def create_cluster(
        self, namespace: str, name: str = CLUSTER_NAME, *, family: KindFamily | None = None, wait: bool = True
    ) -> None:
        """A Cluster in a namespace; returns when its Machines can find their Nodes."""
        for body in self.cluster_bodies(namespace, name, family=family):
            self.api.create(body)
        if wait:
            self.wait_usable(namespace, name)

    def cluster_bodies(
        self, namespace: str, name: str = CLUSTER_NAME, *, family: KindFamily | None = None
    ) -> list[Json]:
        """Return the objects of a Cluster, in the order of their creation."""
        with tempfile.TemporaryDirectory() as folder:
            token = self.plane.credentials.tokens[WORKLOAD]
            text = self.plane.kubeconfig(Path(folder) / "workload", token=token).read_text()
        host, port = self.plane.url.removeprefix("https://").split(":")
        return cluster_bodies(
            namespace,
            name,
            kubeconfig=text,
            host=host,
            port=int(port),
            family=family or self.family,
            version=self.core_version,
        )

    def wait_usable(self, namespace: str, name: str = CLUSTER_NAME, timeout: float = 60) -> None:
        """Wait until Machines of the Cluster can find their Nodes."""

        def usable() -> bool:
            self.providers.check()
            return is_usable(self.api.get(*self.clusters, name, namespace))

        eventually(usable, timeout, what=f"Cluster {namespace}/{name} is usable", poll=POLL)

    def delete_namespace(self, namespace: str) -> None:
        """Ask for its deletion, without waiting."""
        self.api.delete("v1", "Namespace", namespace, missing_ok=True)

    @contextlib.contextmanager
    def other_manager(
        self, *arguments: str, environment: dict[str, str] | None = None, kubeconfig: Path | None = None
    ) -> Iterator[ManagerProcess]:
        """Another manager in place of the usual one, which starts again at the end."""
        self.manager.stop()
        usual = self.manager
        try:
            with ManagerProcess(
                self.plane, *_AS_SHIPPED, *arguments, environment=environment, kubeconfig=kubeconfig
            ) as process:
                self.manager = process
                yield process
        finally:
            self.manager = usual
            usual.start()

    def forbidden(self) -> list[str]:
        """Return the manager's requests that were forbidden so far."""
        refused = select(self.plane.audit(), user=MANAGER_USER, code=403)
        # In a namespace that is being deleted nothing can be created, whatever the rights are.
        return [
            f"{event['verb']} {event['requestURI']}: {event['responseStatus'].get('message', '')}"
            for event in refused
            if "is being terminated" not in event["responseStatus"].get("message", "")
        ]

    def keep_logs(self, folder: Path) -> None:
        """Copy all logs, for the analysis of a failure."""
        self.plane.copy_logs(folder)
        for name, log in (("manager", self.manager.log), ("providers", self.providers.log)):
            (folder / f"{name}.log").write_bytes(log.read_bytes())


class ProvidersProcess:
    """The simulated providers of Cluster API as a process; a context manager."""

    def __init__(self, plane: ControlPlane, *arguments: str) -> None:
        self._plane = plane
        self._arguments = arguments
        self.log = plane.folder / "simulated-providers.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and do not wait: what it is to do waits for it."""
        kubeconfig = self._plane.kubeconfig(
            self._plane.folder / "providers.kubeconfig", token=self._plane.credentials.tokens[PROVIDERS]
        )
        command = [sys.executable, "-m", "fivespot.testing.clusterapi", "--kubeconfig", str(kubeconfig)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--no-definitions", *self._arguments], stdout=log, stderr=subprocess.STDOUT, cwd=REPOSITORY
            )

    def check(self) -> None:
        """
        :raises RuntimeError: it has ended.
        """
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the simulated providers ended:\n{self.log.read_text(errors='replace')[-2000:]}")

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(35)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise AssertionError("the simulated providers did not stop within 35 s") from None
            self._process = None


def at_once(*works: Any) -> list[Any]:
    """Run functions in threads at the same time; their results in order, or the first error."""
    with ThreadPoolExecutor(max_workers=len(works)) as pool:
        return [future.result() for future in [pool.submit(work) for work in works]]
