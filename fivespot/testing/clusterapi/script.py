"""What the spec of a simulated object says will happen to it: the script of a test, in the object itself.

So a test needs no access to the process that runs the providers, and may rewrite the script at any time.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fivespot.runtime.crd import preserve_unknown_fields

__all__ = [
    "BootstrapScript",
    "Endpoint",
    "LifeScript",
    "MachineScript",
    "NodeScript",
    "Outcome",
    "SimulatedBootstrap",
    "SimulatedCluster",
    "SimulatedControlPlane",
    "SimulatedMachine",
]

Outcome = Literal["Succeed", "Fail", "Never"]
"""How something ends: well, with a message, or not at all."""

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
    """When and how an object is made and unmade."""

    create: Outcome = "Succeed"
    """How making it ends."""
    create_after_seconds: Seconds = 0
    """How long that takes from the moment at which it may begin."""
    delete: Outcome = "Succeed"
    """How unmaking it ends; `Fail` and `Never` keep the finalizer on until the script says something else."""
    delete_after_seconds: Seconds = 0
    """How long that takes from the first sight of the deletion."""
    failure: str = "the simulated provider was told to fail"
    """The message of `Fail`."""


class BootstrapScript(LifeScript):
    """When there are data to start a machine with."""


class NodeScript(_Model):
    """The node that a machine becomes."""

    create: bool = True
    """Whether there will be a Node at all."""
    create_after_seconds: Seconds = 0
    """How long after the machine was provisioned the Node registers."""
    ready: bool = True
    """Whether the Node is ready; may change at any time."""
    ready_after_seconds: Seconds = 0
    """How long after it registered the Node is ready for the first time."""
    remove: bool = True
    """Whether the Node goes with its machine, as a cloud controller manager sees to it."""
    labels: dict[str, str] = {}
    """Labels that the Node registers with."""


class MachineScript(LifeScript):
    """When there is a machine, and what becomes of it."""

    provider_id: Annotated[str | None, Field(alias="providerID")] = None
    """Set by the provider, once."""
    node: NodeScript = NodeScript()
    """The node that it becomes."""


class Endpoint(_Model):
    """Where a cluster's API server is."""

    host: str = ""
    port: int = 0


class ClusterScript(LifeScript):
    """When the infrastructure of a cluster is there."""

    control_plane_endpoint: Endpoint = Endpoint()
    """Taken over by the Cluster."""


class SimulatedBootstrap(BaseModel):
    """Plays a bootstrap provider's object: it has data for a machine when its script says so."""

    spec: Annotated[BootstrapScript, preserve_unknown_fields()] = BootstrapScript()
    status: Anything | None = None


class SimulatedMachine(BaseModel):
    """Plays an infrastructure provider's machine: it is there, becomes a Node and goes when its script says so."""

    spec: Annotated[MachineScript, preserve_unknown_fields()] = MachineScript()
    status: Anything | None = None


class SimulatedCluster(BaseModel):
    """Plays an infrastructure provider's cluster."""

    spec: Annotated[ClusterScript, preserve_unknown_fields()] = ClusterScript()
    status: Anything | None = None


class SimulatedControlPlane(BaseModel):
    """Plays a control plane that others run: there from the beginning, without machines of its own."""

    spec: Annotated[LifeScript, preserve_unknown_fields()] = LifeScript()
    status: Anything | None = None
