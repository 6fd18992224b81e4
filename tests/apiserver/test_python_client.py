"""A program on the official (synchronous) Python client, on both servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.targets import DEFINITIONS, Target

PROGRAM = Path(__file__).with_name("pythonclient") / "program.py"
GROUP = "pythonclient.example.com"
ACCOUNT: dict[str, Any] = json.loads(PROGRAM.with_name("account.json").read_text())
"""The results that the program must see on both servers."""


def _command(name: str, target: Target, namespace: str, last: str) -> list[str]:
    return [sys.executable, "-W", "error", str(PROGRAM), name, str(target.config), namespace, last]


@pytest.fixture(scope="module")
def account(target: Target) -> dict[str, Any]:
    """The program's output."""
    ns = target.namespace()
    command = _command("exercise", target, ns, GROUP)
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    target.delete(f"{DEFINITIONS}/gadgets.{GROUP}")
    target.leave(ns)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("part", ACCOUNT)
def test_what_the_client_sees(account: dict[str, Any], part: str) -> None:
    assert account[part] == ACCOUNT[part]


def test_every_part_is_judged(account: dict[str, Any]) -> None:
    assert set(account) == set(ACCOUNT)


class Candidate:
    """A candidate of the leader election."""

    def __init__(self, process: subprocess.Popen[str], out: Path, log: Path) -> None:
        self.process = process
        self._out, self._log = out, log

    def told(self, what: str) -> bool:
        """Whether it has told that it is a candidate, or leads."""
        assert self.process.poll() is None, self._log.read_text()[-3000:]
        return what in self._out.read_text().split()


@contextmanager
def candidate(target: Target, namespace: str, name: str, folder: Path) -> Iterator[Candidate]:
    out, log = folder / f"{name}.out", folder / f"{name}.log"
    command = _command("lead", target, namespace, name)
    with (
        out.open("w") as lines,
        log.open("w") as errors,
        subprocess.Popen(command, stdout=lines, stderr=errors, text=True) as process,
    ):
        try:
            yield Candidate(process, out, log)
        finally:
            process.kill()


def test_a_candidate_takes_over_from_a_leader_that_was_killed(target: Target, ns: str, tmp_path: Path) -> None:
    def held() -> dict[str, Any]:
        lease = target.get(f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/leader").ok()
        spec: dict[str, Any] = lease["spec"]
        return spec

    def renewed() -> None:
        before = held()["renewTime"]
        target.eventually(lambda: held()["renewTime"] != before, 60)

    with candidate(target, ns, "first", tmp_path) as first:
        target.eventually(lambda: first.told("leading"), 60)
        with candidate(target, ns, "second", tmp_path) as second:
            target.eventually(lambda: second.told("candidate"), 60)
            for _ in range(3):
                renewed()
            assert held()["holderIdentity"] == "first"
            assert not second.told("leading")
            first.process.kill()
            first.process.wait()
            last = held()
            target.eventually(lambda: second.told("leading"), 60)
            taken = held()
    assert taken["holderIdentity"] == "second"
    ran_out = datetime.fromisoformat(last["renewTime"]) + timedelta(seconds=last["leaseDurationSeconds"])
    assert datetime.fromisoformat(taken["acquireTime"]) >= ran_out
