"""Freeze leaders on the real API server, as a suspended machine does, and count what they change after they wake.

Every freeze wants the opposite of what the leader was doing by the time it wakes: the machines of a schedule that has
closed are wanted again, those that were being created are not. Another manager has done all that is left to do by then,
so whatever changes afterwards is the work of the one that slept.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Final

from controlplane import Api, ControlPlane, read_crds
from harness import SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess, install
from harness.providers import ProviderKind
from harness.wait import eventually
from support import make_namespace
from support.machines import MACHINE, machine
from support.measurements import said
from support.scenario import CHILDREN, MACHINES

from .proof import REPOSITORY, Budget, Result

__all__ = ["POINTS", "Point", "freezes"]

Json = dict[str, Any]

_LEASE: Final = ("--lease-duration-secs", "4", "--lease-renew-deadline-secs", "3", "--lease-retry-period-secs", "0.5")
_MACHINES_IN_A_NAMESPACE: Final = 12
_PAIRS: Final = 3
"""Pairs of managers that are tested at once, each in a namespace of its own: a freeze is mostly spent waiting."""
_GRACE_SECONDS: Final = 7
_OBSERVED_SECONDS: Final = 1.5
"""How long what the woken leader changes is waited for. What was overdue runs in its first turns."""
_KEPT_FINALIZER: Final = "machine.cluster.x-k8s.io"


@dataclass(frozen=True)
class Point:
    """A moment of the work at which the leader is frozen.

    :param work: what the leader is doing: creating, grace, deleting or finishing.
    :param delay: seconds from the cause of that work to the freeze.
    """

    work: str
    delay: float


_MOMENTS: Final = (0.0, 0.01, 0.03, 0.08, 0.2)
POINTS: Final = (
    *(Point("creating", delay) for delay in _MOMENTS),
    *(Point("grace", delay) for delay in (0.0, 1.0, 2.0, 3.0, 3.5)),
    *(Point("deleting", delay) for delay in _MOMENTS),
    *(Point("finishing", delay) for delay in _MOMENTS),
)


@dataclass
class Harm:
    """The changes after the leader woke, in objects.

    :ivar deleted: wanted machines, or objects that belong to them, that are gone, deleting or replaced.
    :ivar created: objects that nobody wants.
    :ivar held_back: writes that the woken leader tried and did not send.
    """

    deleted: int = 0
    created: int = 0
    held_back: int = 0

    def __str__(self) -> str:
        changed = f"{self.deleted} wanted objects deleted, {self.created} unwanted objects created"
        return f"{changed}, {self.held_back} writes held back"


class Pair:
    """Two managers of one namespace, of which one leads, and the machines that they work on."""

    def __init__(self, plane: ControlPlane, provider: ProviderKind, number: int) -> None:
        self.api: Api = plane.api
        self.provider = provider
        self.namespace = make_namespace(self.api, f"freezes-{number}")
        provider.create(self.namespace, active=False)
        options = ("--enable-leader-election", *_LEASE, "--lease-name", _lease(number),
                   "--namespaces", self.namespace)  # fmt: skip
        self._managers = [
            ManagerProcess(plane, *options, environment={"POD_NAME": f"pod-{number}-{each}"}) for each in "ab"
        ]

    def start(self) -> None:
        for manager in self._managers:
            manager.start()
        eventually(self.leader, 20, what="one leads")

    def stop(self) -> None:
        for manager in self._managers:
            manager.__exit__()

    def leader(self) -> ManagerProcess:
        """Return the manager that leads.

        :raises LookupError: none does at the moment.
        """
        for each in self._managers:
            if each.metrics()["fivespot_is_leader"] == 1:
                return each
        raise LookupError("no manager leads")

    @contextmanager
    def frozen_leader(self) -> Iterator[ManagerProcess]:
        """Freeze the leader; inside, the other one leads. Afterwards the frozen one has noticed that."""
        leader = eventually(self.leader, 20, what="one leads")
        other = next(each for each in self._managers if each is not leader)
        before = len(said(leader, "standing by"))
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            eventually(lambda: other.metrics()["fivespot_is_leader"] == 1, 30, what="the other one leads")
            yield leader
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        eventually(lambda: len(said(leader, "standing by")) > before, 30, what="the frozen one stands by")

    # The machines -------------------------------------------------------------------------------------------------

    def create(self, **spec: Any) -> None:
        given = {"schedule": self.provider.reference(), "gracefulShutdownTimeout": "0s", **spec}
        names = [f"web-{number}" for number in range(_MACHINES_IN_A_NAMESPACE)]
        self.api.create_many([machine(name, self.namespace, **given) for name in names])

    def delete(self) -> None:
        for each in self.api.list(*MACHINE, self.namespace):
            self.api.delete(*MACHINE, each["metadata"]["name"], self.namespace, missing_ok=True)

    def active(self, value: bool) -> None:
        self.provider.status(self.namespace, active=value)

    def wait_phase(self, phase: str) -> None:
        def check() -> bool:
            found = self.api.list(*MACHINE, self.namespace)
            return len(found) == _MACHINES_IN_A_NAMESPACE and all(
                each.get("status", {}).get("phase") == phase for each in found
            )

        eventually(check, 40, what=f"all are {phase}")

    def wait_gone(self) -> None:
        eventually(lambda: not self.children() and not self.api.list(*MACHINE, self.namespace), 40, what="all is gone")

    def children(self) -> dict[tuple[str, str], Json]:
        """Return Machines, bootstrap and infrastructure objects by kind and name."""
        return {
            (kind, each["metadata"]["name"]): each["metadata"]
            for api_version, kind in CHILDREN
            for each in self.api.list(api_version, kind, self.namespace)
        }

    def settled_children(self) -> dict[tuple[str, str], Json]:
        """Return the children once nobody has changed them for a moment."""

        def check() -> list[dict[tuple[str, str], Json]]:
            found = self.children()
            time.sleep(0.5)
            assert self.children() == found
            assert not any("deletionTimestamp" in meta for meta in found.values())
            return [found]

        return eventually(check, 30, what="nothing changes")[0]

    def hold_machines(self) -> None:
        """Put Cluster API's finalizer on the Machines, so that they stay while they are deleted."""
        self._finalizers([_KEPT_FINALIZER])

    def let_machines_go(self) -> None:
        self._finalizers(None)

    def _finalizers(self, value: list[str] | None) -> None:
        for each in self.api.list(*MACHINES, self.namespace):
            self.api.patch(*MACHINES, each["metadata"]["name"], self.namespace, {"metadata": {"finalizers": value}})


