"""The harness that checks work with: creates and edits objects of the kind under test, and waits for verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from fivespot.runtime import (
    Client,
    Clock,
    ConflictError,
    FivespotError,
    InvalidError,
    Key,
    NotFoundError,
    Object,
    Resource,
    json_patch,
    merge_patch,
)
from fivespot.runtime.objects import finalizer_patch

from .history import Episode, ObjectHistory, Observation, brief
from .recorder import Recorder
from .subject import Spec, Subject, Timing

__all__ = [
    "ANNOTATION",
    "FINALIZER",
    "Harness",
    "InconclusiveError",
    "NoVerdictError",
    "ViolationError",
    "single_error",
]

T = TypeVar("T")

ANNOTATION = "conformance.5spot.finos.org/touched"
FINALIZER = "conformance.5spot.finos.org/hold"
"""The kit's finalizer, which keeps a deleted object so that it can be observed."""

_QUIET, _QUIET_LIMIT = 0.3, 3.0
"""Seconds without a write after which a provider counts as done, and the limit of waiting for that."""

_TRIES = 10


class ViolationError(Exception):
    """A rule is broken; the text describes the observation."""


class InconclusiveError(Exception):
    """A rule cannot be judged; the text gives the reason."""


class NoVerdictError(InconclusiveError):
    """The expected verdict did not appear, which another rule judges."""


