"""The simulated infrastructure of a cluster, and its control plane: ready as soon as their scripts say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fivespot.runtime import DONE, Controller, ManagerContext, Object, Resource, Result

from .base import Provider
from .family import Contract, Family
from .script import LifeScript
from .states import cluster_made, control_plane_made
from .views import MachineState

__all__ = ["ClusterPartProvider", "build_clusters", "build_control_planes"]


class ClusterPartProvider(Provider[LifeScript]):
    """Brings one object per Cluster to what its contract calls ready.

    :param made: the status that says so.
    :param fields: by which it is told whether that was said, in the newer and in the earlier contract.
    """

    def __init__(
        self,
        resource: Resource,
        family: Family,
        context: ManagerContext,
        *,
        made: Callable[[Contract], dict[str, Any]],
        fields: tuple[str, str],
    ) -> None:
        super().__init__(resource, LifeScript, family, context, fields=fields)
        self._made = made

    # A Cluster refers to both, and waits for them: they need not wait for it.

    async def make(
        self, obj: Object, script: LifeScript, machine: MachineState | None, status: Mapping[str, Any]
    ) -> Result:
        await self.say(obj, status, {**status, **self._made(self.family.contract)})
        return DONE


def build_clusters(family: Family, context: ManagerContext) -> Controller:
    """The controller of a family's infrastructure clusters."""
    fields = ("provisioned", "ready")
    return ClusterPartProvider(family.cluster, family, context, made=cluster_made, fields=fields).controller


def build_control_planes(family: Family, context: ManagerContext) -> Controller:
    """The controller of a family's control planes."""
    fields = ("controlPlaneInitialized", "initialized")
    made = control_plane_made
    return ClusterPartProvider(family.control_plane, family, context, made=made, fields=fields).controller