def freeze(pair: Pair, point: Point) -> Harm:
    """Freeze the leader at a point of its work, want the opposite, wake it, and return what it changed then."""
    _reset(pair)
    want_again, frozen_at = _SETUPS[point.work](pair)
    time.sleep(point.delay)
    with pair.frozen_leader() as leader:
        want_again(pair)
        # The timers of the frozen leader have to be overdue when it wakes.
        time.sleep(max(0.0, frozen_at + _GRACE_SECONDS + 0.5 - time.monotonic()) if point.work == "grace" else 0.0)
        wanted = pair.settled_children()
        before = len(said(leader, "write not sent"))
    time.sleep(_OBSERVED_SECONDS)
    found = pair.children()
    kept = {key for key, meta in found.items() if key in wanted and meta["uid"] == wanted[key]["uid"]}
    deleted = sum(key not in kept or "deletionTimestamp" in found[key] for key in wanted)
    return Harm(deleted, len(found.keys() - wanted.keys()), len(said(leader, "write not sent")) - before)


def _creating(pair: Pair) -> tuple[Callable[[Pair], None], float]:
    pair.create()
    pair.wait_phase("Inactive")
    pair.active(True)
    return _want_nothing, time.monotonic()


def _grace(pair: Pair) -> tuple[Callable[[Pair], None], float]:
    pair.create(gracefulShutdownTimeout=f"{_GRACE_SECONDS}s")
    pair.active(True)
    pair.wait_phase("Active")
    pair.active(False)
    begun = time.monotonic()
    pair.wait_phase("ShuttingDown")
    return _want_all, begun


