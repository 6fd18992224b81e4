"""Remedies: what is missing, and the command that fixes it or shows more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fivespot.api import Phase, Reason, names
from fivespot.cli.options import CONTROLLERS
from fivespot.cli.why.judge import REQUEST, Evaluated
from fivespot.cli.why.live import Unread
from fivespot.contract import (
    PROVIDER_CRD_NOT_INSTALLED,
    PROVIDER_NOT_FOUND,
    PROVIDER_UNREADABLE,
    STATUS_ACTIVE_MISSING,
    Resolved,
    Unresolved,
)
from fivespot.controllers.scheduledmachine.cluster_api import Known
from fivespot.controllers.scheduledmachine.plan import Want
from fivespot.runtime import GroupKind, find_condition

__all__ = ["Remedy", "remedies", "right_to_read"]

_CLUSTERS: Final = "clusters.cluster.x-k8s.io"
_MACHINES: Final = "machines.cluster.x-k8s.io"
_OWN: Final = names.PLURAL
_LATE: Final = timedelta(seconds=60)
"""Delay of an announced change after which the schedule's controller counts as not working."""
_STOPPED_ON: Final = re.compile(r" on Lease ([a-z0-9-]+)/([a-z0-9.-]+)")
"""The Lease with the stop, in the message of condition Paused."""
_SEE_MANAGER: Final = f"kubectl -n {names.SYSTEM_NAMESPACE} get deployments,pods,leases"
_GRANT: Final = "grant the right to the controller's ServiceAccount"
_SERVICE_ACCOUNT: Final = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}:5spot-controller"


@dataclass(frozen=True, slots=True)
class Remedy:
    """A problem, and a command that solves it or shows more."""

    problem: str
    command: str


def remedies(j: Evaluated) -> Iterator[Remedy]:
    """The remedies of a judgement, the most important first. Commands carry names only."""
    yield from _rights(j)
    yield from _decisions(j)
    yield from _pauses(j)
    yield from _stop(j)
    if not j.snapshot.head.deleting and j.plan.want in (Want.ACTIVE, Want.INACTIVE):
        yield from _schedule(j)
    yield from _machine(j)
    yield from _manager(j)


def right_to_read(unread: Unread) -> str:
    """Return the command that checks the right to read it."""
    where = f" -n {unread.key.namespace}" if unread.key.namespace else ""
    return f"kubectl auth can-i {unread.verb} {unread.resource}{where}"


def _rights(j: Evaluated) -> Iterator[Remedy]:
    for unread in j.unread:
        if unread.denied and not unread.instead:
            yield Remedy(f"you may not read {unread.resource} {unread.key}", right_to_read(unread))


def _decisions(j: Evaluated) -> Iterator[Remedy]:
    """Yield the decisions of users that can be reverted."""
    s = j.snapshot
    if s.head.deleting:
        return
    if j.plan.want is Want.KILLED:
        yield Remedy("the kill switch is on; to let the schedule decide", _patch(j, '{"spec":{"killSwitch":false}}'))
    if j.plan.want is Want.DISABLED:
        yield Remedy("it is disabled; to let the schedule decide", _patch(j, '{"spec":{"enabled":true}}'))


def _pauses(j: Evaluated) -> Iterator[Remedy]:
    s = j.snapshot
    if not s.paused:
        return
    namespace, name = s.head.namespace, s.head.name
    annotation = f"{names.ANNOTATION_PAUSED}-"
    if s.world.cluster.paused:
        change = """-p '{"spec":{"paused":false}}'"""
        yield Remedy(
            f"Cluster {s.spec.cluster} is paused; to resume it",
            f"kubectl -n {namespace} patch {_CLUSTERS} {s.spec.cluster} --type=merge {change}",
        )
    if names.ANNOTATION_PAUSED in s.head.annotations:
        yield Remedy("it is paused; to resume it", f"kubectl -n {namespace} annotate {_OWN} {name} {annotation}")
    if s.machine is not None and s.machine.paused:
        yield Remedy(
            "its Machine is paused; to resume it", f"kubectl -n {namespace} annotate {_MACHINES} {name} {annotation}"
        )


