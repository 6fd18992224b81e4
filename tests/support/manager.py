"""Runs `fivespot manager` for tests: as a process, as if in a pod, or in this process with shorter waiting times."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from controlplane import ControlPlane
from fivespot.cli.options import CONTROLLERS, ManagerOptions
from fivespot.cli.process import assemble, controller_factory, machine_settings
from fivespot.controllers import scheduledmachine
from fivespot.controllers.scheduledmachine import Timings
from fivespot.runtime import SystemClock, connect
from fivespot.runtime.client import WATCH_LIMITS, Limits
from fivespot.runtime.clock import ThreadOffload, system_random
from harness import SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess
from harness.manager import START_SECONDS, STOP_SECONDS


@contextlib.contextmanager
def manager_in_process(
    plane: ControlPlane,
    timings: Timings,
    *,
    kubeconfig: Path | None = None,
    namespaces: Sequence[str] | None = None,
    watch_limits: Limits = WATCH_LIMITS,
    **changes: Any,
) -> Iterator[None]:
    """A manager in a thread of this process, for rows that wait longer than half a minute by default."""
    with tempfile.TemporaryDirectory(prefix="fivespot-manager-") as folder:
        path = kubeconfig or plane.service_account_kubeconfig(
            SYSTEM_NAMESPACE, SERVICE_ACCOUNT, Path(folder) / "kubeconfig"
        )
        runner = _Thread(partial(_run, str(path), timings, namespaces, watch_limits, changes))
        runner.start()
        try:
            yield
        finally:
            runner.stop()


async def _run(
    kubeconfig: str,
    timings: Timings,
    namespaces: Sequence[str] | None,
    watch_limits: Limits,
    changes: dict[str, Any],
    stop: asyncio.Event,
    ready: threading.Event,
) -> None:
    clock, rng, offload = SystemClock(), system_random(), ThreadOffload()
    connection = await connect(
        kubeconfig=kubeconfig, context=None, user_agent="fivespot/test", clock=clock, rng=rng, offload=offload
    )
    try:
        options = _options(namespaces, changes)
        manager = assemble(
            options,
            connection,
            clock=clock,
            rng=rng,
            offload=offload,
            watch_limits=watch_limits,
        )
        for name in CONTROLLERS:
            if name == "scheduledmachine":
                manager.add(partial(scheduledmachine.build, timings=timings, settings=machine_settings(options)))
            else:
                manager.add(controller_factory(name, options))
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
        if not self._ready.wait(START_SECONDS) or self._error is not None:
            self.stop()
            raise AssertionError("the manager did not become ready")

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)
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


_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a process."""

    code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.errors.splitlines() if line]


def run_manager(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> Ended:
    """Run it with free ports and an empty home directory until it exits."""
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
from fivespot.runtime.client import connection
connection.SERVICE_ACCOUNT = Path(sys.argv.pop(1))
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