def _deleting(pair: Pair) -> tuple[Callable[[Pair], None], float]:
    pair.create()
    pair.active(True)
    pair.wait_phase("Active")
    pair.active(False)
    return _want_all, time.monotonic()


def _finishing(pair: Pair) -> tuple[Callable[[Pair], None], float]:
    pair.create()
    pair.active(True)
    pair.wait_phase("Active")
    pair.hold_machines()
    pair.delete()
    eventually(
        lambda: all("deletionTimestamp" in each["metadata"] for each in pair.api.list(*MACHINES, pair.namespace)),
        30,
        what="the Machines are being deleted",
    )
    pair.let_machines_go()
    return _want_new, time.monotonic()


_SETUPS: Final = {"creating": _creating, "grace": _grace, "deleting": _deleting, "finishing": _finishing}


def _want_nothing(pair: Pair) -> None:
    pair.delete()
    pair.wait_gone()


def _want_all(pair: Pair) -> None:
    pair.active(True)
    pair.wait_phase("Active")


def _want_new(pair: Pair) -> None:
    """Have the deletion finished, and machines of the same names wanted."""
    pair.wait_gone()
    pair.create()
    pair.wait_phase("Active")


def _reset(pair: Pair) -> None:
    pair.active(False)
    pair.delete()
    pair.wait_gone()


def freezes(budget: Budget) -> Result:
    """Freeze leaders at every point by turns, until the time is over."""
    end = time.monotonic() + budget.seconds
    order = list(POINTS)
    Random(budget.seed).shuffle(order)
    numbers = count()
    tried: Counter[str] = Counter()
    harm = {work: Harm() for work in _SETUPS}
    failures: list[str] = []

    def work_on(pair: Pair) -> None:
        while time.monotonic() < end:
            point = order[next(numbers) % len(order)]
            try:
                done = freeze(pair, point)
            except (AssertionError, LookupError, OSError, RuntimeError) as error:
                failures.append(f"{point.work} +{point.delay:g} s: {error}")
                continue
            tried[point.work] += 1
            total = harm[point.work]
            total.deleted += done.deleted
            total.created += done.created
            total.held_back += done.held_back
            if done.deleted or done.created:
                failures.append(f"{point.work} +{point.delay:g} s: {done.deleted} deleted, {done.created} created")

    with ControlPlane(crds=read_crds(REPOSITORY / "manifests" / "crds")) as plane:
        install(plane)
        _allow_leases(plane.api)
        provider = ProviderKind(plane.api, "Played")
        provider.install()
        _run_pairs([Pair(plane, provider, number) for number in range(_PAIRS)], work_on)
    return Result(_facts(tried, harm), failures)


def _allow_leases(api: Api) -> None:
    """Give the managers' account the Leases of all pairs; the shipped rights name a single one."""
    rbac, name = "rbac.authorization.k8s.io/v1", "freezes"
    metadata = {"name": name, "namespace": SYSTEM_NAMESPACE}
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": [_lease(number) for number in range(_PAIRS)],
        "verbs": ["get", "update"],
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    account = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": SYSTEM_NAMESPACE}
    api.create({"apiVersion": rbac, "kind": "Role", "metadata": metadata, "rules": [rule]})
    api.create(
        {"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [account]}
    )


def _lease(number: int) -> str:
    return f"freezes-{number}"


def _run_pairs(pairs: Sequence[Pair], work_on: Callable[[Pair], None]) -> None:
    try:
        for pair in pairs:
            pair.start()
        with ThreadPoolExecutor(len(pairs)) as pool:
            for done in [pool.submit(work_on, pair) for pair in pairs]:
                done.result()
    finally:
        for pair in pairs:
            pair.stop()


def _facts(tried: Counter[str], harm: dict[str, Harm]) -> list[tuple[str, str]]:
    freezes_done = f"{sum(tried.values())} at {len(POINTS)} points, with {_MACHINES_IN_A_NAMESPACE} machines each"
    rows = [(work.capitalize(), f"{tried[work]} freezes: {each}") for work, each in harm.items()]
    return [("Freezes", freezes_done), *rows]
