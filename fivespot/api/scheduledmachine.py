"""The ScheduledMachine kind and its CustomResourceDefinition."""

from __future__ import annotations

from typing import Any, Final

from fivespot.api.machine_spec import ScheduledMachineSpec
from fivespot.api.machine_status import ScheduledMachineStatus
from fivespot.api.names import (
    GROUP,
    KIND,
    LABEL_CLUSTERCTL,
    LABEL_CLUSTERCTL_MOVE_HIERARCHY,
    MAX_NAME_LENGTH,
    PLURAL,
    SINGULAR,
    VERSION,
)
from fivespot.api.types import ApiModel
from fivespot.runtime.crd import Cel, Column, CrdVersion, crd


class ScheduledMachine(ApiModel):
    """A Cluster API machine that exists while a schedule says so.

    The referenced schedule decides when; the ScheduledMachine says what: a bootstrap object, an infrastructure object
    and the Machine that joins them to a cluster.
    """

    spec: ScheduledMachineSpec
    """What machine is wanted, and which schedule says when."""
    status: ScheduledMachineStatus | None = None
    """What exists now, and why."""


NAME_RULE: Final = Cel(
    f"oldSelf.hasValue() || size(self.metadata.name) <= {MAX_NAME_LENGTH}",
    f"metadata.name must be at most {MAX_NAME_LENGTH} characters: it becomes a label value",
    optional_old_self=True,
)
"""Judges creates only: an older object with a longer name must still take status and lose its finalizer."""

COLUMNS: Final = (
    Column("Phase", "string", ".status.phase"),
    Column("Ready", "boolean", ".status.ready"),
    Column("InSchedule", "boolean", ".status.inSchedule"),
    Column("Enabled", "boolean", ".spec.enabled"),
    Column("Schedule", "string", ".spec.schedule.kind"),
    Column("KillSwitch", "boolean", ".spec.killSwitch"),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
    Column("NextCleanup", "string", ".status.nextCleanup", priority=1),
    Column("Message", "string", ".status.message", priority=1),
)


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition of ScheduledMachine."""
    return crd(
        group=GROUP,
        kind=KIND,
        plural=PLURAL,
        singular=SINGULAR,
        short_names=("sm",),
        columns=COLUMNS,
        # Both are looked for by `clusterctl move`: the kind, and everything below an object of it, moves along.
        labels={LABEL_CLUSTERCTL: "", LABEL_CLUSTERCTL_MOVE_HIERARCHY: ""},
        versions=(CrdVersion(VERSION, ScheduledMachine, rules=(NAME_RULE,)),),
    )
