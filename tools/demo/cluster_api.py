"""Plays Cluster API's part for the demonstration: a Machine gets a node, becomes ready, and is let go when deleted."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from controlplane import Api, ApiError

_MACHINE = ("cluster.x-k8s.io/v1beta2", "Machine")
_FINALIZER = "machine.cluster.x-k8s.io"
_STEP_SECONDS = 2.0
_POLL_SECONDS = 0.5


class ClusterApi:
    """A thread that moves Machines along as Cluster API would, two seconds a step."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._stop = threading.Event()
        self._due: dict[str, float] = {}
        self._clock = 0.0
        self._thread = threading.Thread(target=self._run, name="cluster-api", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self._clock += _POLL_SECONDS
            for machine in self._api.list(*_MACHINE):
                # A machine that changed under the hand is looked at again in half a second.
                with contextlib.suppress(ApiError):
                    self._move(machine)

    def _move(self, machine: dict[str, Any]) -> None:
        metadata = machine["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        if _FINALIZER not in metadata.get("finalizers", []) and not metadata.get("deletionTimestamp"):
            self._api.patch(*_MACHINE, name, namespace, {"metadata": {"finalizers": [_FINALIZER]}})
            return
        key = f"{metadata['uid']}/{bool(metadata.get('deletionTimestamp'))}"
        if self._clock < self._due.setdefault(key, self._clock + _STEP_SECONDS):
            return
        if metadata.get("deletionTimestamp"):
            self._api.patch(*_MACHINE, name, namespace, {"metadata": {"finalizers": None}})
        elif machine.get("status", {}).get("phase") != "Running":
            self._api.patch(*_MACHINE, name, namespace, {"spec": {"providerID": f"demo:///{name}"}})
            self._api.patch_status(*_MACHINE, name, namespace, _running(name))


def _running(name: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": now}
    return {"phase": "Running", "nodeRef": {"name": f"node-{name}"}, "conditions": [ready]}
