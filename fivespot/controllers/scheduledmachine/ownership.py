"""Ownership of objects (contract B2.2). Everything that is not ours is foreign and never touched."""

from __future__ import annotations

from fivespot.api import names
from fivespot.runtime import GroupKind, Head

from .cluster_api import MachineView

__all__ = ["child_is_ours", "machine_is_ours"]


def machine_is_ours(machine: Head, owner_uid: str) -> bool:
    """Whether a Machine is ours: its controller reference has our uid. Labels can be lost or copied."""
    controller = machine.controller
    return controller is not None and controller.uid == owner_uid


def child_is_ours(
    child: Head,
    group_kind: GroupKind,
    *,
    owner_uid: str,
    owner_name: str,
    machine: MachineView | None,
) -> bool:
    """Whether a bootstrap or infrastructure object is ours.

    :param machine: the Machine under the ScheduledMachine's name, whoever owns it; None when there is none.
    """
    controller = child.controller
    if machine is not None and machine_is_ours(machine.head, owner_uid):
        if controller is not None and controller.uid == machine.head.uid:
            return True
    elif machine is not None and _uses(machine, child, group_kind):
        # An object that somebody else's living Machine uses is not ours either, whoever created it.
        return False
    marked = child.annotations.get(names.ANNOTATION_UID)
    if marked is not None:
        # Its Machine may be gone already, so kind and name are compared in place of the uid.
        by_machine = controller is None or (
            controller.kind == "Machine"
            and controller.api_version.startswith(f"{names.CLUSTER_API_GROUP}/")
            and controller.name == owner_name
        )
        return marked == owner_uid and by_machine
    # 5-Spot marks its objects by a label alone.
    return (
        controller is None
        and machine is not None
        and child.labels.get(names.LABEL_MACHINE) == owner_name
        and _refers(machine, child, group_kind)
    )


def _uses(machine: MachineView, child: Head, group_kind: GroupKind) -> bool:
    """Whether a Machine owns an object or refers to it."""
    owned = any(owner.uid == machine.head.uid for owner in child.owners)
    return owned or _refers(machine, child, group_kind)


def _refers(machine: MachineView, child: Head, group_kind: GroupKind) -> bool:
    return any(
        ref is not None and ref.group_kind == group_kind and ref.name == child.name
        for ref in (machine.bootstrap, machine.infrastructure)
    )
