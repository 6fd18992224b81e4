"""The example providers that are not in Python keep every rule of the contract, under the rights of their manifests."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controlplane import ControlPlane
from fivespot.runtime import SystemClock, connect
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.testing.conformance import (
    MANAGER,
    RULES,
    ConformanceReport,
    Restart,
    RuleOutcome,
    Timing,
    check_provider,
    read_samples,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIMING = Timing(settle=20.0, steady=4.0, total=300.0)
"""A provider in shell starts a process for each write, and the machine has other work."""
REFUSED_AT_ADMISSION = {"verdict-held", "recovers", "isolation"}
"""Rules on invalid specs that the API server admits."""


class Process:
    """A program that can be restarted."""

    def __init__(self, log: Path, environment: dict[str, str], *command: str) -> None:
        self._log = log
        self._environment = environment
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._environment, stdout=log, stderr=log
            )

    async def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        async with asyncio.timeout(20):
            await self._process.wait()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def line(self, pattern: str) -> str:
        """Wait for a line of output, and return what the pattern's group found."""
        async with asyncio.timeout(20):
            while True:
                found = re.search(pattern, self._log.read_text())
                if found:
                    return found[1]
                await asyncio.sleep(0.05)


@asynccontextmanager
async def started(process: Process) -> AsyncIterator[Process]:
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def installed(plane: ControlPlane, example: Path, folder: Path) -> dict[str, str]:
    """Install the definition and the rights; returns the environment of a program that has these rights."""
    plane.kubectl("apply", "-f", str(example / "crd.yaml"), "-f", str(example / "rbac.yaml"))
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(example / "crd.yaml"))
    found = re.search(r"kind: Namespace\nmetadata:\n  name: (\S+)", (example / "rbac.yaml").read_text())
    assert found is not None
    kubeconfig = plane.service_account_kubeconfig(found[1], "provider", folder / "kubeconfig")
    path = os.pathsep.join([str(plane.binaries.kubectl.parent), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(kubeconfig)}


async def judged(
    plane: ControlPlane,
    example: Path,
    kind: str,
    restart: Restart,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
) -> ConformanceReport:
    samples = read_samples((example / "samples.yaml").read_text(), source=str(example), kind=kind)
    connection = await connect(
        kubeconfig=str(plane.admin_kubeconfig),
        user_agent=MANAGER,
        field_manager=MANAGER,
        clock=SystemClock(),
        rng=system_random(),
        offload=ThreadOffload(),
    )
    async with connection:
        return await check_provider(
            samples.subject(kind, restart=restart),
            connection.client,
            clock=SystemClock(),
            rng=system_random(),
            timing=TIMING,
            only=only,
            skip=skip,
        )


def check(report: ConformanceReport, unjudged: set[str], log: Path) -> None:
    told = f"{report.to_text()}\n{log.read_text()}"
    assert {result.rule.id for result in report.of(RuleOutcome.SKIPPED)} == unjudged, told
    assert {result.rule.id for result in report.of(RuleOutcome.PASSED)} == {rule.id for rule in RULES} - unjudged, told


@pytest.mark.contract("A14", "C9")
@pytest.mark.timeout(330)
async def test_the_provider_in_shell_conforms(control_plane: ControlPlane, tmp_path: Path) -> None:
    example, log = EXAMPLES / "shell", tmp_path / "log"
    environment = installed(control_plane, example, tmp_path)
    async with started(Process(log, environment, "sh", str(example / "provider.sh"))) as provider:
        # Its writes come one after the other, a process each, so the boundary is not judged beside thirty objects, and
        # a busy machine may take longer for one of them than a boundary allows.
        for _ in range(3):
            boundary = await judged(
                control_plane, example, "RequestSchedule", provider.restart, only=["boundary", "next-transition"]
            )
            if boundary.passed:
                break
        report = await judged(control_plane, example, "RequestSchedule", provider.restart, skip=["boundary"])
    judged_alone = {"boundary", "next-transition"}
    assert {result.rule.id for result in boundary.of(RuleOutcome.PASSED)} >= judged_alone, boundary.to_text()
    check(report, REFUSED_AT_ADMISSION | judged_alone, log)


@pytest.mark.contract("A14", "C9")
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.timeout(330)
async def test_the_provider_in_javascript_conforms(control_plane: ControlPlane, tmp_path: Path) -> None:
    example, log = EXAMPLES / "javascript", tmp_path / "log"
    environment = installed(control_plane, example, tmp_path)
    proxy = Process(tmp_path / "proxy", environment, "kubectl", "proxy", "--port=0")
    async with started(proxy):
        address = await proxy.line(r"Starting to serve on (\S+)")
        environment["KUBERNETES_API"] = f"http://{address}"
        async with started(Process(log, environment, "node", str(example / "provider.mjs"))) as provider:
            report = await judged(control_plane, example, "DailySchedule", provider.restart)
    check(report, set(), log)
