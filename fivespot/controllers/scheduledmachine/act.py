"""Carries out the steps of a plan. Every write is safe when it arrives late (contract B2.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fivespot.api import Reason, names
from fivespot.runtime import (
    AlreadyExistsError,
    ApiError,
    Client,
    ConflictError,
    FivespotError,
    ForbiddenError,
    Head,
    InvalidError,
    Key,
    NotFoundError,
    Object,
    Resource,
    merge_patch,
    remove_finalizer,
)
from fivespot.runtime.client import Propagation
from fivespot.runtime.errors import BadRequestError, NotServedError, StaleReadError

from .children import build_embedded, build_machine, drain_settings, readable, source_of
from .cluster_api import MachineView, read_machine
from .ownership import child_is_ours, machine_is_ours
from .plan import CreateChildren, DeleteChildren, DeleteMachine, DropFinalizer, PatchMachine, Plan, Step
from .redact import conceal
from .snapshot import Child, Slot, Snapshot
from .status import RefusedStep

__all__ = ["StepResults", "StepRunner", "changed_world"]

_FIELDS = {Slot.BOOTSTRAP: "bootstrapSpec", Slot.INFRASTRUCTURE: "infrastructureSpec"}
_TAINTS_REMEDY = (
    "Cluster API did not take the Machine's taints: turn on its feature gate MachineTaintPropagation (v1.12 or newer, "
    "v1beta2), or remove spec.nodeTaints"
)


@dataclass(slots=True)
class StepResults:
    """The results of a plan's steps.

    :param refused: the step that the server refused; the steps after it were not tried.
    :param failure: the error that cut the steps short and may pass.
    :param unprepared: the optional step that failed; the steps after it were carried out. A conflict of the last step
        is a failure instead.
    :param vanished: deletions that were answered as already complete.
    :param let_go: the finalizer was removed, so there may be no object left to write a status to.
    :param taints_lost: the uid of a Machine that was made without its taints and therefore deleted.
    :param patched: our Machine as the answer to a patch shows it.
    """

    machine: MachineView | None = None
    children: dict[Slot, Child] = field(default_factory=dict)
    refused: RefusedStep | None = None
    failure: Exception | None = None
    unprepared: RefusedStep | None = None
    patched: Head | None = None
    vanished: bool = True
    let_go: bool = False
    taints_lost: str = ""


def changed_world(plan: Plan, results: StepResults) -> bool:
    """Whether the steps changed the world, so that it is evaluated again before anything is reported."""
    only_leftovers = bool(plan.steps) and all(isinstance(step, DeleteChildren) for step in plan.steps)
    return only_leftovers and results.refused is None and results.vanished


class StepRunner:
    """Performs steps with a client.

    :param machines: the Machine resource of a snapshot's Cluster API version.
    """

    def __init__(self, client: Client, scheduled_machines: Resource) -> None:
        self._client = client
        self._scheduled_machines = scheduled_machines

    async def act(
        self, s: Snapshot, obj: Object, plan: Plan, machines: Resource | None, templates: Mapping[Slot, Resource]
    ) -> StepResults:
        """Carry out the steps in order, up to the first that is refused or fails; neither is raised."""
        results = StepResults()
        for step in plan.steps:
            blocked = results.refused is not None or results.failure is not None
            if blocked and not (isinstance(step, DropFinalizer) and step.forced):
                continue
            try:
                await self._step(s, obj, step, machines, templates, results)
            except FivespotError as error:
                # The last step delays no other, so a change that came first is not a failed preparation: the next run
                # patches what it then reads.
                outdated = isinstance(error, ConflictError | StaleReadError) and step is plan.steps[-1]
                if isinstance(step, PatchMachine) and step.optional and not outdated:
                    results.unprepared = RefusedStep(
                        Reason.MACHINE_DELETION_FAILED,
                        str(error),
                        stalled=False,
                        cause=f"{type(error).__name__} {type(step).__name__}",
                    )
                else:
                    results.failure = results.failure or error
        return results

    async def _step(
        self,
        s: Snapshot,
        obj: Object,
        step: Step,
        machines: Resource | None,
        templates: Mapping[Slot, Resource],
        results: StepResults,
    ) -> None:
        match step:
            case CreateChildren() if machines is not None:
                await self._create(s, obj, step, machines, templates, results)
            case PatchMachine() if machines is not None:
                await self._patch(s, step, machines, results)
            case DeleteMachine() if machines is not None:
                version = (results.patched or step.machine.head).version
                results.refused = await self._delete(machines, step.machine.head, version, results)
            case DeleteChildren():
                results.refused = await _together(
                    self._delete(child.resource, child.head, child.head.version, results) for child in step.children
                )
            case DropFinalizer():
                await remove_finalizer(self._client, self._scheduled_machines, obj, names.FINALIZER)
                results.let_go = True
            case _:
                raise StaleReadError(f"{obj.key}: Machines are no longer served at the version that was decided on")

    async def _create(
        self,
        s: Snapshot,
        obj: Object,
        step: CreateChildren,
        machines: Resource,
        templates: Mapping[Slot, Resource],
        results: StepResults,
    ) -> None:
        body = source_of(obj)
        wanted = build_machine(body, machines.version, known_hash=s.spec.template_hash)
        if step.rehearse:
            results.refused = await self._rehearse(machines, wanted)
            if results.refused is not None:
                return
        results.refused = await _together(
            self._create_child(s, templates[slot], body, slot, results) for slot in step.slots
        )
        if results.refused is not None:
            return
        try:
            created = await self._client.create(machines, wanted)
        except AlreadyExistsError as error:
            results.refused = await self._taken(s, machines, error)
            return
        except (ForbiddenError, InvalidError, BadRequestError, NotFoundError, NotServedError) as error:
            results.refused = _refusal(error, Reason.MACHINE_CREATION_FAILED)
            return
        if step.rehearse and _taints(created.decode()) != _taints(wanted):
            # B2.7: a machine without its taints must not take work, so it goes at once.
            results.taints_lost = created.head.uid
            results.refused = _taints_refused()
            # Not at its version: Cluster API may have touched it since, and it must not stay.
            undone = await self._delete(machines, created.head, None, results)
            results.refused = undone or results.refused
            return
        results.machine = read_machine(created)

    async def _rehearse(self, machines: Resource, wanted: Mapping[str, Any]) -> RefusedStep | None:
        try:
            answer = await self._client.create(machines, wanted, dry_run=True)
        except InvalidError as error:
            if any("taints" in cause.field for cause in error.causes) or "spec.taints" in error.message:
                return _taints_refused(error.message)
            return _refusal(error, Reason.MACHINE_CREATION_FAILED)
        except (ForbiddenError, BadRequestError, NotFoundError) as error:
            return _refusal(error, Reason.MACHINE_CREATION_FAILED)
        if _taints(answer.decode()) != _taints(wanted):
            return _taints_refused()
        return None

    async def _create_child(
        self, s: Snapshot, resource: Resource, body: Mapping[str, Any], slot: Slot, results: StepResults
    ) -> RefusedStep | None:
        embedded = build_embedded(body, _FIELDS[slot], known_hash=s.spec.template_hash)
        try:
            created = await self._client.create(resource, embedded)
        except AlreadyExistsError as error:
            return await self._taken(s, resource, error)
        except (ForbiddenError, InvalidError, BadRequestError, NotFoundError, NotServedError) as error:
            return _refusal(error, Reason.MACHINE_CREATION_FAILED, conceal(error, readable(embedded)).message)
        except ApiError as error:
            # Not chained to the first error, which would be logged with it.
            raise conceal(error, readable(embedded)) from None
        results.children[slot] = Child(slot, resource, created.head, ours=True)
        return None

    async def _taken(self, s: Snapshot, resource: Resource, error: AlreadyExistsError) -> RefusedStep:
        """Find the owner of the object with the name: if it is ours, a cache was behind and the key is requeued."""
        key = Key(s.head.namespace, s.head.name)
        try:
            found = await self._client.get(resource, key, metadata_only=True)
        except NotFoundError:
            raise error from None
        if resource.kind == "Machine" and resource.group == names.CLUSTER_API_GROUP:
            ours = machine_is_ours(found.head, s.head.uid)
        else:
            ours = child_is_ours(
                found.head, resource.group_kind, owner_uid=s.head.uid, owner_name=s.head.name, machine=s.machine
            )
        if ours:
            raise error
        remedy = "delete it, or create the ScheduledMachine under another name"
        message = f"{resource.kind} {key} exists and is not controlled by this ScheduledMachine: {remedy}"
        return RefusedStep(
            Reason.MACHINE_CREATION_FAILED, message, stalled=True, cause=f"{resource.qualified} is taken"
        )

    async def _patch(self, s: Snapshot, step: PatchMachine, machines: Resource, results: StepResults) -> None:
        metadata: dict[str, Any] = {}
        change: dict[str, Any] = {}
        annotations = dict(step.annotations)
        if step.drain_seconds is not None:
            more, timeouts = drain_settings(step.drain_seconds, machines.version)
            annotations |= more
            change["spec"] = timeouts
        if annotations:
            metadata["annotations"] = annotations
        if step.labels:
            metadata["labels"] = dict(step.labels)
        if metadata:
            change["metadata"] = metadata
        key = Key(s.head.namespace, step.machine.head.name)
        head = results.patched or step.machine.head
        try:
            patched = await self._client.patch(machines, key, merge_patch(change, head))
        except (ForbiddenError, InvalidError, BadRequestError) as error:
            before_delete = bool(annotations) or step.drain_seconds is not None
            refused = _refusal(error, Reason.MACHINE_DELETION_FAILED if before_delete else Reason.RECONCILE_FAILED)
            if step.optional:
                results.unprepared = refused
            else:
                results.refused = refused
        else:
            results.patched = patched.head

    async def _delete(
        self, resource: Resource, head: Head, version: int | None, results: StepResults
    ) -> RefusedStep | None:
        """Delete one object; with a version only while it is as it was decided on.

        A conflict means that it has changed, perhaps because another leader acted on it, and the decision may be
        outdated.
        """
        try:
            left = await self._client.delete(
                resource,
                Key(head.namespace, head.name),
                uid=head.uid,
                version=version,
                propagation=Propagation.BACKGROUND,
            )
        except (ForbiddenError, InvalidError, BadRequestError) as error:
            return _refusal(error, Reason.MACHINE_DELETION_FAILED)
        if left is not None:
            results.vanished = False
        return None


async def _together(requests: Iterable[Coroutine[Any, Any, RefusedStep | None]]) -> RefusedStep | None:
    """Wait for all, so that no request is left running, and raise the first error, if any.

    Of several refusals, return the first in the order of the requests: reported by turns they would look like new
    problems, and the back-off would never grow.
    """
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return next((result for result in results if isinstance(result, RefusedStep)), None)


def _refusal(error: ApiError, reason: str, message: str | None = None) -> RefusedStep:
    """B4.1: what only a person can change is stalled; an exceeded quota or a terminating namespace may pass.

    :param message: replaces the server's message.
    """
    words = f"{error.request}: {error.message if message is None else message}"
    passing = isinstance(error, ForbiddenError) and (
        "exceeded quota" in error.message or any(cause.reason == "NamespaceTerminating" for cause in error.causes)
    )
    cause = f"{type(error).__name__} {error.request}"
    return RefusedStep(reason, f"{words}; {_remedy(error)}", stalled=not passing, cause=cause)


def _taints_refused(words: str = "") -> RefusedStep:
    message = f"{_TAINTS_REMEDY} ({words})" if words else _TAINTS_REMEDY
    return RefusedStep(Reason.NODE_TAINTS_UNSUPPORTED, message, stalled=True, cause="taints")


def _remedy(error: ApiError) -> str:
    # Policies and webhooks may answer with any code; only the message distinguishes them from the server's
    # validation.
    if "denied request" in error.message or "denied the request" in error.message:
        return "ask whoever runs that admission rule"
    if isinstance(error, ForbiddenError):
        if "exceeded quota" in error.message:
            return "raise the quota or free some of it"
        if "is forbidden: User" in error.message:
            return "grant the right to the controller's ServiceAccount (see manifests/rbac)"
        return "ask whoever runs that admission rule"
    if isinstance(error, NotServedError):
        return "install the CustomResourceDefinition of that kind, or correct apiVersion and kind"
    if error.request.startswith(("delete", "patch")):
        return "see the admission rules and webhooks for that kind"
    return "correct the spec"


def _taints(machine: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    taints = machine.get("spec", {}).get("taints") or []
    return sorted((t.get("key"), t.get("value") or "", t.get("effect"), t.get("propagation")) for t in taints)
