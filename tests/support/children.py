"""Bootstrap and infrastructure kinds and objects beside the stand-ins, and what Cluster API does to them."""

from __future__ import annotations

from typing import Any

from controlplane import Api
from harness.wait import eventually

from .refusals import foreign
from .scenario import BOOTSTRAP, INFRASTRUCTURE, MACHINES, Scenario

Json = dict[str, Any]

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
OTHER_BOOTSTRAP = ("bootstrap.cluster.x-k8s.io/v1beta1", "OtherBootstrap")
OTHER_INFRASTRUCTURE = ("infrastructure.cluster.x-k8s.io/v1beta1", "OtherMachine")

LABEL = "5spot.finos.org/scheduled-machine"
UID = "5spot.finos.org/scheduled-machine-uid"
CONTRACT = "cluster.x-k8s.io/v1beta2"


class InfrastructureKind:
    """An infrastructure kind that is installed, labelled and removed while the manager runs."""

    def __init__(self, api: Api, kind: str) -> None:
        self.api = api
        self.kind = kind
        self.group = INFRASTRUCTURE[0].partition("/")[0]
        self.name = f"{kind.lower()}s.{self.group}"

    @property
    def spec(self) -> Json:
        """An embedded object of it."""
        return {"apiVersion": INFRASTRUCTURE[0], "kind": self.kind, "spec": {}}

    @property
    def resource(self) -> tuple[str, str]:
        return INFRASTRUCTURE[0], self.kind

    def install(self, *, labelled: bool = True) -> None:
        definition = self.api.get(*CRD, f"standinmachines.{self.group}")
        kind, plural = self.kind, f"{self.kind.lower()}s"
        names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
        labels = {CONTRACT: "v1beta1"} if labelled else {}
        self.api.create(
            {
                "apiVersion": CRD[0],
                "kind": CRD[1],
                "metadata": {"name": self.name, "labels": labels},
                "spec": {**definition["spec"], "names": names},
            }
        )

    def label(self) -> None:
        """Declare that it follows Cluster API's contract."""
        self.api.patch(*CRD, self.name, None, {"metadata": {"labels": {CONTRACT: "v1beta1"}}})

    def remove(self) -> None:
        self.api.delete(*CRD, self.name, missing_ok=True)


def controller_reference(owner: Json) -> Json:
    """Build the reference that makes ``owner`` the controller of another object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt(scenario: Scenario) -> None:
    """Adopt the objects that a new Machine refers to, as Cluster API does."""
    metadata = {"ownerReferences": [controller_reference(scenario.machine())]}
    for kind in (BOOTSTRAP, INFRASTRUCTURE):
        scenario.api.patch(*kind, scenario.name, scenario.namespace, {"metadata": metadata})


def let_deleting_machines_go(api: Api, namespace: str) -> None:
    """Remove the finalizer of every Machine of a namespace that is being deleted, as Cluster API does in the end."""
    for machine in api.list(*MACHINES, namespace):
        metadata = machine["metadata"]
        if "deletionTimestamp" in metadata and metadata.get("finalizers"):
            api.patch(*MACHINES, metadata["name"], namespace, {"metadata": {"finalizers": None}})


def wait_read(scenario: Scenario, kind: tuple[str, str]) -> None:
    """Wait until the manager has read all that there is of a kind of children by now.

    A watch delivers in order: a leftover that is created last is deleted once everything before it has been read.
    """
    probe = Scenario(scenario.api, scenario.namespace, scenario.provider, "probe")
    probe.create(enabled=False)
    probe.wait_phase("Disabled")
    owner = probe.get()
    ours: Json = {"annotations": {UID: owner["metadata"]["uid"]}}
    if kind == MACHINES:
        ours = {"ownerReferences": [controller_reference(owner)]}
    scenario.api.create(foreign(kind, scenario.namespace, probe.name, **ours))
    eventually(lambda: probe.child(kind) is None, what=f"all there is of {kind} is read")


def wait_present(scenario: Scenario, *kinds: tuple[str, str]) -> None:
    """Wait until an object of each of these kinds exists under the name."""
    eventually(lambda: all(scenario.child(kind) is not None for kind in kinds), what=f"{kinds} exist")


def wait_absent(scenario: Scenario, *kinds: tuple[str, str], timeout: float = 15) -> None:
    """Wait until none of these kinds has an object under the name."""
    eventually(lambda: all(scenario.child(kind) is None for kind in kinds), timeout, what=f"{kinds} are gone")
