"""Deletion: preconditions, finalizers, propagation."""

from __future__ import annotations

from typing import Final

from .cluster import Cluster, Object
from .crds import CLEANUP
from .kinds import Served, ServedKind
from .options import DeleteOptions
from .status import conflict, forbidden
from .store import Entry

__all__ = ["FOREGROUND", "ORPHAN", "Deleter"]

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_PROTECTED: Final = frozenset({"default", "kube-system", "kube-public"})


class Deleter:
    """Deletes objects of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def delete(
        self, kind: ServedKind, served: Served, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[Object, bool]:
        """Delete an object; returns its last state and whether it was removed.

        :raises StatusError: 403, 404, 409.
        """
        if _is_namespace(kind) and name in _PROTECTED:
            raise forbidden(kind.group, kind.plural, name, "this namespace may not be deleted")
        entry = self._cluster.get(kind, namespace, name)
        self._check(kind, entry, options)
        return self.mark(kind, served, entry, options.propagation, dry_run=options.dry_run)

    def _check(self, kind: ServedKind, entry: Entry, options: DeleteOptions) -> None:
        if options.uid is not None and options.uid != entry.uid:
            why = (
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({entry.uid}). "
                "The object might have been deleted and then recreated"
            )
            raise conflict(kind.group, kind.kind, entry.name, why)
        if options.version is not None and options.version != str(entry.version):
            why = (
                f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
                f"record ({entry.version}). The object might have been modified"
            )
            raise conflict(kind.group, kind.kind, entry.name, why)

    def mark(
        self, kind: ServedKind, served: Served, entry: Entry, propagation: str, *, dry_run: bool = False
    ) -> tuple[Object, bool]:
        """Remove an object or, when something holds it, mark it as deleting; returns it and whether it is gone."""
        body = self._cluster.decode(entry, kind, served)
        metadata = body["metadata"]
        finalizers = _finalizers(metadata.get("finalizers", []), propagation)
        if _is_definition(kind) and not entry.deleting and CLEANUP not in finalizers:
            finalizers = [*finalizers, CLEANUP]
        held = _is_namespace(kind) and bool(body.get("spec", {}).get("finalizers"))
        if not finalizers and not held:
            if not dry_run:
                self._cluster.remove(kind, entry.key)
            if kind.strategy.returns_deleted and kind.generated:
                # Without a kubelet a pod's grace period is zero, which the answer includes.
                metadata |= {"deletionTimestamp": self._cluster.now(), "deletionGracePeriodSeconds": 0}
                metadata["generation"] += 1
            return body, True
        known = metadata.get("finalizers", [])
        if entry.deleting and (finalizers == known or propagation == "Background"):
            return body, False
        if finalizers:
            metadata["finalizers"] = finalizers
        if not entry.deleting:
            metadata["deletionTimestamp"] = self._cluster.now()
            if not _is_namespace(kind) and not _is_definition(kind):
                metadata["deletionGracePeriodSeconds"] = 0
                if metadata.get("generation"):
                    metadata["generation"] += 1
            if _is_definition(kind):
                _terminating(body, self._cluster.now())
            if _is_namespace(kind):
                body["status"] = {**body.get("status", {}), "phase": "Terminating"}
        if not dry_run:
            self._cluster.put(kind, served, body)
        return body, False


def _finalizers(known: list[str], propagation: str) -> list[str]:
    kept = [name for name in known if name not in {FOREGROUND, ORPHAN}]
    asked = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(propagation, [])
    if not asked and kept == known:
        return known
    return kept + asked


def _terminating(body: Object, now: str) -> None:
    """Set the Terminating condition of a definition whose objects are being deleted."""
    status = body.setdefault("status", {})
    others = [each for each in status.get("conditions") or [] if each.get("type") != "Terminating"]
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    status["conditions"] = [*others, condition]


def _is_namespace(kind: ServedKind) -> bool:
    return kind.group == "" and kind.plural == "namespaces"


def _is_definition(kind: ServedKind) -> bool:
    return kind.group == "apiextensions.k8s.io"