def _stop(j: Evaluated) -> Iterator[Remedy]:
    stopped = _STOPPED_ON.search(j.snapshot.stopped)
    if stopped is not None and not j.snapshot.head.deleting:
        yield Remedy(
            "an administrator has stopped everything; to let the manager go on",
            f"kubectl -n {stopped[1]} annotate lease {stopped[2]} {names.ANNOTATION_STOP}-",
        )


def _schedule(j: Evaluated) -> Iterator[Remedy]:
    s, resolution = j.snapshot, j.snapshot.world.resolution
    kind, name, namespace = s.spec.schedule.kind, s.spec.schedule.name, s.head.namespace
    resource = _resource(j, GroupKind(names.PROVIDER_GROUP, kind))
    show = f"kubectl -n {namespace} describe {resource} {name}"
    if isinstance(resolution, Unresolved):
        defined = GroupKind(names.PROVIDER_GROUP, kind) in j.plurals
        reason = resolution.reason
        if reason == PROVIDER_CRD_NOT_INSTALLED and defined:
            yield Remedy("the definition of the kind cannot be used", f"kubectl describe crd {resource}")
        elif reason == PROVIDER_CRD_NOT_INSTALLED and kind.lower() in CONTROLLERS:
            yield Remedy(f"{kind} is not installed", "fivespot crds | kubectl apply --server-side -f -")
        elif reason == PROVIDER_CRD_NOT_INSTALLED:
            yield Remedy(
                f"{kind} is not installed; to see which kinds of schedules are",
                f"kubectl api-resources --api-group={names.PROVIDER_GROUP}",
            )
        elif reason == PROVIDER_NOT_FOUND:
            yield Remedy(f"there is no {kind} {name}; to create it", f"kubectl -n {namespace} apply -f FILE")
            yield Remedy("to see those there are", f"kubectl -n {namespace} get {resource}")
        elif reason == STATUS_ACTIVE_MISSING:
            yield Remedy(f"{kind} {name} has no verdict: its controller does not run, or fails", show)
            yield from _provider_controller(kind)
        else:
            yield Remedy(f"{kind} {name} is not ready; to see why", show)
        return
    announced = j.announced
    if isinstance(resolution, Resolved) and announced is not None and announced < s.now - _LATE:
        yield Remedy(
            f"{kind} {name} was to change at {announced:%Y-%m-%dT%H:%M:%SZ} and has not: its controller does not run, "
            "or fails",
            show,
        )
        yield from _provider_controller(kind)


def _provider_controller(kind: str) -> Iterator[Remedy]:
    if kind.lower() in CONTROLLERS:
        yield Remedy("to see whether the manager runs", _SEE_MANAGER)


def _machine(j: Evaluated) -> Iterator[Remedy]:
    """Yield the remedies for Cluster, templates, foreign objects, refusals, and slow machines."""
    s, plan, world = j.snapshot, j.plan, j.snapshot.world
    namespace, name = s.head.namespace, s.head.name
    show = f"kubectl -n {namespace} describe {_MACHINES} {name}"
    if world.capi.installed is Known.NO and plan.want is Want.ACTIVE:
        yield Remedy("Cluster API is not installed", "clusterctl init")
    if plan.reason == Reason.CLUSTER_NOT_FOUND:
        yield Remedy(
            f"there is no Cluster {s.spec.cluster}; to see those there are", f"kubectl -n {namespace} get {_CLUSTERS}"
        )
    if plan.reason == Reason.REFERENCES_INVALID:
        yield Remedy("its spec breaks rules; to correct it", f"kubectl -n {namespace} edit {_OWN} {name}")
    if plan.phase is Phase.ERROR and plan.want is Want.ACTIVE:
        yield from _in_the_way(j)
    if j.remembered and plan.phase is Phase.ERROR:
        yield from _refused(j)
    if plan.reason == "ReplacementDelayed":
        yield Remedy(
            "its machine was lost; to see what is known of it",
            f"kubectl -n {namespace} events --for {names.KIND}/{name}",
        )
    if s.machine is not None and not plan.quiet and not plan.settled and not plan.steps and plan.next_cleanup is None:
        yield Remedy("to see what Cluster API is doing", show)


