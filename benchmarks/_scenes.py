"""Collections of objects that a benchmark's server generates on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from fivespot.api import names
from fivespot.controllers.scheduledmachine.children import build_embedded, build_machine

from ._bodies import encoded_machine

__all__ = ["CREATED", "NAMESPACES", "SCENES", "Collection", "Make", "fleet"]

CREATED = "2026-01-01T00:00:00Z"
NAMESPACES = 50

Json = dict[str, Any]
Make = Callable[[int], bytes]


@dataclass(frozen=True)
class Collection:
    """Objects by number.

    :ivar make: the JSON of one.
    :ivar number: of an object by its name.
    """

    count: int
    make: Make
    number: Callable[[str], int]


def _machines(count: int) -> dict[str, Collection]:
    """Nothing but Machines."""
    mark = 77_777
    template = encoded_machine(mark, 1).replace(b"team-27", b"team-7")

    def make(number: int) -> bytes:
        return template.replace(b"77777", b"%05d" % number)

    return {"/apis/cluster.x-k8s.io/v1beta2/machines": Collection(count, make, _number)}


def fleet(count: int) -> dict[str, Collection]:
    """ScheduledMachines that are up and ready, with all that belongs to them."""
    definitions = [
        _definition(names.GROUP, names.VERSION, names.PLURAL, names.KIND),
        _definition(names.PROVIDER_GROUP, "v1alpha1", "playeds", "Played"),
        _definition("cluster.x-k8s.io", "v1beta2", "machines", "Machine"),
        _definition("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster"),
        _definition("bootstrap.cluster.x-k8s.io", "v1beta1", "standinbootstraps", "StandInBootstrap"),
        _definition("infrastructure.cluster.x-k8s.io", "v1beta1", "standinmachines", "StandInMachine"),
    ]
    by_name = {found["metadata"]["name"]: at for at, found in enumerate(definitions)}
    crds = Collection(len(definitions), lambda at: msgspec.json.encode(definitions[at]), by_name.__getitem__)

    def all_of(make: Callable[[int], Json], many: int = count) -> Collection:
        return Collection(many, lambda number: msgspec.json.encode(make(number)), _number)

    return {
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": crds,
        f"/apis/{names.API_VERSION}/{names.PLURAL}": all_of(_scheduled_machine),
        f"/apis/{names.PROVIDER_GROUP}/v1alpha1/playeds": all_of(_schedule, min(count, NAMESPACES)),
        "/apis/cluster.x-k8s.io/v1beta2/clusters": all_of(_cluster, min(count, NAMESPACES)),
        "/apis/cluster.x-k8s.io/v1beta2/machines": all_of(_machine),
        "/apis/bootstrap.cluster.x-k8s.io/v1beta1/standinbootstraps": all_of(partial(_child, "bootstrapSpec")),
        "/apis/infrastructure.cluster.x-k8s.io/v1beta1/standinmachines": all_of(partial(_child, "infrastructureSpec")),
    }


SCENES: Mapping[str, Callable[[int], dict[str, Collection]]] = {"machines": _machines, "fleet": fleet}


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _metadata(number: int, what: str, **more: Any) -> Json:
    """With about a kilobyte of managedFields."""
    fields: Json = {f"f:field{index}": {".": {}, "f:value": {}} for index in range(28)}
    managed = {"manager": "manager", "operation": "Update", "time": CREATED, "fieldsV1": {"f:spec": fields}}
    return {
        "name": f"m-{number:05}",
        "namespace": f"team-{number % NAMESPACES}",
        "uid": f"{what:0<8.8}-0000-4000-8000-{number:012}",
        "resourceVersion": str(number + 1000),
        "generation": 1,
        "creationTimestamp": CREATED,
        "managedFields": [managed],
    } | more


def _scheduled_machine(number: int) -> Json:
    metadata = _metadata(number, "5b07", finalizers=[names.FINALIZER])
    where = {"name": metadata["name"], "namespace": metadata["namespace"]}
    spec: Json = {
        "schedule": {"apiVersion": f"{names.PROVIDER_GROUP}/v1alpha1", "kind": "Played", "name": f"s-{number % 50:05}"},
        "clusterName": "prod-00000",
        "enabled": True,
        "killSwitch": False,
        "priority": 50,
        "gracefulShutdownTimeout": "5m",
        "nodeDrainTimeout": "5m",
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
            "kind": "StandInBootstrap",
            "spec": {"files": ["x" * 200]},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "StandInMachine",
            "spec": {"size": "large", "image": "y" * 80},
        },
    }
    refs = {
        field: {"apiVersion": spec[template]["apiVersion"], "kind": spec[template]["kind"], **where}
        for field, template in (("bootstrapRef", "bootstrapSpec"), ("infrastructureRef", "infrastructureSpec"))
    }
    status: Json = {
        "phase": "Active",
        "spotSchedule": {
            "resolved": True,
            "active": True,
            "reason": "Resolved",
            "reference": {"kind": "Played", "name": spec["schedule"]["name"]},
        },
        "machineRef": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", **where, "uid": _uid(number)},
        **refs,
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _uid(number: int) -> str:
    return str(_metadata(number, "3ac8")["uid"])


def _machine(number: int) -> Json:
    made = build_machine(_scheduled_machine(number), "v1beta2")
    made["metadata"] = _metadata(number, "3ac8", finalizers=["machine.cluster.x-k8s.io"]) | made["metadata"]
    made["spec"]["providerID"] = f"stand-in://{number}"
    conditions = ("Ready", "Available", "BootstrapConfigReady", "InfrastructureReady", "NodeReady", "NodeHealthy")
    made["status"] = {
        "phase": "Running",
        "nodeRef": {"name": f"node-{number:05}"},
        "conditions": [
            {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": CREATED}
            for type_ in conditions
        ],
    }
    return made


def _child(field: str, number: int) -> Json:
    made = build_embedded(_scheduled_machine(number), field)
    owner = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "name": made["metadata"]["name"],
        "uid": _uid(number),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made["metadata"] = _metadata(number, field, ownerReferences=[owner]) | made["metadata"]
    return made | {"status": {"ready": True}}


def _cluster(number: int) -> Json:
    metadata = _metadata(number, "c1a5") | {"name": "prod-00000"}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata, "spec": {}}


def _schedule(number: int) -> Json:
    metadata = _metadata(number, "5ced") | {"name": f"s-{number:05}"}
    return {
        "apiVersion": f"{names.PROVIDER_GROUP}/v1alpha1",
        "kind": "Played",
        "metadata": metadata,
        "status": {"active": True, "observedGeneration": 1},
    }


def _definition(group: str, version: str, plural: str, kind: str) -> Json:
    naming = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "uid": f"{plural}-{group}",
            "resourceVersion": "10",
            "labels": {"cluster.x-k8s.io/v1beta2": version},
        },
        "spec": {
            "group": group,
            "names": naming,
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True}],
        },
        "status": {"acceptedNames": naming, "conditions": [{"type": "Established", "status": "True"}]},
    }
