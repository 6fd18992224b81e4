"""Runs `fivespot manager` for tests: as a process of its own, or in this process with shorter waiting times."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from controlplane import ControlPlane
from fivespot.cli.manager import ManagerOptions
from fivespot.cli.options import CONTROLLERS
from fivespot.cli.process import assemble
from fivespot.controllers import scheduledmachine
from fivespot.controllers.scheduledmachine import Timings
from fivespot.providers import timebased
from fivespot.runtime.client import connect
from fivespot.runtime.clock import SystemClock, ThreadOffload, system_chance

from .waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
MANIFESTS = REPOSITORY / "manifests"
SYSTEM_NAMESPACE = "5spot-system"
SERVICE_ACCOUNT = "5spot-controller"
MANAGER_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{SERVICE_ACCOUNT}"
"""The user that the audit log names for everything that the manager does under the shipped RBAC."""

_START_SECONDS = 40.0
_STOP_SECONDS = 35.0


def install(plane: ControlPlane) -> None:
    """Apply the shipped manifests, RBAC and admission policy included, as an administrator would."""
    plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS))


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
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def start(self, *, wait: bool = True) -> None:
        """Start it and, unless told otherwise, wait until `/readyz` is green."""
        if self._kubeconfig is None:
            path = Path(self._folder.name) / "kubeconfig"
            self._kubeconfig = self._plane.service_account_kubeconfig(SYSTEM_NAMESPACE, SERVICE_ACCOUNT, path)
        command = [
            *(sys.executable, "-m", "fivespot.cli", "manager", "--kubeconfig", str(self._kubeconfig)),
            *("--metrics-port", "0", "--health-port", "0", *self._arguments),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder.name, env=self._env()
            )
        if wait:
            eventually(self._ready, _START_SECONDS, what="the manager is ready")

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"the manager did not stop within {_STOP_SECONDS} s:\n{self.tail()}") from None
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
        for line in self._get(self._ports()[0], "/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples

    def health(self, path: str) -> tuple[int, str]:
        """Status and body of a path on the health port."""
        return self._get(self._ports()[1], path)

    def debug(self, name: str) -> Any:
        """What `/debug/NAME` shows."""
        return json.loads(self._get(self._ports()[0], f"/debug/{name}")[1])

    def _ready(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"the manager ended with exit code {code}:\n{self.tail()}")
        try:
            return self.health("/readyz")[0] == 200
        except OSError:
            return False

    def _ports(self) -> tuple[int, int]:
        text = self.log.read_text(errors="replace")
        found = re.search(r'"metrics_port": ?(\d+)', text), re.search(r'"health_port": ?(\d+)', text)
        if found[0] is None or found[1] is None:
            raise LookupError("the manager has not logged its ports yet")
        return int(found[0][1]), int(found[1][1])

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


@contextlib.contextmanager
def manager_in_process(
    plane: ControlPlane,
    timings: Timings,
    *,
    kubeconfig: Path | None = None,
    namespaces: Sequence[str] | None = None,
    **changes: Any,
) -> Iterator[None]:
    """A manager in a thread of this process, for rows that wait longer than half a minute by default."""
    with tempfile.TemporaryDirectory(prefix="fivespot-manager-") as folder:
        path = kubeconfig or plane.service_account_kubeconfig(
            SYSTEM_NAMESPACE, SERVICE_ACCOUNT, Path(folder) / "kubeconfig"
        )
        runner = _Thread(partial(_run, str(path), timings, namespaces, changes))
        runner.start()
        try:
            yield
        finally:
            runner.stop()


async def _run(
    kubeconfig: str,
    timings: Timings,
    namespaces: Sequence[str] | None,
    changes: dict[str, Any],
    stop: asyncio.Event,
    ready: threading.Event,
) -> None:
    clock, chance, offload = SystemClock(), system_chance(), ThreadOffload()
    connection = await connect(
        kubeconfig=kubeconfig, context=None, user_agent="fivespot/test", clock=clock, chance=chance, offload=offload
    )
    try:
        manager = assemble(_options(namespaces, changes), connection, clock=clock, chance=chance, offload=offload)
        manager.add(partial(scheduledmachine.build, timings=timings))
        manager.add(timebased.build)
        running = asyncio.create_task(manager.run(stop))
        while not running.done() and not (manager.controllers and all(c.ready for c in manager.controllers)):
            await asyncio.sleep(0.02)
        ready.set()
        await running
    finally:
        await connection.client.close()


def _options(namespaces: Sequence[str] | None, changes: dict[str, Any]) -> ManagerOptions:
    values: dict[str, Any] = {
        "controllers": (),
        "namespaces": tuple(namespaces) if namespaces is not None else None,
        "kubeconfig": None,
        "context": None,
        "bind_address": "127.0.0.1",
        "metrics_port": 0,
        "health_port": 0,
        "log_format": "json",
        "verbose": 0,
        "leader_election": False,
        "lease_name": "5spot-leader",
        "lease_namespace": SYSTEM_NAMESPACE,
        "lease_duration": 15.0,
        "lease_renew_deadline": 10.0,
        "lease_retry_period": 2.0,
        "dry_run": False,
        "force_finalizer_on_timeout": False,
        "max_deletions_per_minute": None,
        "capi_version": None,
        "instance_id": 0,
        "pod_name": "in-process",
        "event_loop": "asyncio",
    }
    return ManagerOptions(**{**values, **changes})


class _Thread:
    """An event loop in a thread: stopped by an event, its error raised to the test."""

    def __init__(self, main: Callable[..., Any]) -> None:
        self._main = main
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="manager", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(_START_SECONDS) or self._error is not None:
            self.stop()
            raise AssertionError("the manager did not become ready")

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)
        assert not self._thread.is_alive(), "the manager did not stop"
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        async def main() -> None:
            self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
            await self._main(self._stop, self._ready)

        try:
            asyncio.run(main())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()


assert set(CONTROLLERS) == {"scheduledmachine", "timebasedspotschedule"}, "teach manager_in_process the new kinds"