def _in_the_way(j: Evaluated) -> Iterator[Remedy]:
    s, world = j.snapshot, j.snapshot.world
    namespace, name = s.head.namespace, s.head.name
    foreign = [child for child in world.children if not child.ours]
    taken = [child.resource.qualified for child in foreign]
    if world.machine is not None and s.machine is None:
        taken = [_MACHINES]
    for resource in taken:
        yield Remedy(
            f"{resource} {name} has the name and belongs to somebody else; to look at it, before you delete it",
            f"kubectl -n {namespace} get {resource} {name} -o yaml",
        )
    if world.templates.usable is not Known.NO:
        return
    for template in (s.spec.bootstrap, s.spec.infrastructure):
        if template is None:
            continue
        group_kind = template.group_kind
        if group_kind not in j.plurals:
            yield Remedy(
                f"kind {group_kind.kind} is not installed; to see what is",
                f"kubectl api-resources --api-group={group_kind.group}",
            )
        elif j.plurals[group_kind] in world.templates.why:
            yield Remedy("to see its definition", f"kubectl get crd {j.plurals[group_kind]} --show-labels")


def _refused(j: Evaluated) -> Iterator[Remedy]:
    """Yield remedies by the message that the controller reported with the refusal."""
    s, message = j.snapshot, j.plan.message
    namespace, name = s.head.namespace, s.head.name
    tried = REQUEST.match(message)
    if _GRANT in message and tried is not None:
        yield Remedy(
            "the controller lacks a right; to check it",
            f"kubectl auth can-i {tried[1]} {tried[2]} -n {namespace} --as={_SERVICE_ACCOUNT}",
        )
    elif "quota" in message:
        yield Remedy("a quota is used up; to see it", f"kubectl -n {namespace} describe resourcequota")
    elif "admission rule" in message:
        rules = "validatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations"
        yield Remedy("an admission rule refuses it; to see which there are", f"kubectl get {rules}")
    elif j.plan.reason == Reason.NODE_TAINTS_UNSUPPORTED:
        yield Remedy(
            "Cluster API does not take taints; to see its feature gates",
            "kubectl -n capi-system describe deployment capi-controller-manager",
        )
    elif "correct the spec" in message:
        yield Remedy("the server does not take the spec; to correct it", f"kubectl -n {namespace} edit {_OWN} {name}")


def _manager(j: Evaluated) -> Iterator[Remedy]:
    """Yield remedies for a controller that does not act on the current objects."""
    s, stored = j.snapshot, j.snapshot.stored
    ready = find_condition(stored.raw.get("conditions"), "Ready") or {}
    resolution = s.world.resolution
    if ready.get("reason") == PROVIDER_UNREADABLE and isinstance(resolution, Resolved):
        resource = _resource(j, GroupKind(names.PROVIDER_GROUP, s.spec.schedule.kind))
        yield Remedy(
            "the controller reports that it cannot read the schedule; to check its right",
            f"kubectl auth can-i list {resource} -n {s.head.namespace} --as={_SERVICE_ACCOUNT}",
        )
    waits = bool(j.plan.steps) and not j.remembered
    if not stored.phase or waits:
        yield Remedy("if the manager does not act within seconds, see whether it runs", _SEE_MANAGER)


def _patch(j: Evaluated, change: str) -> str:
    head = j.snapshot.head
    return f"kubectl -n {head.namespace} patch {_OWN} {head.name} --type=merge -p '{change}'"


def _resource(j: Evaluated, group_kind: GroupKind) -> str:
    """``plural.group``, or the kind where no plural is known; kubectl takes both."""
    return j.plurals.get(group_kind, f"{group_kind.kind.lower()}.{group_kind.group}")
