"""Subresources with a type of their own: ``scale``, ``binding``, ``eviction``, ``token``."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from .apply import apply_configuration
from .body import decode, decode_options, decode_patch
from .clock import timestamp
from .cluster import Cluster, Object
from .delete import Deleter
from .json_codec import encode_json
from .jsonpath import find, put
from .kinds import Served, ServedKind
from .managed_fields import Owner, with_metadata
from .messages import ApiRequest, ApiResponse, json_response
from .names import no_name
from .options import WriteOptions, delete_options, write_options
from .patch import APPLY, apply_patch, patch_kind
from .routes import RequestTarget
from .status import FieldCause, StatusError, bad_request, conflict, invalid, method_not_allowed
from .workloads import selector_matches, selector_text
from .write import Writer

__all__ = ["Subresources"]

_HOUR: Final = 3600
_SHORTEST_SECONDS: Final = 600
_LONGEST_SECONDS: Final = 2**32
_DONE: Final = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_SETTLED: Final = frozenset({"Pending", "Succeeded", "Failed"})
"""Phases of pods that may be evicted whatever their budget says."""


class Subresources:
    """Answers requests for these subresources."""

    def __init__(self, cluster: Cluster, writer: Writer, deleter: Deleter) -> None:
        self._cluster = cluster
        self._writer = writer
        self._deleter = deleter
        self._actions = {"binding": self._bind, "eviction": self._evict, "token": self._token}

    def act(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        """Answer a request for one of the kind's actions.

        :raises StatusError: the request is refused.
        """
        if request.method != "POST":
            raise method_not_allowed()
        options = write_options(request, "CreateOptions")
        shown = kind.strategy.actions[target.subresource]["kind"]
        body = decode(request.body, request.header("content-type"), shown, find_duplicates=False).value
        return self._actions[target.subresource](kind, served, target, body, options)

    # -- scale ---------------------------------------------------------------------------------------------------

    def scale(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        """Answer a request for the scale of an object.

        :raises StatusError: the request is refused.
        """
        scale = served.scale
        assert scale is not None
        if request.method == "GET":
            entry = self._cluster.get(kind, target.namespace, target.name)
            return _scale_answer(self._cluster.decode(entry, kind, served), scale)
        if request.method not in {"PUT", "PATCH"}:
            raise method_not_allowed()
        patching = request.method == "PATCH"
        media = patch_kind(request.header("content-type"), custom=kind.custom) if patching else ""
        options = write_options(
            request, "PatchOptions" if patching else "UpdateOptions", apply=patching and media == APPLY
        )
        applied = Owner(options.manager, "Apply", "autoscaling/v1", "scale")
        owner = applied if media == APPLY else Owner(options.manager, "Update", "autoscaling/v1", "scale")

        def change(old: Object) -> Object:
            if media == APPLY:
                return self._applied_scale(request, kind, served, target, old, options, owner)
            current = _scale_of(old, scale)
            if patching:
                wanted = apply_patch(current, request.body, media, with_metadata(served.node)).value
            else:
                wanted = decode_options(request.body, request.header("content-type"))
                if not (wanted.get("metadata") or {}).get("name"):
                    raise bad_request(no_name(target.name))
            replicas = _replicas(wanted, target.name)
            version = wanted.get("metadata", {}).get("resourceVersion")
            put(old, scale["specReplicasPath"], replicas)
            if version:
                old["metadata"]["resourceVersion"] = version
            return old

        body = self._writer.change(
            kind, served, target.namespace, target.name, change, options, owner, tracked=media != APPLY
        )
        return _scale_answer(body, scale)

    def _applied_scale(
        self,
        request: ApiRequest,
        kind: ServedKind,
        served: Served,
        target: RequestTarget,
        old: Object,
        options: WriteOptions,
        owner: Owner,
    ) -> Object:
        """Apply the replicas of a Scale to the object itself, so that its managedFields name them."""
        assert served.scale is not None
        try:
            wanted = decode_patch(request.body, request.header("content-type")).value
        except ValueError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
        config: Object = {
            "apiVersion": kind.api_version(served.name), "kind": kind.kind, "metadata": {"name": target.name},
        }  # fmt: skip
        if kind.namespaced:
            config["metadata"]["namespace"] = target.namespace
        put(config, served.scale["specReplicasPath"], _replicas(wanted, target.name))
        now = self._cluster.now()
        return apply_configuration(old, config, with_metadata(served.node), owner, now, force=options.force)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _bind(
        self, kind: ServedKind, served: Served, target: RequestTarget, body: Object, options: WriteOptions
    ) -> ApiResponse:
        """Assign a pod to a node, as the scheduler does."""
        _check_name(body, target, "Binding")
        node = body.get("target") or {}
        if node.get("kind", "") not in {"", "Node"}:
            words = f'target.kind: Unsupported value: "{node["kind"]}": supported values: "Node", "<empty>"'
            raise StatusError(500, "", words)
        if not node.get("name"):
            raise StatusError(500, "", "target.name: Required value")

        def change(old: Object) -> Object:
            held = old["spec"].get("nodeName")
            if held:
                why = f'pod {target.name} is already assigned to node "{held}"'
                raise conflict("", "pods/binding", target.name, why)
            old["spec"]["nodeName"] = node["name"]
            found = [each for each in old["status"].get("conditions") or () if each.get("type") != "PodScheduled"]
            now = self._cluster.now()
            old["status"]["conditions"] = [
                *found, {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now},
            ]  # fmt: skip
            return old

        owner = Owner(options.manager, "Update", "v1", "binding")
        self._writer.change(kind, served, target.namespace, target.name, change, options, owner)
        return json_response(201, encode_json(_DONE))

    def _evict(
        self, kind: ServedKind, served: Served, target: RequestTarget, body: Object, options: WriteOptions
    ) -> ApiResponse:
        """Delete a pod unless a PodDisruptionBudget forbids it."""
        _check_name(body, target, "Eviction")
        entry = self._cluster.get(kind, target.namespace, target.name)
        pod = self._cluster.decode(entry, kind, served)
        wanted = delete_options(_without_query(), {"kind": "DeleteOptions", **(body.get("deleteOptions") or {})})
        if pod.get("status", {}).get("phase") not in _SETTLED and not entry.deleting:
            self._check_budgets(pod, dry_run=options.dry_run or wanted.dry_run)
        if not options.dry_run:
            self._deleter.delete(kind, served, target.namespace, target.name, wanted)
        return json_response(201, encode_json(_DONE))

    def _check_budgets(self, pod: Object, *, dry_run: bool) -> None:
        """Count a disruption of the pod's budget.

        :raises StatusError: 429 or 500, the budget has none left, or the pod has several.
        """
        kind = self._cluster.registry.find("policy", "poddisruptionbudgets")
        assert kind is not None
        served = kind.versions["v1"]
        labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
        budgets = [
            self._cluster.decode(entry, kind, served) for entry in self._cluster.collection(kind).snapshot(namespace)
        ]
        found = [each for each in budgets if _covers(each, labels)]
        if len(found) > 1:
            words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise StatusError(500, "", words)
        for budget in found:
            status, name = budget["status"], budget["metadata"]["name"]
            if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
                raise _refused_eviction(f"The disruption budget {name} is still being processed by the server.")
            if status.get("disruptionsAllowed", 0) <= 0:
                needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
                raise _refused_eviction(
                    f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
                )
            if not dry_run:
                status["disruptionsAllowed"] -= 1
                status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = self._cluster.now()
                self._cluster.put(kind, served, budget)

    # -- service accounts ----------------------------------------------------------------------------------------

    def _token(
        self, kind: ServedKind, _served: Served, target: RequestTarget, body: Object, _options: WriteOptions
    ) -> ApiResponse:
        """Issue a token; the server lets everybody in, so it stands for nothing."""
        entry = self._cluster.get(kind, target.namespace, target.name)
        spec = dict(body.get("spec") or {})
        seconds = spec.get("expirationSeconds")
        seconds = _HOUR if seconds is None else seconds
        problem = ""
        if seconds < _SHORTEST_SECONDS:
            problem = "may not specify a duration less than 10 minutes"
        elif seconds > _LONGEST_SECONDS:
            problem = "may not specify a duration larger than 2^32 seconds"
        if problem:
            cause = FieldCause("spec.expirationSeconds", "FieldValueInvalid", f"Invalid value: {seconds}: {problem}")
            raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
        audiences = spec.get("audiences") or ["https://kubernetes.default.svc"]
        moment = self._cluster.moment()
        ends = moment + timedelta(seconds=seconds)
        subject = f"system:serviceaccount:{target.namespace}:{target.name}"
        claims = {"aud": audiences, "exp": int(ends.timestamp()), "iat": int(moment.timestamp()), "sub": subject}
        metadata = {"name": target.name, "namespace": target.namespace, "uid": entry.uid}
        made = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**metadata, "creationTimestamp": self._cluster.now()},
            "spec": {"boundObjectRef": None, **spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": _unsigned(claims), "expirationTimestamp": timestamp(ends)},
        }
        return json_response(201, encode_json(made))


def _check_name(body: Object, target: RequestTarget, kind: str) -> None:
    if (body.get("metadata") or {}).get("name", "") != target.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


def _without_query() -> ApiRequest:
    return ApiRequest.of("DELETE", "/")


def _covers(budget: Object, labels: Mapping[str, str]) -> bool:
    selector = budget.get("spec", {}).get("selector")
    return selector is not None and selector_matches(selector, labels)


def _refused_eviction(why: str) -> StatusError:
    details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    return StatusError(429, "TooManyRequests", words, details)


def _unsigned(claims: Object) -> str:
    """A JSON Web Token without a signature."""
    parts = (b'{"alg":"none","typ":"JWT"}', encode_json(claims))
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), ""])


def _scale_of(body: Object, scale: Mapping[str, str]) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {name: body["metadata"][name] for name in kept if name in body["metadata"]}
    status: Object = {"replicas": find(body, scale["statusReplicasPath"]) or 0}
    if scale.get("labelSelectorPath"):
        found = find(body, scale["labelSelectorPath"])
        # A workload's selector is an object; a custom resource has the text.
        status["selector"] = selector_text(found) if isinstance(found, dict) else found or ""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": find(body, scale["specReplicasPath"]) or 0},
        "status": status,
    }


def _scale_answer(body: Object, scale: Mapping[str, str]) -> ApiResponse:
    return json_response(200, encode_json(_scale_of(body, scale)))


def _replicas(wanted: Any, name: str) -> int:
    spec = wanted.get("spec") if isinstance(wanted, dict) else None
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas is not an integer')
    if replicas < 0:
        words = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("autoscaling", "Scale", name, [FieldCause("spec.replicas", "FieldValueInvalid", words)])
    return replicas
