"""Starts `fivespot manager` where it cannot work (yet): with bad credentials, or as if in a pod."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controlplane import ControlPlane

from .manager import SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess

_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.errors.splitlines() if line]


def run_manager(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> Ended:
    """Run it with free ports until it ends by itself; the home is an empty folder."""
    command = [
        *(sys.executable, "-m", "fivespot.cli", "manager"),
        *("--metrics-port", "0", "--health-port", "0", *arguments),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
        cwd=folder,
        env={"HOME": str(folder), "PATH": os.environ["PATH"], **(environment or {})},
    )
    return Ended(done.returncode, done.stdout, done.stderr)


_POD = """
import sys
from pathlib import Path
from fivespot.runtime.client import connecting
connecting.SERVICE_ACCOUNT = Path(sys.argv.pop(1))
from fivespot.cli.main import main
main()
"""
"""Only kubelet can put files where a pod has its credentials, so the one path is changed."""


class PodProcess(ManagerProcess):
    """A manager that finds its server and credentials as in a pod of the cluster."""

    def __init__(self, plane: ControlPlane, account: Path, *arguments: str) -> None:
        host, port = plane.url.removeprefix("https://").split(":")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        super().__init__(plane, "--bind-address", "127.0.0.1", *arguments, environment=environment)
        self._account = account

    def start(self, *, wait: bool = True) -> None:
        command = [
            *(sys.executable, "-c", _POD, str(self._account), "manager"),
            *("--metrics-port", "0", "--health-port", "0", *self._arguments),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder.name, env=self._env()
            )
        if wait:
            self.wait_ready()


@contextlib.contextmanager
def begun(manager: ManagerProcess) -> Iterator[ManagerProcess]:
    """The manager started and not waited for: it cannot be ready yet."""
    manager.start(wait=False)
    try:
        yield manager
    finally:
        manager.__exit__(None, None, None)


def mount_service_account(plane: ControlPlane, folder: Path) -> Path:
    """The files that kubelet gives a pod of the manager."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(plane.service_account_token(SYSTEM_NAMESPACE, SERVICE_ACCOUNT))
    (folder / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    (folder / "namespace").write_text(SYSTEM_NAMESPACE)
    return folder
