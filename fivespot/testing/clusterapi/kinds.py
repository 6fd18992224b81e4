"""The simulated kinds: the specs that script what happens to an object, and the CustomResourceDefinitions.

A spec says when an object is provisioned and removed and whether either fails, so a test needs no access to the process
that runs the providers, and may change the script at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fivespot.runtime import Resource
from fivespot.runtime.crd import CrdVersion, crd, preserve_unknown_fields

__all__ = [
    "CORE_GROUP",
    "SIMULATED",
    "SIMULATED_EARLIER",
    "BootstrapScript",
    "ClusterScript",
    "Contract",
    "KindFamily",
    "LifeScript",
    "MachineScript",
    "NodeScript",
    "Outcome",
]

Outcome = Literal["Succeed", "Fail", "Never"]
"""The end of an operation: success, failure with a message, or never."""

Seconds = Annotated[float, Field(ge=0, le=86400)]
Anything = Annotated[dict[str, Any], preserve_unknown_fields()]


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )


class LifeScript(_Model):
    """Script of an object: when it is provisioned and removed, and whether either fails."""

    create: Outcome = "Succeed"
    """Outcome of provisioning."""
    create_after_seconds: Seconds = 0
    """Seconds from the moment at which provisioning may begin."""
    delete: Outcome = "Succeed"
    """Outcome of removal; `Fail` and `Never` keep the finalizer until the script changes."""
    delete_after_seconds: Seconds = 0
    """Seconds from the first observation of the deletion."""
    failure: str = "the simulated provider was scripted to fail"
    """Message of `Fail`."""


class BootstrapScript(LifeScript):
    """Script of a bootstrap object: when its bootstrap data exist."""


class NodeScript(_Model):
    """Script of the Node that a machine becomes."""

    create: bool = True
    """Whether a Node registers at all."""
    create_after_seconds: Seconds = 0
    """Seconds from provisioning of the machine until the Node registers."""
    ready: bool = True
    """Whether the Node is ready; may change at any time."""
    ready_after_seconds: Seconds = 0
    """Seconds from registration until the Node is ready for the first time."""
    remove: bool = True
    """Whether the Node is removed with its machine, as a cloud controller manager does."""
    labels: dict[str, str] = {}
    """Labels that the Node registers with."""


class MachineScript(LifeScript):
    """Script of an infrastructure machine and its Node."""

    provider_id: Annotated[str | None, Field(alias="providerID")] = None
    """Set by the provider, once."""
    node: NodeScript = NodeScript()
    """The Node that it becomes."""


class Endpoint(_Model):
    """Address of a cluster's API server."""

    host: str = ""
    port: int = 0


class ClusterScript(LifeScript):
    """Script of the infrastructure of a cluster."""

    control_plane_endpoint: Endpoint = Endpoint()
    """Copied to the Cluster."""


class SimulatedBootstrap(BaseModel):
    """Simulated bootstrap config: has data for a machine when its script says so."""

    spec: Annotated[BootstrapScript, preserve_unknown_fields()] = BootstrapScript()
    status: Anything | None = None


class SimulatedMachine(BaseModel):
    """Simulated infrastructure machine: provisioned, registered as a Node and removed when its script says so."""

    spec: Annotated[MachineScript, preserve_unknown_fields()] = MachineScript()
    status: Anything | None = None


class SimulatedCluster(BaseModel):
    """Simulated infrastructure cluster."""

    spec: Annotated[ClusterScript, preserve_unknown_fields()] = ClusterScript()
    status: Anything | None = None


class SimulatedControlPlane(BaseModel):
    """Simulated control plane that is managed externally: it has no machines of its own."""

    spec: Annotated[LifeScript, preserve_unknown_fields()] = LifeScript()
    status: Anything | None = None


CORE_GROUP: Final = "cluster.x-k8s.io"

Contract = Literal["v1beta1", "v1beta2"]
"""Contract version between a provider and Cluster API's core, which the CRD's label names. It is independent of the API
versions that either serves."""

_VERSION: Final = "v1beta1"


@dataclass(frozen=True, slots=True)
class KindFamily:
    """Bootstrap, infrastructure machine, infrastructure cluster and control plane kinds that follow one contract.

    :param prefix: prefix of all four kinds; two families on one server need different ones.
    :param contract: v1beta2 needs Cluster API 1.11 or newer.
    :param bootstrap_kind: name of the bootstrap kind, to stand in for that of a real provider; by default derived from
        the prefix. Unknown fields of the spec are kept.
    :param machine_kind: name of the infrastructure machine kind, likewise.
    """

    prefix: str = "Simulated"
    contract: Contract = "v1beta2"
    bootstrap_kind: str = ""
    machine_kind: str = ""

    @property
    def bootstrap(self) -> Resource:
        return self._resource(f"bootstrap.{CORE_GROUP}", self.bootstrap_kind or f"{self.prefix}Bootstrap")

    @property
    def machine(self) -> Resource:
        return self._resource(f"infrastructure.{CORE_GROUP}", self.machine_kind or f"{self.prefix}Machine")

    @property
    def cluster(self) -> Resource:
        return self._resource(f"infrastructure.{CORE_GROUP}", f"{self.prefix}Cluster")

    @property
    def control_plane(self) -> Resource:
        return self._resource(f"controlplane.{CORE_GROUP}", f"{self.prefix}ControlPlane")

    def definitions(self) -> list[dict[str, Any]]:
        """The CustomResourceDefinitions, with the label that names the contract."""
        return [
            self._definition(self.bootstrap, SimulatedBootstrap),
            self._definition(self.machine, SimulatedMachine),
            self._definition(self.cluster, SimulatedCluster),
            self._definition(self.control_plane, SimulatedControlPlane),
        ]

    def _resource(self, group: str, kind: str) -> Resource:
        # Cluster API derives the plural of a referenced kind and finds the CustomResourceDefinition by it.
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
"""Follows contract v1beta2."""
SIMULATED_EARLIER: Final = KindFamily("SimulatedEarlier", "v1beta1")
"""Follows contract v1beta1 of Cluster API 1.10 and older, which newer releases still support."""
