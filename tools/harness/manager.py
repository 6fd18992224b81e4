"""Runs `fivespot manager` as a process of its own against a control plane, under the shipped rights."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from controlplane import ControlPlane
from harness.wait import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
MANIFESTS = REPOSITORY / "manifests"
SYSTEM_NAMESPACE = "5spot-system"
SERVICE_ACCOUNT = "5spot-controller"
MANAGER_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{SERVICE_ACCOUNT}"
"""The user that the audit log names for everything that the manager does under the shipped RBAC."""

START_SECONDS = 40.0
STOP_SECONDS = 35.0


def install(plane: ControlPlane, *, definitions: bool = True) -> None:
    """Apply the shipped manifests, RBAC and admission policy included, as an administrator would.

    The server in memory has the account already, and neither rights nor admission rules.

    :param definitions: False applies only what a manager's account and rights consist of.
    """
    in_memory = not isinstance(plane, ControlPlane)
    if in_memory:
        return
    if definitions:
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS))
        return
    for folder in ("manager/namespace.yaml", "rbac"):
        plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / folder))
    account = ("v1", "ServiceAccount", SERVICE_ACCOUNT, SYSTEM_NAMESPACE)
    eventually(lambda: plane.api.find(*account), what="the account")


def install_for(plane: ControlPlane, namespace: str) -> None:
    """Apply the manifests for a manager that has rights in one namespace alone; nothing on the server in memory."""
    in_memory = not isinstance(plane, ControlPlane)
    if in_memory:
        return
    for path in (
        "manager/namespace.yaml",
        "rbac/service-account.yaml",
        "rbac/leader-election.yaml",
        "namespaced/definitions.yaml",
        "admission",
    ):
        plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / path))
    plane.kubectl("apply", "--server-side", "-n", namespace, "-k", str(MANIFESTS / "namespaced"))


class ManagerProcess:
    """One `fivespot manager` under the shipped ServiceAccount. Use it as a context manager, or start and stop it."""

    def __init__(
        self,
        plane: ControlPlane,
        *arguments: str,
        kubeconfig: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._plane = plane
        self._arguments = arguments
        self._folder = tempfile.TemporaryDirectory(prefix="fivespot-manager-")
        self._kubeconfig = kubeconfig
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self.log = Path(self._folder.name) / "manager.log"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            # Nobody leaves what was not entered, and a folder left behind warns in some later test.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._folder.cleanup()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start it and, by default, wait until `/readyz` returns 200."""
        if self._kubeconfig is None:
            path = Path(self._folder.name) / "kubeconfig"
            self._kubeconfig = self._plane.service_account_kubeconfig(SYSTEM_NAMESPACE, SERVICE_ACCOUNT, path)
        command = [
            *(sys.executable, "-m", "fivespot.cli", "manager", "--kubeconfig", str(self._kubeconfig)),
            *("--metrics-port", "0", "--health-port", "0", "--debug", *self._arguments),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder.name, env=self._env()
            )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until `/readyz` is green."""
        eventually(self._ready, START_SECONDS, what="the manager is ready")

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"the manager did not stop within {STOP_SECONDS} s:\n{self.tail()}") from None
        self._process = None
        return process.returncode

    def kill(self) -> None:
        """End it without warning, as a node that dies would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.log.write_bytes(b"")
        self.start()

    def logs(self) -> list[dict[str, Any]]:
        """The log so far, one record each; lines that are no JSON under `raw`."""
        return [_record(line) for line in self.log.read_text(errors="replace").splitlines()]

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def metrics(self) -> dict[str, float]:
        """All samples of `/metrics`: `name{labels}` -> value."""
        samples = {}
        for line in self._get(self.ports()[0], "/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples

    def health(self, path: str) -> tuple[int, str]:
        """Status and body of a path on the health port."""
        return self._get(self.ports()[1], path)

    def debug(self, name: str) -> Any:
        """Return the answer of `/debug/NAME`."""
        return json.loads(self._get(self.ports()[1], f"/debug/{name}")[1])

    def _ready(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"the manager ended with exit code {code}:\n{self.tail()}")
        try:
            return self.health("/readyz")[0] == 200
        except OSError:
            return False

    def ports(self) -> tuple[int, int]:
        """Return the ports of metrics and health."""
        text = self.log.read_text(errors="replace")
        found = [re.findall(rf'{name}_port"?[:=] ?(\d+)', text) for name in ("metrics", "health")]
        if not all(found):
            raise LookupError("the manager has not logged its ports yet")
        # The last ones: a manager that was stopped and started again goes on in the same log.
        return int(found[0][-1]), int(found[1][-1])

    @staticmethod
    def _get(port: int, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def _env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "POD_", "LEASE_"))}
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **self._environment}


def _record(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {"raw": line}
    return found if isinstance(found, dict) else {"raw": line}
