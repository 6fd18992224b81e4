"""The simulated infrastructure of a cluster, and its control plane: ready as soon as their scripts say so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fivespot.runtime import (
    DONE,
    Controller,
    Key,
    ManagerContext,
    Resource,
    Result,
    ensure_finalizer,
    remove_finalizer,
)

from .base import Provider
from .family import Contract, Family
from .life import Act, decide
from .script import LifeScript
from .states import cluster_made, control_plane_made, is_made, with_ready

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
        super().__init__(resource.kind.lower(), resource, LifeScript, family, context)
        self._made = made
        self._fields = fields
        self.finalizer = f"{resource.qualified}/simulated"

    async def reconcile(self, key: Key) -> Result:
        obj = self.objects.get(key)
        if obj is None:
            self.waits.forget(key)
            return DONE
        script = self.read_script(obj)
        status = obj.decode().get("status") or {}
        decision = decide(
            script,
            deleting=obj.head.deleting,
            held=self.finalizer in obj.head.finalizers,
            made=is_made(self.family.contract, *self._fields, status),
            paused=self.paused(obj),
            # A Cluster refers to both, and waits for them: they need not wait for it.
            blocked="",
            remaining=partial(self.waits.remaining, obj),
        )
        lingers = script.delete != "Succeed" or script.delete_after_seconds > 0
        if lingers and not obj.head.deleting:
            obj = await ensure_finalizer(self.client, self.resource, obj, self.finalizer)
        now = self.context.clock.now()
        match decision.act:
            case Act.LET_GO:
                await remove_finalizer(self.client, self.resource, obj, self.finalizer)
            case Act.FAIL:
                failed = with_ready(status, generation=obj.head.generation, now=now, failure=script.failure)
                await self.write_status(obj, status, failed)
            case Act.CREATE:
                made = {**status, **self._made(self.family.contract)}
                await self.write_status(obj, status, with_ready(made, generation=obj.head.generation, now=now))
            case _:
                return Result(requeue_after=decision.wait)
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
