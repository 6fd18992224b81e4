"""One ScheduledMachine on a real server, with short words for what tests do to it and see of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from controlplane import Api
from harness.providers import ProviderKind
from harness.wait import eventually

from .cluster import unique_name
from .machines import MACHINE, machine

MACHINES = ("cluster.x-k8s.io/v1beta2", "Machine")
BOOTSTRAP = ("bootstrap.cluster.x-k8s.io/v1beta1", "StandInBootstrap")
INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io/v1beta1", "StandInMachine")
CHILDREN = (MACHINES, BOOTSTRAP, INFRASTRUCTURE)

Json = dict[str, Any]


class Scenario:
    """A ScheduledMachine named ``web`` that refers to the object ``hours`` of a provider that the test plays."""

    def __init__(self, api: Api, namespace: str, provider: ProviderKind, name: str = "web") -> None:
        self.api = api
        self.namespace = namespace
        self.provider = provider
        self.name = name

    # Doing -------------------------------------------------------------------------------------------------------

    def create(self, **spec: Any) -> Json:
        """Create it; no grace unless ``spec`` says otherwise, so that tests need not wait."""
        given = {"schedule": self.provider.reference(), "gracefulShutdownTimeout": "0s", **spec}
        return self.api.create(machine(self.name, self.namespace, **given))

    def edit(self, **spec: Any) -> Json:
        """A merge patch of the spec."""
        return self.api.patch(*MACHINE, self.name, self.namespace, {"spec": spec})

    def delete(self, **options: Any) -> None:
        self.api.delete(*MACHINE, self.name, self.namespace, **options)

    def active(self, value: Any) -> None:
        """Set the provider's verdict."""
        self.provider.status(self.namespace, active=value)

    def hold_machine(self) -> None:
        """Put Cluster API's finalizer on the Machine: it then stays, deleting, until :meth:`let_machine_go`."""
        patch = {"metadata": {"finalizers": ["machine.cluster.x-k8s.io"]}}
        self.api.patch(*MACHINES, self.name, self.namespace, patch)

    def let_machine_go(self) -> None:
        """Remove the Machine's finalizer, as Cluster API does once the machine is drained and gone."""
        self.api.patch(*MACHINES, self.name, self.namespace, {"metadata": {"finalizers": None}})

    def node_ready(self, *, ready: bool = True, node: str = "node-1") -> None:
        """Report the Node's readiness on the Machine, as Cluster API does."""
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "Ready" if ready else "NodeNotReady",
            "message": "",
            "lastTransitionTime": "2026-11-01T00:00:00Z",
        }
        status = {"phase": "Running", "nodeRef": {"name": node}, "conditions": [condition]}
        self.api.patch_status(*MACHINES, self.name, self.namespace, status)

    # Seeing ------------------------------------------------------------------------------------------------------

    def get(self) -> Json:
        return self.api.get(*MACHINE, self.name, self.namespace)

    def find(self) -> Json | None:
        return self.api.find(*MACHINE, self.name, self.namespace)

    @property
    def status(self) -> Json:
        found: Json = self.get().get("status", {})
        return found

    def condition(self, type_: str) -> Json:
        """A condition by type; empty when there is none."""
        found = (c for c in self.status.get("conditions", []) if c["type"] == type_)
        return next(found, {})

    def child(self, kind: tuple[str, str]) -> Json | None:
        return self.api.find(*kind, self.name, self.namespace)

    def machine(self) -> Json:
        return self.api.get(*MACHINES, self.name, self.namespace)

    def events(self, reason: str | None = None) -> list[Json]:
        """Events about it, by reason."""
        return [
            event
            for event in self.api.list("events.k8s.io/v1", "Event", self.namespace)
            if event["regarding"].get("name") == self.name
            and event["regarding"].get("kind") == "ScheduledMachine"
            and reason in (None, event["reason"])
        ]

    def wait_phase(self, phase: str, reason: str | None = None, timeout: float = 15) -> Json:
        """Wait for a phase, and for the reason of condition Ready when given; the status.

        A deletion is announced before it is sent, so of NodeDraining the Machine is given a moment to show it.
        """

        def check() -> Json:
            status = self.status
            assert status.get("phase") == phase, status
            if reason is not None:
                # From the same reading: the two of different moments may never have been true together.
                ready: Json = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
                assert ready.get("reason") == reason, status
            return status

        status = eventually(check, timeout, what=f"phase {phase} {reason or ''}")
        if reason == "NodeDraining":
            with suppress(AssertionError):
                eventually(lambda: self.machine_is_deleting, 2)
        return status

    @property
    def machine_is_deleting(self) -> bool:
        """Whether the Machine is being deleted, or gone."""
        machine = self.api.find(*MACHINES, self.name, self.namespace)
        return machine is None or "deletionTimestamp" in machine["metadata"]

    def wait_condition(self, type_: str, status: str, reason: str | None = None, timeout: float = 15) -> Json:
        """Wait for a condition."""

        def check() -> Json:
            found = self.condition(type_)
            assert found.get("status") == status, found
            assert reason is None or found["reason"] == reason, found
            return found

        return eventually(check, timeout, what=f"{type_}={status} {reason or ''}")

    def wait_seen(self) -> None:
        """Wait until the manager has seen the Machine as it is now: a later change of it is mirrored."""
        node = unique_name("node")
        self.api.patch_status(*MACHINES, self.name, self.namespace, {"nodeRef": {"name": node}})
        eventually(lambda: self.status["nodeRef"]["name"] == node, what="a later change of the Machine is mirrored")

    def assert_never_braked(self) -> None:
        """Check that no creation was delayed as a replacement (B7): that would have been reported."""
        assert self.events("ReplacementDelayed") == []

    def wait_gone(self, timeout: float = 15) -> None:
        """Wait until no child is left."""
        eventually(lambda: all(self.child(kind) is None for kind in CHILDREN), timeout, what="all children are gone")

    def wait_made(self, timeout: float = 15) -> None:
        """Wait until all three children exist."""
        eventually(lambda: all(self.child(kind) is not None for kind in CHILDREN), timeout, what="all children exist")
