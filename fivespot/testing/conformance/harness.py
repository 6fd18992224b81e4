"""What the rules work with: objects of the kind under test, and what happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from fivespot.runtime.client import Client
from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import ConflictError, InvalidError, NotFoundError
from fivespot.runtime.objects import Key, Object, Resource, finalizer_patch, json_patch, merge_patch

from .history import Episode, ObjectHistory, Observation, brief
from .recorder import Recorder
from .subject import Spec, Subject, Timing

__all__ = ["ANNOTATION", "HOLD", "NoVerdictError", "Rig", "UnjudgedError", "ViolationError"]

T = TypeVar("T")

ANNOTATION = "conformance.5spot.finos.org/touched"
HOLD = "conformance.5spot.finos.org/hold"
"""A finalizer of the kit's own, which keeps a deleted object there to be looked at."""

_CALM, _CALM_LIMIT = 0.3, 3.0
"""Seconds without a write after which a provider counts as done, and how long that is waited for."""

_TRIES = 10


class ViolationError(Exception):
    """A rule is broken; the text says what was seen."""


class UnjudgedError(Exception):
    """A rule cannot be judged; the text says why."""


class NoVerdictError(UnjudgedError):
    """The expected verdict did not come, which is the matter of another rule."""


class Rig:
    """A namespace with objects of one kind.

    :ivar refusal: what admission says to the invalid spec; "" when it lets it in or there is none.
    :ivar definition: the kind's CustomResourceDefinition; None when it may not be read.
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
        self._client = client
        self._suffix = suffix

    # -- acting --------------------------------------------------------------------------------------------------

    def body(self, name: str, spec: Spec) -> dict[str, Any]:
        """An object of the kind."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": dict(spec),
        }

    async def create(self, name: str, *, active: bool | None, spec: Spec | None = None) -> Key:
        """Make an object that is active, inactive, or (None) cannot be followed.

        :param spec: instead of the subject's own.
        """
        key = Key(self.namespace, f"conformance-{name}-{self._suffix}")
        chosen = spec if spec is not None else self._spec(active)
        record = self.recorder.register(key)
        if self.subject.flip is not None and active is not None:
            await self.subject.flip(self.namespace, key.name, active)
        obj = await self._client.create(self.resource, self.body(key.name, chosen))
        self._ours(record, obj)
        record.episodes.append(Episode(obj.head.version, obj.head.generation, active))
        return key

    async def edit(self, key: Key, *, active: bool | None) -> None:
        """Make an object active, inactive, or (None) impossible to follow, by its spec or by what it looks at."""
        record = self.recorder.records[key]
        if self.subject.flip is None or active is None:
            await self._replace(record, self._spec(active), active)
            return
        broken = record.episodes[-1].expected is None
        if not broken:
            last = record.episodes[-1]
            record.episodes.append(Episode(max(self.version(key) + 1, last.since), last.generation, active))
        await self.subject.flip(self.namespace, key.name, active)
        if broken:
            await self._replace(record, self._spec(True), active)

    async def touch(self, key: Key) -> int:
        """Change an annotation, which decides nothing; returns the version it made."""
        value = str(self.clock.monotonic())
        patch = merge_patch({"metadata": {"annotations": {ANNOTATION: value}}})
        return self._ours(self.recorder.records[key], await self._client.patch(self.resource, key, patch))

    async def patch_status(self, key: Key, status: Any) -> int:
        """Write into a status as another controller would; returns the version it made."""
        patch = merge_patch({"status": status})
        obj = await self._client.patch(self.resource, key, patch, subresource="status")
        return self._ours(self.recorder.records[key], obj)

    async def hold(self, key: Key) -> None:
        """Put the kit's finalizer on an object."""
        patch = merge_patch({"metadata": {"finalizers": [HOLD, *self._finalizers(key)]}})
        self._ours(self.recorder.records[key], await self._client.patch(self.resource, key, patch))

    async def release(self, key: Key) -> None:
        """Take the kit's finalizer off again, whatever others there are."""
        for _ in range(_TRIES):
            try:
                obj = await self._client.get(self.resource, key, metadata_only=True)
                patch = finalizer_patch(obj.head, HOLD, present=False)
                if patch is None:
                    return
                self._ours(self.recorder.records[key], await self._client.patch(self.resource, key, patch))
            except NotFoundError:
                return
            except (ConflictError, InvalidError):
                # Somebody wrote meanwhile.
                continue

    async def delete(self, key: Key) -> int:
        """Ask for an object's deletion; returns the version it made while something holds the object, else 0."""
        try:
            obj = await self._client.get(self.resource, key, metadata_only=True)
        except NotFoundError:
            return 0
        remains = await self._client.delete(self.resource, key, uid=obj.head.uid)
        return self._ours(self.recorder.records[key], remains) if remains is not None else 0

    # -- looking -------------------------------------------------------------------------------------------------

    def record(self, key: Key) -> ObjectHistory:
        return self.recorder.records[key]

    def version(self, key: Key) -> int:
        """The newest version seen of an object."""
        seen = self.record(key).seen
        return seen[-1].version if seen else 0

    async def until(
        self, key: Key, check: Callable[[Observation], bool], seconds: float | None = None
    ) -> Observation | None:
        """The newest state of an object, once it is not older than what the kit did last and passes ``check``."""
        found = await self.recorder.until(
            key, partial(_passing, check), self.timing.settle if seconds is None else seconds
        )
        if found is not None:
            await self.calm(key)
        return found

    async def settled(self, key: Key, active: bool) -> Observation:
        """Wait for the verdict that follows from what the kit did last, and until the provider is done with writing.

        :raises NoVerdictError: it did not come.
        """
        found = await self.until(key, lambda seen: seen.active is active)
        if found is None:
            raise NoVerdictError(
                f"no verdict {str(active).lower()} within {self.timing.settle:g} s; {self.describe(key)}"
            )
        return found

    async def calm(self, key: Key) -> None:
        """Wait until nothing has been written to an object for a moment."""
        record = self.record(key)
        deadline = self.clock.monotonic() + _CALM_LIMIT
        while self.clock.monotonic() < deadline:
            count = len(record.seen)
            if not await self.recorder.until(key, partial(_grown, count), _CALM):
                return

    async def pause(self, seconds: float) -> None:
        """Let time pass, to see that nothing happens in it."""
        await asyncio.sleep(seconds)

    def describe(self, key: Key) -> str:
        """The present status of an object, in words."""
        last = self.record(key).last
        if last is None:
            return "the object is not there"
        return f"its status is {brief(last.status)}" if last.status else "it has no status"

    # -- plumbing ------------------------------------------------------------------------------------------------

    def _spec(self, active: bool | None) -> Spec:
        if active is None:
            if self.subject.invalid is None:
                raise UnjudgedError("no invalid spec was given")
            return self.subject.invalid
        if active or self.subject.inactive is None:
            return self.subject.active
        return self.subject.inactive

    async def _replace(self, record: ObjectHistory, spec: Spec, active: bool | None) -> None:
        patch = json_patch([{"op": "add", "path": "/spec", "value": dict(spec)}])
        obj = await self._client.patch(self.resource, record.key, patch)
        self._ours(record, obj)
        record.episodes.append(Episode(obj.head.version, obj.head.generation, active))

    def _finalizers(self, key: Key) -> list[str]:
        last = self.record(key).last
        return list(last.metadata.get("finalizers") or ()) if last is not None else []

    @staticmethod
    def _ours(record: ObjectHistory, obj: Object) -> int:
        record.ours.add(obj.head.version)
        return obj.head.version


def _grown(count: int, record: ObjectHistory) -> bool:
    return len(record.seen) > count


def _passing(check: Callable[[Observation], bool], record: ObjectHistory) -> Observation | None:
    last = record.last
    since = record.episodes[-1].since if record.episodes else 0
    # A world that is flipped makes no version of its own, so there the state before counts too.
    known = last is not None and last.version >= min(since, max(record.ours, default=0))
    return last if last is not None and known and check(last) else None
