"""kube-apiserver and etcd that are killed again and again while many machines come and go."""

from __future__ import annotations

import contextlib
import http.client
import logging
import random
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane, select
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import MACHINE, machine
from support.scenario import CHILDREN, MACHINES

pytestmark = pytest.mark.first

WORK_SECONDS = 3.0
"""How long a kill waits for work that it can interrupt."""
FIRST_SECONDS = 40.0
"""The same as long as none did: a server that starts slowly refuses the manager, which asks again within 30 seconds."""
READY_SECONDS = 120.0
"""What a server on a busy machine may take until it is ready by its own standards."""
READ_SECONDS = 30.0
"""Within which everything is read again after that. Waits of our own that had added up would be longer."""
FLAT_SECONDS = 100.0
"""Connections that are idle are kept for a minute."""
SLACK = 12
"""Idle connections of the pool that there may be more, up to one per worker; a lost watch per restart would be more."""

AWAY = (ApiError, OSError, http.client.HTTPException)
"""What a request meets where a server is away or just coming back."""

ACTS = ("create", "delete")

MEASURED = logging.getLogger("measured")

Start = Any


class Churn:
    """Plays the provider: turns the machines of some namespaces on and off until told to stop."""

    def __init__(self, provider: ProviderKind, namespaces: dict[str, bool], seed: int) -> None:
        self._first = namespaces
        self._provider = provider
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="churn", daemon=True)
        self.last = dict(namespaces)
        self.flips = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """In the end each namespace is as it was not in the beginning, so that there was something to do in each."""
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        for namespace, active in self._first.items():
            self.last[namespace] = not active
            eventually(partial(self._tell, namespace, not active), 60, what="the provider's last word is told")

    def _tell(self, namespace: str, active: bool) -> bool:
        with contextlib.suppress(*AWAY):
            self._provider.status(namespace, active=active)
            return True
        return False

    def _work(self) -> None:
        while not self._stop.wait(self._rng.uniform(0.2, 0.8)):
            namespace = self._rng.choice(list(self.last))
            active = not self.last[namespace]
            # A server that is away hears of it later, or not at all.
            if self._tell(namespace, active):
                self.last[namespace] = active
                self.flips += 1


def uids(api: Api, namespace: str) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in api.list(*MACHINES, namespace)}


def settled(api: Api, namespace: str, count: int, active: bool) -> None:
    """Wait until each of ``count`` machines is as its provider says, with what belongs to it and no more."""

    def check() -> bool:
        try:
            found = {kind: api.list(*kind, namespace) for kind in (*CHILDREN, MACHINE)}
        except AWAY as error:
            raise AssertionError(str(error)) from error
        machines = found.pop(MACHINE)
        for (_, name), objects in found.items():
            assert len(objects) == (count if active else 0), f"{namespace}: {len(objects)} {name}, active={active}"
        phases = Counter(each.get("status", {}).get("phase") for each in machines)
        assert phases == {"Active" if active else "Inactive": count}, f"{namespace}: {phases}"
        return True

    eventually(check, 90, poll=1, what="every machine is as its provider says")


def descriptors(process: ManagerProcess) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def tasks(process: ManagerProcess) -> Counter[str]:
    return Counter(each["name"] for each in process.debug("tasks") if not each["name"].startswith("Task-"))


def reads(process: ManagerProcess) -> bool:
    found = process.debug("informers")
    failing = {each["resource"]: each["last_error"] for each in found if each["failing_for"] is not None}
    assert not failing, failing
    return True


def restart(plane: ControlPlane, rng: random.Random) -> float:
    """Kill the API server, at times leave it away for a moment, and start it again; seconds until it answers.

    Answering is enough: until it is ready by its own standards takes long on a busy machine, and the next kill is to
    meet it at any time.
    """
    began = time.monotonic()
    plane.kill_apiserver()
    time.sleep(rng.choice([0.0, 0.0, 1.5]))
    plane.start_apiserver()

    def answers() -> bool:
        with contextlib.suppress(*AWAY):
            plane.api.list(*MACHINE, "default")
            return True
        return False

    eventually(answers, 60, what="the API server answers")
    return time.monotonic() - began


def ready(plane: ControlPlane) -> bool:
    try:
        return bool(plane.api.request("GET", "/readyz") == {"text": "ok", "message": "ok"})
    except AWAY as error:
        raise AssertionError(str(error)) from error


