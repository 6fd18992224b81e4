"""Schemas of the built-in kinds, reduced to the fields that controllers use.

Other parts (containers, volumes, ...) are not validated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["SCHEMAS"]

Schema = Mapping[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_INT: Final[Schema] = {"type": "integer"}
_INT32: Final[Schema] = {"type": "integer", "format": "int32"}
_BYTES: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string", "format": "base64"}}
_QUANTITIES: Final[Schema] = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time", "nullable": True}
_MICRO: Final[Schema] = {"type": "string", "format": "micro-time", "nullable": True}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _object(words: str = "", /, **properties: Schema) -> Schema:
    described = {"description": words} if words else {}
    return {**described, "type": "object", "properties": properties}


def _described(schema: Schema, words: str) -> Schema:
    return {"description": words, **schema}


def _list(items: Schema, *keys: str, unique: bool = False) -> Schema:
    kind: dict[str, Any] = {"x-kubernetes-list-type": "set"} if unique else {"x-kubernetes-list-type": "atomic"}
    if keys:
        kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": items, **kind}


_REFERENCE: Final = _object(
    "A reference to an object.",
    apiVersion=_TEXT, fieldPath=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT, resourceVersion=_TEXT, uid=_TEXT,
)  # fmt: skip
_ATOMIC_REFERENCE: Final = {**_REFERENCE, "x-kubernetes-map-type": "atomic"}
_NAMED: Final = {**_object(name=_TEXT), "x-kubernetes-map-type": "atomic"}
_CONDITION: Final = _object(
    "What is true of the object.",
    type=_TEXT, status=_TEXT, reason=_TEXT, message=_TEXT,
    lastTransitionTime=_TIME, lastHeartbeatTime=_TIME, lastProbeTime=_TIME, observedGeneration=_INT,
)  # fmt: skip
_CONDITIONS: Final = _list(_CONDITION, "type")
_SOURCE: Final = _object(component=_TEXT, host=_TEXT)
_SERIES: Final = _object(count=_INT32, lastObservedTime=_MICRO)
_CONTAINER: Final = {
    **_object(name=_TEXT, image=_TEXT, command=_list(_TEXT), args=_list(_TEXT)),
    "x-kubernetes-preserve-unknown-fields": True,
}
_TAINT: Final = _object(key=_TEXT, value=_TEXT, effect=_TEXT, timeAdded=_TIME)


def _open(schema: Schema) -> Schema:
    return {**schema, "x-kubernetes-preserve-unknown-fields": True}


_POD_SPEC: Final = _open(
    _object(
        containers=_list(_CONTAINER, "name"),
        initContainers=_list(_CONTAINER, "name"),
        nodeName=_TEXT,
        nodeSelector=_TEXTS,
        restartPolicy=_TEXT,
        serviceAccountName=_TEXT,
        terminationGracePeriodSeconds=_INT,
    )
)
_TEMPLATE: Final = _object(
    "Template describes the pods that will be created.",
    metadata=_open(_object(annotations=_TEXTS, labels=_TEXTS)),
    spec=_POD_SPEC,
)
_SELECTOR: Final = {
    **_object(
        "A label query over pods.",
        matchExpressions=_list(_object(key=_TEXT, operator=_TEXT, values=_list(_TEXT))),
        matchLabels=_TEXTS,
    ),
    "x-kubernetes-map-type": "atomic",
}
_CHOICE: Final[Schema] = {"x-kubernetes-int-or-string": True}
_COUNTS: Final = ("availableReplicas", "readyReplicas", "replicas", "terminatingReplicas")

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Namespace": _object(
        "Namespace provides a scope for Names.",
        spec=_object("Spec defines the behavior of the Namespace.", finalizers=_list(_TEXT)),
        status=_object("Status describes the current status of a Namespace.", phase=_TEXT, conditions=_CONDITIONS),
    ),
    "ConfigMap": _object(
        "ConfigMap holds configuration data for pods to consume.",
        binaryData=_described(_BYTES, "BinaryData contains the binary data, in base64."),
        data=_described(_TEXTS, "Data contains the configuration data."),
        immutable=_described(
            _FLAG, "Immutable, if set to true, ensures that data stored in the ConfigMap cannot be updated."
        ),
    ),
    "Secret": _object(
        "Secret holds secret data of a certain type.",
        data=_described(
            _BYTES,
            "Data contains the secret data, in base64.",
        ),
        immutable=_described(
            _FLAG, "Immutable, if set to true, ensures that data stored in the Secret cannot be updated."
        ),
        stringData=_described(
            _TEXTS, "stringData allows specifying non-binary secret data in string form. Write-only."
        ),
        type=_described(_TEXT, "Used to facilitate programmatic handling of secret data."),
    ),
    "ServiceAccount": _object(
        "ServiceAccount binds together a name, a principal and a set of secrets.",
        automountServiceAccountToken=_FLAG,
        imagePullSecrets=_list(_NAMED),
        secrets=_list(_REFERENCE, "name"),
    ),
    "Lease": _object(
        "Lease defines a lease concept.",
        spec=_object(
            "spec contains the specification of the Lease.",
            acquireTime=_MICRO,
            holderIdentity=_described(_TEXT, "holderIdentity contains the identity of the holder of a current lease."),
            leaseDurationSeconds=_INT32,
            leaseTransitions=_INT32,
            preferredHolder=_TEXT,
            renewTime=_MICRO,
            strategy=_TEXT,
        ),
    ),
    "Event": _object(
        "Event is a report of an event somewhere in the cluster.",
        action=_TEXT,
        count=_INT32,
        eventTime=_MICRO,
        firstTimestamp=_TIME,
        involvedObject=_described(_ATOMIC_REFERENCE, "The object that this event is about."),
        lastTimestamp=_TIME,
        message=_described(_TEXT, "A human-readable description of the status of this operation."),
        reason=_TEXT,
        related=_ATOMIC_REFERENCE,
        reportingComponent=_TEXT,
        reportingInstance=_TEXT,
        series=_SERIES,
        source=_SOURCE,
        type=_TEXT,
    ),
    "events.k8s.io/Event": _object(
        "Event is a report of an event somewhere in the cluster.",
        action=_TEXT,
        deprecatedCount=_INT32,
        deprecatedFirstTimestamp=_TIME,
        deprecatedLastTimestamp=_TIME,
        deprecatedSource=_SOURCE,
        eventTime=_MICRO,
        note=_TEXT,
        reason=_TEXT,
        regarding=_ATOMIC_REFERENCE,
        related=_ATOMIC_REFERENCE,
        reportingController=_TEXT,
        reportingInstance=_TEXT,
        series=_SERIES,
        type=_TEXT,
    ),
    "Node": _object(
        "Node is a worker node in Kubernetes.",
        spec=_open(_object(podCIDR=_TEXT, providerID=_TEXT, taints=_list(_TAINT), unschedulable=_FLAG)),
        status=_open(
            _object(
                addresses=_list(_object(address=_TEXT, type=_TEXT), "type"),
                allocatable=_QUANTITIES,
                capacity=_QUANTITIES,
                conditions=_CONDITIONS,
                nodeInfo=_ANY,
            )
        ),
    ),
    "Pod": _object(
        "Pod is a collection of containers that can run on a host.",
        spec=_POD_SPEC,
        status=_open(_object(phase=_TEXT, conditions=_CONDITIONS, hostIP=_TEXT, podIP=_TEXT)),
    ),
    "PodDisruptionBudget": _object(
        "PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods.",
        spec=_object(
            maxUnavailable={"x-kubernetes-int-or-string": True},
            minAvailable={"x-kubernetes-int-or-string": True},
            selector={**_ANY, "x-kubernetes-map-type": "atomic"},
            unhealthyPodEvictionPolicy=_TEXT,
        ),
        status=_open(_object(conditions=_CONDITIONS)),
    ),
    "Deployment": _object(
        "Deployment enables declarative updates for Pods and ReplicaSets.",
        spec=_object(
            minReadySeconds=_INT32,
            paused=_FLAG,
            progressDeadlineSeconds=_INT32,
            replicas=_described(_INT32, "Number of desired pods."),
            revisionHistoryLimit=_INT32,
            selector=_SELECTOR,
            strategy=_object(rollingUpdate=_object(maxSurge=_CHOICE, maxUnavailable=_CHOICE), type=_TEXT),
            template=_TEMPLATE,
        ),
        status=_object(
            collisionCount=_INT32,
            conditions=_CONDITIONS,
            observedGeneration=_INT,
            unavailableReplicas=_INT32,
            updatedReplicas=_INT32,
            **dict.fromkeys(_COUNTS, _INT32),
        ),
    ),
    "ReplicaSet": _object(
        "ReplicaSet ensures that a specified number of pod replicas are running at any given time.",
        spec=_object(
            minReadySeconds=_INT32,
            replicas=_described(_INT32, "Number of desired pods."),
            selector=_SELECTOR,
            template=_TEMPLATE,
        ),
        status=_object(
            conditions=_CONDITIONS,
            fullyLabeledReplicas=_INT32,
            observedGeneration=_INT,
            **dict.fromkeys(_COUNTS, _INT32),
        ),
    ),
    "Service": _object(
        "Service is a named abstraction of a software service, such as a port that a proxy listens on.",
        spec=_object(
            allocateLoadBalancerNodePorts=_FLAG,
            clusterIP=_TEXT,
            clusterIPs=_list(_TEXT),
            externalIPs=_list(_TEXT),
            externalName=_TEXT,
            externalTrafficPolicy=_TEXT,
            healthCheckNodePort=_INT32,
            internalTrafficPolicy=_TEXT,
            ipFamilies=_list(_TEXT),
            ipFamilyPolicy=_TEXT,
            loadBalancerClass=_TEXT,
            loadBalancerIP=_TEXT,
            loadBalancerSourceRanges=_list(_TEXT),
            ports=_list(
                _object(
                    appProtocol=_TEXT,
                    name=_TEXT,
                    nodePort=_INT32,
                    port=_INT32,
                    protocol={**_TEXT, "default": "TCP"},
                    targetPort=_CHOICE,
                ),
                "port",
                "protocol",
            ),
            publishNotReadyAddresses=_FLAG,
            selector={**_TEXTS, "x-kubernetes-map-type": "atomic"},
            sessionAffinity=_TEXT,
            sessionAffinityConfig=_object(clientIP=_object(timeoutSeconds=_INT32)),
            trafficDistribution=_TEXT,
            type=_TEXT,
        ),
        status=_object(conditions=_CONDITIONS, loadBalancer=_object(ingress=_list(_ANY))),
    ),
    "CertificateSigningRequest": _object(
        "CertificateSigningRequest asks a signer for a certificate.",
        spec=_object(
            expirationSeconds=_INT32,
            extra={"type": "object", "additionalProperties": _list(_TEXT)},
            groups=_list(_TEXT),
            request={"type": "string", "format": "base64"},
            signerName=_TEXT,
            uid=_TEXT,
            usages=_list(_TEXT),
            username=_TEXT,
        ),
        status=_object(
            certificate={"type": "string", "format": "base64"},
            conditions=_list(
                _object(
                    lastTransitionTime=_TIME,
                    lastUpdateTime=_TIME,
                    message=_TEXT,
                    reason=_TEXT,
                    status=_TEXT,
                    type=_TEXT,
                ),
                "type",
            ),
        ),
    ),
    "CustomResourceDefinition": _object(
        "CustomResourceDefinition represents a resource that should be exposed on the API server.",
        spec=_object(
            "spec describes how the user wants the resources to appear",
            conversion=_object(strategy=_TEXT, webhook=_ANY),
            group=_TEXT,
            names=_object(
                categories=_list(_TEXT),
                kind=_TEXT,
                listKind=_TEXT,
                plural=_TEXT,
                shortNames=_list(_TEXT),
                singular=_TEXT,
            ),
            preserveUnknownFields=_FLAG,
            scope=_TEXT,
            versions=_list(
                _object(
                    additionalPrinterColumns=_list(
                        _object(description=_TEXT, format=_TEXT, jsonPath=_TEXT, name=_TEXT, priority=_INT, type=_TEXT)
                    ),
                    deprecated=_FLAG,
                    deprecationWarning=_TEXT,
                    name=_TEXT,
                    schema=_object(openAPIV3Schema=_ANY),
                    selectableFields=_list(_object(jsonPath=_TEXT)),
                    served=_FLAG,
                    storage=_FLAG,
                    subresources=_object(
                        scale=_object(labelSelectorPath=_TEXT, specReplicasPath=_TEXT, statusReplicasPath=_TEXT),
                        status=_ANY,
                    ),
                )
            ),
        ),
        status=_object(
            acceptedNames=_object(
                categories=_list(_TEXT),
                kind=_TEXT,
                listKind=_TEXT,
                plural=_TEXT,
                shortNames=_list(_TEXT),
                singular=_TEXT,
            ),
            conditions=_CONDITIONS,
            observedGeneration=_INT,
            storedVersions=_list(_TEXT),
        ),
    ),
}
"""By kind; Event of events.k8s.io with its group."""
