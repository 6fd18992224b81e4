"""The kinds of the simulated providers: which there are, where they are found, how they are defined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

from fivespot.runtime import Resource
from fivespot.runtime.crd import CrdVersion, crd

from .script import (
    SimulatedBootstrap,
    SimulatedCluster,
    SimulatedControlPlane,
    SimulatedMachine,
)

__all__ = ["CORE_GROUP", "SIMULATED", "SIMULATED_EARLIER", "Contract", "KindFamily"]

CORE_GROUP: Final = "cluster.x-k8s.io"

Contract = Literal["v1beta1", "v1beta2"]
"""Which fields a provider and Cluster API's core talk through; the CRD's label says which. It has nothing to do with
the versions that either of them serves."""

_VERSION: Final = "v1beta1"


@dataclass(frozen=True, slots=True)
class KindFamily:
    """Bootstrap, infrastructure machine, infrastructure cluster and control plane kinds that follow one contract.

    :param prefix: of all four kinds; two families of one server need different ones.
    :param contract: v1beta2 is understood by Cluster API 1.11 and newer.
    """

    prefix: str = "Simulated"
    contract: Contract = "v1beta2"

    @property
    def bootstrap(self) -> Resource:
        return self._resource(f"bootstrap.{CORE_GROUP}", "Bootstrap")

    @property
    def machine(self) -> Resource:
        return self._resource(f"infrastructure.{CORE_GROUP}", "Machine")

    @property
    def cluster(self) -> Resource:
        return self._resource(f"infrastructure.{CORE_GROUP}", "Cluster")

    @property
    def control_plane(self) -> Resource:
        return self._resource(f"controlplane.{CORE_GROUP}", "ControlPlane")

    def definitions(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions, with the label that tells Cluster API the contract."""
        return [
            self._definition(self.bootstrap, SimulatedBootstrap),
            self._definition(self.machine, SimulatedMachine),
            self._definition(self.cluster, SimulatedCluster),
            self._definition(self.control_plane, SimulatedControlPlane),
        ]

    def _resource(self, group: str, suffix: str) -> Resource:
        kind = f"{self.prefix}{suffix}"
        # Cluster API computes the plural of a kind it is referred to, and finds the definition by it.
        return Resource(group, _VERSION, f"{kind.lower()}s", kind)

    def _definition(self, resource: Resource, model: type[BaseModel]) -> dict[str, Any]:
        return crd(
            group=resource.group,
            kind=resource.kind,
            plural=resource.plural,
            singular=resource.kind.lower(),
            versions=[CrdVersion(_VERSION, model)],
            categories=["cluster-api"],
            labels={f"{CORE_GROUP}/{self.contract}": _VERSION},
        )


SIMULATED: Final = KindFamily()
"""Follows the contract of today."""
SIMULATED_EARLIER: Final = KindFamily("SimulatedEarlier", "v1beta1")
"""Follows the contract of Cluster API 1.10 and older, which newer releases still understand."""
