"""One ScheduledMachine whose Machine the real Cluster API moves, with short words for what tests do and see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from controlplane import ApiError, select
from fivespot.testing.clusterapi import TERMINATE_AFTER, KindFamily
from harness.wait import eventually

from .environment import POLL, Environment
from .machines import MACHINE, machine
from .scenario import Scenario

Json = dict[str, Any]
T = TypeVar("T")

RUNNING_SECONDS = 60.0
"""How long a machine may take to run: a second when the machine is idle. Cluster API tries a connection to a workload
cluster that broke only every 30 seconds."""


class LiveScenario(Scenario):
    """A ScheduledMachine with a schedule of its own name that the test plays.

    :param family: the simulated kinds that it is made of; by default those of the newest contract.
    """

    def __init__(
        self, environment: Environment, namespace: str, name: str = "web", *, family: KindFamily | None = None
    ) -> None:
        super().__init__(environment.api, namespace, environment.schedules, name)
        self.environment = environment
        self.family = family or environment.family
        self.machines = environment.machines
        self.bootstraps = (self.family.bootstrap.api_version, self.family.bootstrap.kind)
        self.infrastructure = (self.family.machine.api_version, self.family.machine.kind)
        self.children = (self.machines, self.bootstraps, self.infrastructure)

    # Doing -------------------------------------------------------------------------------------------------------

    def create(
        self, *, active: bool | None = True, script: Json | None = None, bootstrap: Json | None = None, **spec: Any
    ) -> Json:
        """Create the schedule, then the ScheduledMachine, without grace unless ``spec`` says otherwise.

        :param active: what the schedule says; None: there is none.
        :param script: what happens to the infrastructure machine (``MachineScript`` in camelCase).
        :param bootstrap: what happens to the bootstrap object.
        """
        if active is not None:
            self.provider.create(self.namespace, self.name, active=active)
        return self.api.create(self.body(script=script, bootstrap=bootstrap, **spec))

    def body(self, *, script: Json | None = None, bootstrap: Json | None = None, **spec: Any) -> Json:
        """The ScheduledMachine as a person would write it."""
        given = {
            "schedule": self.provider.reference(self.name),
            "gracefulShutdownTimeout": "0s",
            "bootstrapSpec": _embedded(self.bootstraps, bootstrap),
            "infrastructureSpec": _embedded(self.infrastructure, script),
            **spec,
        }
        return machine(self.name, self.namespace, **given)

    def active(self, value: Any) -> None:
        self.provider.status(self.namespace, self.name, active=value)

    def run(self, **options: Any) -> Json:
        """Create it and wait until its machine is ready; the Machine."""
        self.create(**options)
        return self.wait_ready()

    def rescript(self, **script: Any) -> None:
        """Change what happens to the infrastructure machine."""
        self.api.patch(*self.infrastructure, self.name, self.namespace, {"spec": script})

    def annotate_machine(self, **annotations: str | None) -> None:
        self.api.patch(*self.machines, self.name, self.namespace, {"metadata": {"annotations": annotations}})

    def pod(self, name: str = "work", *, ends: str = "0", labels: Json | None = None, **spec: Any) -> None:
        """A Pod on the machine's Node; returns when the simulated kubelet has it running.

        :param ends: seconds that its end takes once it is deleted, or ``never``.
        """
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": labels or {"app": name},
                "annotations": {TERMINATE_AFTER: ends},
            },
            "spec": {"nodeName": self.node_name, "containers": [{"name": "main", "image": "none"}], **spec},
        }
        self.api.create(body)
        self.until(lambda: self.pod_phase(name) == "Running", what=f"Pod {name} runs")

    def budget(self, name: str = "work", *, labels: Json | None = None, **spec: Any) -> None:
        """A PodDisruptionBudget that lets none of the matching Pods go; returns when it is in force."""
        wanted = {"minAvailable": 1, "selector": {"matchLabels": labels or {"app": name}}, **spec}
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": wanted,
        }
        self.api.create(body)
        self.until(self._in_force(name), what=f"budget {name} is in force")

    # Seeing ------------------------------------------------------------------------------------------------------

    def machine(self) -> Json:
        return self.api.get(*self.machines, self.name, self.namespace)

    def find_machine(self) -> Json | None:
        return self.api.find(*self.machines, self.name, self.namespace)

    def begun(self, machine: Json) -> bool:
        """Whether the shutdown of a Machine has begun: it is going, or gone."""
        metadata = (self.find_machine() or {}).get("metadata", {})
        return metadata.get("uid") != machine["metadata"]["uid"] or "deletionTimestamp" in metadata

    def machine_condition(self, type_: str) -> Json:
        """A condition of the Machine in today's sense, at either version; empty when there is none."""
        return machine_condition(self.machine(), type_)

    @property
    def node_name(self) -> str:
        """The Node of the Machine."""
        name: str = self.machine()["status"]["nodeRef"]["name"]
        return name

    def node(self, name: str | None = None) -> Json | None:
        return self.api.find("v1", "Node", name or self.node_name)

    def pod_phase(self, name: str = "work") -> str:
        """``gone``, or ``Running`` and the like; ``ending`` once it has a deletionTimestamp."""
        found = self.api.find("v1", "Pod", name, self.namespace)
        if found is None:
            return "gone"
        if "deletionTimestamp" in found["metadata"]:
            return "ending"
        phase: str = found.get("status", {}).get("phase", "Pending")
        return phase

    def seconds_to_unmake(self, mark: int, *, user: str, verb: str) -> float:
        """From somebody's request about the Machine to the deletion of its infrastructure object, by the server's log.

        What Cluster API waits for lies between the two, and little of what a busy machine adds to a test.
        """
        events = select(self.environment.plane.audit(since=mark), namespace=self.namespace)
        asked = select(events, user=user, verbs=verb, resource="machines")
        done = select(events, verbs="delete", resource=self.family.machine.plural)
        return seconds_between(asked[0]["requestReceivedTimestamp"], done[0]["requestReceivedTimestamp"])

    # Waiting -----------------------------------------------------------------------------------------------------

    def until(self, check: Callable[[], T], timeout: float = RUNNING_SECONDS, *, what: str = "") -> T:
        """Wait, looking seldom enough for many scenarios at once."""
        return eventually(check, timeout, what=f"{self.namespace}/{self.name}: {what}", poll=POLL)

    def wait_ready(self, timeout: float = RUNNING_SECONDS, *, after: Json | None = None) -> Json:
        """Wait until the ScheduledMachine reports its machine ready and the Machine runs; the Machine.

        :param after: the Machine before, if it is to be another one.
        """

        def running() -> Json:
            found = self.machine()
            metadata = found["metadata"]
            assert after is None or metadata["uid"] != after["metadata"]["uid"], "still the one before"
            assert "deletionTimestamp" not in metadata, "it is being deleted"
            assert found.get("status", {}).get("phase") == "Running", found.get("status")
            status = self.status
            assert status.get("ready") is True, status
            assert status["machineRef"]["uid"] == metadata["uid"], status
            return found

        return self.until(_tolerant(running), timeout, what="the machine is ready")

    def wait_phase(self, phase: str, reason: str | None = None, timeout: float = RUNNING_SECONDS) -> Json:
        def check() -> Json:
            status = self.status
            assert status.get("phase") == phase, status
            ready: Json = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
            assert reason in (None, ready.get("reason")), status
            return status

        return self.until(check, timeout, what=f"phase {phase} {reason or ''}")

    def wait_condition(
        self, type_: str, status: str, reason: str | None = None, timeout: float = RUNNING_SECONDS
    ) -> Json:
        def check() -> Json:
            found = self.condition(type_)
            assert found.get("status") == status, found
            assert reason in (None, found["reason"]), found
            return found

        return self.until(check, timeout, what=f"{type_}={status} {reason or ''}")

    def wait_message(self, pattern: str, timeout: float = RUNNING_SECONDS) -> str:
        """Wait until the ScheduledMachine's message matches a regular expression; the message."""

        def check() -> str:
            message: str = self.status.get("message", "")
            assert re.search(pattern, message), message
            return message

        return self.until(check, timeout, what=f"message {pattern}")

    def wait_deleting(self, reason: str, timeout: float = RUNNING_SECONDS) -> Json:
        """Wait until the Machine says why its deletion waits."""

        def check() -> Json:
            found = self.machine_condition("Deleting")
            assert found.get("reason") == reason, found
            return found

        return self.until(_tolerant(check), timeout, what=f"the Machine waits for {reason}")

    def wait_gone(self, timeout: float = RUNNING_SECONDS) -> None:
        self.until(lambda: self.present() == [], timeout, what=f"all is gone, not {self.present()}")

    def wait_made(self, timeout: float = RUNNING_SECONDS) -> None:
        self.until(lambda: len(self.present()) == len(self.children), timeout, what="all is there")

    def present(self) -> list[str]:
        """The kinds of the children that exist."""
        return [kind for version, kind in self.children if self.child((version, kind)) is not None]

    def _in_force(self, name: str) -> Callable[[], bool]:
        def check() -> bool:
            status = self.api.get("policy/v1", "PodDisruptionBudget", name, self.namespace).get("status", {})
            return bool(status.get("observedGeneration")) and status.get("expectedPods", 0) > 0

        return check


def machine_condition(machine: Json, type_: str) -> Json:
    """A condition of a Machine in today's sense, at either version; empty when there is none."""
    status = machine.get("status") or {}
    newer = (status.get("v1beta2") or {}).get("conditions")
    conditions: Iterable[Json] = (newer if newer is not None else status.get("conditions")) or ()
    return next((condition for condition in conditions if condition["type"] == type_), {})


def seconds_between(earlier: str, later: str) -> float:
    """Between two instants as the API writes them."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _embedded(kind: tuple[str, str], spec: Json | None) -> Json:
    return {"apiVersion": kind[0], "kind": kind[1], "spec": spec or {}}


def _tolerant(check: Callable[[], T]) -> Callable[[], T]:
    """The same, for something that may not exist yet."""

    def tolerant() -> T:
        try:
            return check()
        except ApiError as error:
            if error.status != 404:
                raise
            raise AssertionError(str(error)) from None

    return tolerant


__all__ = ["MACHINE", "RUNNING_SECONDS", "LiveScenario", "machine_condition", "seconds_between"]
