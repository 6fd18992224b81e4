"""Builds the three children of a ScheduledMachine. Pure: a body goes in, bodies come out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypedDict

import msgspec

from fivespot.api import duration_seconds, names
from fivespot.runtime import Object
from fivespot.runtime.objects import group_of

__all__ = [
    "EXCLUDE_DRAIN",
    "EXCLUDE_VOLUMES",
    "build_embedded",
    "build_machine",
    "drain_settings",
    "readable",
    "source_of",
    "template_hash",
]

EXCLUDE_DRAIN: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUMES: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"

_HASHED: Final = (
    "clusterName",
    "bootstrapSpec",
    "infrastructureSpec",
    "machineTemplate",
    "nodeTaints",
    "nodeDrainTimeout",
)
_canonical = msgspec.json.Encoder(order="deterministic")


def template_hash(spec: Mapping[str, Any]) -> str:
    """Return the first 16 hex digits of the SHA-256 of everything that children are made from, as canonical JSON."""
    made_from = {field: spec[field] for field in _HASHED if spec.get(field) is not None}
    return hashlib.sha256(_canonical.encode(made_from)).hexdigest()[:16]


class _Embedded(TypedDict, total=False):
    apiVersion: Any
    kind: Any
    metadata: Any
    spec: msgspec.Raw


class _Spec(TypedDict, total=False):
    schedule: Any
    clusterName: Any
    bootstrapSpec: _Embedded
    infrastructureSpec: _Embedded
    machineTemplate: Any
    nodeTaints: Any
    nodeDrainTimeout: Any


class _Source(TypedDict):
    metadata: Any
    spec: _Spec


_source_decoder = msgspec.json.Decoder(_Source)


def source_of(obj: Object) -> Mapping[str, Any]:
    """Decode the fields of a ScheduledMachine that its children are built from.

    The ``spec`` of each embedded object stays JSON and is sent as it was written: it may be a megabyte, and runs of
    many machines hold theirs at once.
    """
    return obj.decode_as(_source_decoder)


def readable(embedded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that :func:`build_embedded` made with its ``spec`` decoded."""
    spec = embedded["spec"]
    return {**embedded, "spec": msgspec.json.decode(spec) if isinstance(spec, msgspec.Raw) else spec}


def build_embedded(body: Mapping[str, Any], field: str, *, known_hash: str = "") -> dict[str, Any]:
    """Return the bootstrap or infrastructure object that ``spec.<field>`` of a ScheduledMachine describes.

    It has no ownerReferences: Cluster API refuses to adopt an object that another controller owns.

    :param body: as :func:`source_of` returns it, or decoded as a whole.
    :param known_hash: :func:`template_hash` of the spec, if the caller has it; needed where embedded specs are JSON.
    """
    embedded = body["spec"][field]
    return {
        "apiVersion": embedded["apiVersion"],
        "kind": embedded["kind"],
        "metadata": _metadata(body, embedded.get("metadata"), known_hash),
        "spec": embedded["spec"],
    }


def build_machine(body: Mapping[str, Any], version: str, *, known_hash: str = "") -> dict[str, Any]:
    """Return the Cluster API Machine at ``version``, which decides the form of its references.

    The parameters are those of :func:`build_embedded`.
    """
    spec = body["spec"]
    template = spec.get("machineTemplate") or {}
    metadata = _metadata(body, template, known_hash)
    metadata["ownerReferences"] = [
        {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "name": body["metadata"]["name"],
            "uid": body["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    machine: dict[str, Any] = {
        "clusterName": spec["clusterName"],
        "bootstrap": {"configRef": _reference(body, spec["bootstrapSpec"], version)},
        "infrastructureRef": _reference(body, spec["infrastructureSpec"], version),
    }
    for field in ("version", "failureDomain"):
        if template.get(field):
            machine[field] = template[field]
    if spec.get("nodeTaints"):
        machine["taints"] = [
            {**{k: taint[k] for k in ("key", "value", "effect") if taint.get(k)}, "propagation": "Always"}
            for taint in spec["nodeTaints"]
        ]
    annotations, timeouts = drain_settings(duration_seconds(spec.get("nodeDrainTimeout") or "5m"), version)
    metadata["annotations"].update(annotations)
    machine.update(timeouts)
    return {
        "apiVersion": f"{names.CLUSTER_API_GROUP}/{version}",
        "kind": "Machine",
        "metadata": metadata,
        "spec": machine,
    }


def drain_settings(seconds: int, version: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the annotations and spec fields of a Machine for a drain of at most ``seconds``.

    Cluster API reads a timeout of 0 as "no limit", so "do not drain" is expressed by annotations and by no timeout at
    all. Volumes are not waited for either, since pods that still run would hold theirs forever.
    """
    if seconds == 0:
        return {EXCLUDE_DRAIN: "", EXCLUDE_VOLUMES: ""}, {}
    if version == "v1beta1":
        return {}, {"nodeDrainTimeout": f"{seconds}s", "nodeVolumeDetachTimeout": f"{seconds}s"}
    return {}, {"deletion": {"nodeDrainTimeoutSeconds": seconds, "nodeVolumeDetachTimeoutSeconds": seconds}}


def _reference(body: Mapping[str, Any], embedded: Mapping[str, Any], version: str) -> dict[str, str]:
    name = body["metadata"]["name"]
    if version == "v1beta1":
        return {
            "apiVersion": embedded["apiVersion"],
            "kind": embedded["kind"],
            "name": name,
            "namespace": body["metadata"]["namespace"],
        }
    return {"apiGroup": group_of(embedded["apiVersion"]), "kind": embedded["kind"], "name": name}


def _metadata(body: Mapping[str, Any], template: Mapping[str, Any] | None, known_hash: str) -> dict[str, Any]:
    spec, own = body["spec"], body["metadata"]
    template = template or {}
    # Our marks are applied last, so that no template can change the owner of an object.
    labels = dict(template.get("labels") or {})
    labels[names.LABEL_MACHINE] = own["name"]
    labels[names.LABEL_CLUSTER] = spec["clusterName"]
    annotations = dict(template.get("annotations") or {})
    annotations[names.ANNOTATION_UID] = own["uid"]
    annotations[names.ANNOTATION_SCHEDULE_REF] = f"{spec['schedule']['kind']}/{spec['schedule']['name']}"
    annotations[names.ANNOTATION_TEMPLATE_HASH] = known_hash or template_hash(spec)
    return {"name": own["name"], "namespace": own["namespace"], "labels": labels, "annotations": annotations}