def works(plane: ControlPlane, since: int, seconds: float) -> bool:
    """Whether the manager begins to make or delete machines within a while."""

    def check() -> bool:
        return bool(select(plane.audit(since=since), user=MANAGER_USER, verbs=ACTS, resource="machines"))

    with contextlib.suppress(AssertionError):
        return eventually(check, seconds, poll=0.2)
    return False


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("restarts", "each"),
    [
        pytest.param(3, 10, id="three times with sixty machines"),
        pytest.param(10, 50, id="ten times with three hundred machines", marks=pytest.mark.long),
    ],
)
def test_servers_killed_again_and_again_under_churn_lose_nothing_and_leave_nothing_behind(
    own_control_plane: Start, restarts: int, each: int
) -> None:
    """:param each: machines in each of six namespaces."""
    plane: ControlPlane = own_control_plane(audit=True)
    install(plane)
    provider = ProviderKind(plane.api, "Played")
    provider.install()
    names = [make_namespace(plane.api, name) for name in ("stays-on", "stays-off", "a", "b", "c", "d")]
    stays_on, stays_off, *changing = names
    active = {stays_on: True, stays_off: False} | {name: number % 2 == 0 for number, name in enumerate(changing)}
    for namespace in names:
        provider.create(namespace, active=active[namespace])
    rng = random.Random(20261130)
    with ManagerProcess(plane) as process:
        spec = {"schedule": provider.reference(), "gracefulShutdownTimeout": "0s"}
        plane.api.create_many(machine(f"m{n}", namespace, **spec) for namespace in names for n in range(each))
        for namespace in names:
            settled(plane.api, namespace, each, active[namespace])
        kept = uids(plane.api, stays_on)
        pid, mark = process.pid, plane.audit_log.mark()
        tasks_before, descriptors_before = tasks(process), descriptors(process)

        churn = Churn(provider, {name: active[name] for name in changing}, seed=7)
        churn.start()
        took: list[float] = []
        interrupted = 0
        for _ in range(restarts):
            before = plane.audit_log.mark()
            took.append(restart(plane, rng))
            if len(took) == 2:
                plane.kill_etcd()
                time.sleep(1)
                plane.start_etcd()
            interrupted += works(plane, before, WORK_SECONDS if interrupted else FIRST_SECONDS)
            time.sleep(rng.uniform(0.0, 0.5))
        restarted = time.monotonic()
        eventually(lambda: ready(plane), READY_SECONDS, poll=0.2, what="the API server is ready")
        was_ready = time.monotonic()
        eventually(lambda: reads(process), READ_SECONDS, poll=0.2, what="every informer reads again")
        waited = time.monotonic() - was_ready
        MEASURED.info("the server is ready after: %.1f s, read again after: %.1f s", was_ready - restarted, waited)
        churn.stop()
        seconds = ", ".join(f"{one:.1f}" for one in took)
        MEASURED.info("restarts: %d, at work: %d, flips: %d, after: %s s", len(took), interrupted, churn.flips, seconds)
        assert interrupted

        ended = time.monotonic()
        for namespace in names:
            settled(plane.api, namespace, each, churn.last.get(namespace, active[namespace]))
        MEASURED.info("all settled after: %.1f s", time.monotonic() - ended)
        assert process.pid == pid
        assert process.exit_code is None

        assert uids(plane.api, stays_on) == kept, "no machine that should stay was exchanged"
        for namespace in (stays_on, stays_off):
            touched = select(plane.audit(since=mark), user=MANAGER_USER, verbs=ACTS, namespace=namespace)
            assert not [event for event in touched if event["objectRef"]["resource"] != "events"], namespace
        everything = select(plane.audit(since=mark), user=MANAGER_USER, resource="machines")
        assert set(ACTS) <= {event["verb"] for event in everything}, "there was something to go wrong"

        def flat() -> bool:
            assert tasks(process) == tasks_before
            assert descriptors(process) <= descriptors_before + SLACK, (descriptors(process), descriptors_before)
            return True

        eventually(flat, FLAT_SECONDS, poll=0.5, what="tasks and descriptors are as before")
        MEASURED.info("flat after: %.1f s", time.monotonic() - ended)
        MEASURED.info("descriptors: %d, then %d", descriptors_before, descriptors(process))