class Harness:
    """A namespace with objects of one kind.

    :ivar client: of the kit itself.
    :ivar suffix: letters of the run, for names that must not be taken.
    :ivar refusal: the message with which admission refuses the invalid spec; "" if it is admitted or not given.
    :ivar definition: the kind's CustomResourceDefinition; None if it cannot be read.
    """

    def __init__(
        self,
        subject: Subject,
        client: Client,
        resource: Resource,
        namespace: str,
        *,
        clock: Clock,
        timing: Timing,
        suffix: str,
    ) -> None:
        self.subject = subject
        self.timing = timing
        self.resource = resource
        self.namespace = namespace
        self.clock = clock
        self.recorder = Recorder(client, resource, namespace, clock)
        self.refusal = ""
        self.definition: dict[str, Any] | None = None
        self.client = client
        self.suffix = suffix

    def body(self, name: str, spec: Spec) -> dict[str, Any]:
        """Build an object of the kind."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": dict(spec),
        }

    async def create(
        self, name: str, *, active: bool | None, spec: Spec | None = None, ends: datetime | None = None
    ) -> Key:
        """Create an object that is active, inactive, or (None) invalid.

        :param spec: instead of the subject's own.
        :param ends: instant at which that spec changes its verdict by the clock.
        """
        key = Key(self.namespace, f"conformance-{name}-{self.suffix}")
        chosen = spec if spec is not None else self._spec(active)
        record = self.recorder.register(key)
        if self.subject.flip is not None and active is not None:
            await self.subject.flip(self.namespace, key.name, active)
        obj = await self.client.create(self.resource, self.body(key.name, chosen))
        self._record_own(record, obj)
        record.episodes.append(Episode(obj.head.version, obj.head.generation, active, ends))
        return key

    async def edit(self, key: Key, *, active: bool | None) -> None:
        """Make an object active, inactive, or (None) invalid, by its spec or by flipping its source."""
        record = self.recorder.records[key]
        if self.subject.flip is None or active is None:
            await self._replace(record, self._spec(active), active)
            return
        broken = record.episodes[-1].verdict is None
        if not broken:
            last = record.episodes[-1]
            record.episodes.append(Episode(max(self.version(key) + 1, last.since), last.generation, active))
        await self.subject.flip(self.namespace, key.name, active)
        if broken:
            await self._replace(record, self._spec(True), active)

    async def annotate(self, key: Key) -> int:
        """Change an annotation, which decides nothing; returns the new version."""
        value = str(self.clock.monotonic())
        patch = merge_patch({"metadata": {"annotations": {ANNOTATION: value}}})
        return self._record_own(self.recorder.records[key], await self.client.patch(self.resource, key, patch))

    async def patch_status(self, key: Key, status: Any) -> int:
        """Patch a status as another controller would; returns the new version."""
        patch = merge_patch({"status": status})
        obj = await self.client.patch(self.resource, key, patch, subresource="status")
        return self._record_own(self.recorder.records[key], obj)

    async def add_finalizer(self, key: Key) -> None:
        """Add the kit's finalizer to an object."""
        patch = merge_patch({"metadata": {"finalizers": [FINALIZER, *self._finalizers(key)]}})
        self._record_own(self.recorder.records[key], await self.client.patch(self.resource, key, patch))

    async def remove_finalizer(self, key: Key) -> None:
        """Remove the kit's finalizer and no other."""
        for _ in range(_TRIES):
            try:
                obj = await self.client.get(self.resource, key, metadata_only=True)
                patch = finalizer_patch(obj.head, FINALIZER, present=False)
                if patch is None:
                    return
                self._record_own(self.recorder.records[key], await self.client.patch(self.resource, key, patch))
            except NotFoundError:
                return
            except (ConflictError, InvalidError):
                # Another writer changed the object meanwhile.
                continue

    async def delete(self, key: Key) -> int:
        """Delete an object; returns its version while a finalizer holds it, else 0."""
        try:
            obj = await self.client.get(self.resource, key, metadata_only=True)
        except NotFoundError:
            return 0
        remains = await self.client.delete(self.resource, key, uid=obj.head.uid)
        return self._record_own(self.recorder.records[key], remains) if remains is not None else 0

    def record(self, key: Key) -> ObjectHistory:
        """The history of an object."""
        return self.recorder.records[key]

    def version(self, key: Key) -> int:
        """The newest version seen of an object."""
        seen = self.record(key).seen
        return seen[-1].version if seen else 0

    async def until(
        self, key: Key, check: Callable[[Observation], bool], seconds: float | None = None
    ) -> Observation | None:
        """Wait for a state that passes ``check`` and is not older than the kit's last write; None after the limit."""
        found = await self.recorder.until(
            key, partial(_passing, check), self.timing.settle if seconds is None else seconds
        )
        if found is not None:
            await self.quiet(key)
        return found

    async def verdict(self, key: Key, active: bool) -> Observation:
        """Wait for a verdict after the kit's last change, and until the provider has finished writing.

        :raises NoVerdictError: it did not appear in time.
        """
        found = await self.until(key, lambda seen: seen.active is active)
        if found is None:
            raise NoVerdictError(
                f"no verdict {str(active).lower()} within {self.timing.settle:g} s; {self.describe(key)}"
            )
        return found

    async def quiet(self, key: Key) -> None:
        """Wait until no write to an object has been seen for a moment."""
        record = self.record(key)
        deadline = self.clock.monotonic() + _QUIET_LIMIT
        while self.clock.monotonic() < deadline:
            count = len(record.seen)
            if not await self.recorder.until(key, partial(_grown, count), _QUIET):
                return

    async def sleep(self, seconds: float) -> None:
        """Let time pass, to observe that nothing happens meanwhile."""
        await asyncio.sleep(seconds)

    def describe(self, key: Key) -> str:
        """Describe the current status of an object."""
        last = self.record(key).last
        if last is None:
            return "the object does not exist"
        return f"its status is {brief(last.status)}" if last.status else "it has no status"

    def _spec(self, active: bool | None) -> Spec:
        if active is None:
            if self.subject.invalid is None:
                raise InconclusiveError("no invalid spec was given")
            return self.subject.invalid
        if active or self.subject.inactive is None:
            return self.subject.active
        return self.subject.inactive

    async def _replace(self, record: ObjectHistory, spec: Spec, active: bool | None) -> None:
        patch = json_patch([{"op": "add", "path": "/spec", "value": dict(spec)}])
        obj = await self.client.patch(self.resource, record.key, patch)
        self._record_own(record, obj)
        record.episodes.append(Episode(obj.head.version, obj.head.generation, active))

    def _finalizers(self, key: Key) -> list[str]:
        last = self.record(key).last
        return list(last.metadata.get("finalizers") or ()) if last is not None else []

    @staticmethod
    def _record_own(record: ObjectHistory, obj: Object) -> int:
        record.ours.add(obj.head.version)
        return obj.head.version


def _grown(count: int, record: ObjectHistory) -> bool:
    return len(record.seen) > count


def _passing(check: Callable[[Observation], bool], record: ObjectHistory) -> Observation | None:
    last = record.last
    since = record.episodes[-1].since if record.episodes else 0
    # A flip of the source creates no version, so the state before it counts too.
    known = last is not None and last.version >= min(since, max(record.ours, default=0))
    return last if last is not None and known and check(last) else None


def single_error(errors: BaseExceptionGroup[BaseException]) -> FivespotError | None:
    """Return the first error of a task group if all are fivespot's own, for the others are consequences; else None."""
    known, others = errors.split(FivespotError)
    if known is None or others is not None:
        return None
    error: BaseException = known
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, FivespotError) else None
