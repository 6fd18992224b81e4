"""Providers that are wrong on purpose, in one way each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from fivespot.runtime import (
    CRDS,
    Change,
    Clock,
    Condition,
    Key,
    ManagerContext,
    NotFoundError,
    Object,
    Resource,
    Result,
    ensure_finalizer,
    merge_patch,
)
from fivespot.runtime.objects import rfc3339
from fivespot.testing.conformance import Spec

from .sample_provider import GROUP, Json, Toy

__all__ = ["WRONG"]


class LooseToy(Toy):
    """A kind whose schema does not require the verdict, as third parties have it."""

    @classmethod
    def status_schema(cls) -> Json:
        schema = super().status_schema()
        del schema["required"]
        return schema


# Verdicts ----------------------------------------------------------------------------------------------------------


class SilentToy(Toy):
    """Never writes a status."""

    rules, words = ("verdict",), "is its controller running"

    async def reconcile(self, key: Key) -> Result:
        return Result()


class ContraryToy(Toy):
    """Says the contrary of what follows from the spec."""

    rules, words = ("verdict",), "no verdict true"

    def verdict(self, key: Key, active: bool) -> bool:
        return not active


class StubbornToy(Toy):
    """Decides once and ignores every later change."""

    rules, words = ("flip",), "after a change that makes it inactive"

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return old if old.get("active") is not None else super().status(key, spec, old, obj, now)


class BouncingToy(Toy):
    """Resets the verdict before every decision."""

    rules, words = ("flip-once",), "neither its spec nor its source had changed"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if old.get("observedGeneration") not in (None, obj.head.generation):
            await self.patch(key, {"active": not wanted["active"]})
            await self.patch(key, {"active": wanted["active"]})
            await self.patch(key, {"active": not wanted["active"]})
        await super().write(key, obj, old, wanted)


class _Behind:
    """A clock on the wall that is some seconds late."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._late = timedelta(seconds=seconds)
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now() - self._late

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def boottime(self) -> float:
        return self._clock.boottime()


class LateToy(Toy):
    """Decides by a time that it read seconds ago."""

    rules, words = ("boundary",), "s from "

    def __init__(self, context: ManagerContext) -> None:
        super().__init__(context)
        self.clock = _Behind(context.clock, 3.5)


class ForgottenBoundaryToy(Toy):
    """Announces the end of a verdict and does not come back for it."""

    rules, words = ("boundary",), "it did not become inactive"

    def sleep(self, seconds: float) -> float:
        return seconds + 3600


class TimidToy(Toy):
    """Begins every status with false."""

    rules, words = ("first-write",), "which does not follow"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if not old:
            await self.patch(key, {"active": False})
        await super().write(key, obj, old, wanted)


class HastyToy(LooseToy):
    """Reports progress before there is a verdict."""

    rules, words = ("first-write", "active-in-every-write"), "holds no verdict"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if not old:
            await self.patch(key, {"observedGeneration": obj.head.generation})
        await super().write(key, obj, old, wanted)


class ForgetfulToy(LooseToy):
    """Replaces the status by a problem alone."""

    rules, words = ("active-in-every-write", "verdict-held"), "without a boolean active"

    def broken(self, old: Json, obj: Object, now: datetime) -> Json:
        return {"conditions": super().broken(old, obj, now)["conditions"]}

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if "active" in wanted:
            await super().write(key, obj, old, wanted)
        elif old != wanted:
            body = {**obj.decode(), "status": wanted}
            await self.client.replace(self.resource, body, subresource="status")


# Conditions --------------------------------------------------------------------------------------------------------


class UnsureToy(Toy):
    """Is never Ready."""

    rules, words = ("ready", "verdict"), "Unknown"

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        return super().conditions(old, replace(ready, status="Unknown"), obj, now)


class TwiceReadyToy(Toy):
    """Has two conditions Ready."""

    rules, words = ("conditions",), "more than one condition Ready"

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        [one] = super().conditions({"conditions": (old.get("conditions") or [])[:1]}, ready, obj, now)
        return [one, one]


class MapToy(Toy):
    """Writes conditions as a map."""

    rules, words = ("conditions",), "conditions is not a list"

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        return {"Ready": ready.status}


class ChattyToy(Toy):
    """Writes paragraphs with control characters into a message."""

    rules, words = ("texts",), "bytes"

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        return super().conditions(old, replace(ready, message="\x1b[31mlook " * 300), obj, now)


class JealousToy(Toy):
    """Overwrites the conditions of others."""

    rules, words = ("foreign-conditions",), "was lost"

    def conditions(self, old: Json, ready: Condition, obj: Object, now: datetime) -> Any:
        own = [entry for entry in old.get("conditions") or [] if entry["type"] == "Ready"]
        return super().conditions({"conditions": own}, ready, obj, now)


# Times and generations ---------------------------------------------------------------------------------------------


class RestlessToy(Toy):
    """Moves the time of the last flip at every look."""

    rules, words = ("transition-time", "write-loop"), "while active stayed true"

    def time(self, since: str | None, now: datetime, *, flipped: bool) -> Any:
        return now.isoformat()


class FrozenToy(Toy):
    """Never moves the time of the last flip."""

    rules, words = ("transition-time",), "although active became false"

    def time(self, since: str | None, now: datetime, *, flipped: bool) -> Any:
        return since or rfc3339(now)


class EpochToy(Toy):
    """Writes seconds since 1970."""

    rules, words = ("timestamps",), "lastTransitionTime is 1"

    def time(self, since: Any, now: datetime, *, flipped: bool) -> Any:
        return int(now.timestamp()) if flipped or since is None else since


class StaleToy(Toy):
    """Never says that it has seen a newer generation."""

    rules, words = ("observed-generation",), "stays 1"

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().status(key, spec, old, obj, now), "observedGeneration": 1}


class BoastfulToy(Toy):
    """Says that it has seen a generation before it has decided."""

    rules, words = ("observed-generation",), "the verdict is that of the generation before"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if old:
            await self.patch(key, {"observedGeneration": obj.head.generation})
        await super().write(key, obj, old, wanted)


class UndatedToy(Toy):
    """Writes verdicts without observedGeneration."""

    rules, words = ("observed-generation-present",), "without observedGeneration"

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {k: v for k, v in super().status(key, spec, old, obj, now).items() if k != "observedGeneration"}


class NostalgicToy(Toy):
    """Announces a change in the past."""

    rules, words = ("next-transition",), "which is past"

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        wanted = super().status(key, spec, old, obj, now)
        return {**wanted, "nextTransitionTime": old.get("nextTransitionTime") or rfc3339(now - timedelta(hours=1))}


# Writes ------------------------------------------------------------------------------------------------------------


class HeartbeatToy(Toy):
    """Tells every half second that it is alive."""

    rules, words = ("steady",), "lastLook"

    async def reconcile(self, key: Key) -> Result:
        await super().reconcile(key)
        return Result(requeue_after=0.5)

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().status(key, spec, old, obj, now), "lastLook": now.isoformat()}


class EchoToy(Toy):
    """Answers its own writes."""

    rules, words = ("write-loop", "steady"), "each causes the next"

    def wakes(self, change: Change) -> bool:
        return True

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().status(key, spec, old, obj, now), "looks": old.get("looks", 0) + 1}


class MarkingToy(Toy):
    """Keeps a note in an annotation."""

    rules, words = ("spec-untouched",), "metadata.annotations"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        await super().write(key, obj, old, wanted)
        if "example.com/seen" not in obj.head.annotations:
            note = merge_patch({"metadata": {"annotations": {"example.com/seen": "yes"}}})
            await self.client.patch(self.resource, key, note)


class CompletingToy(Toy):
    """Fills in the spec."""

    rules, words = ("spec-untouched",), "spec was changed"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        await super().write(key, obj, old, wanted)
        if "zone" not in obj.decode()["spec"]:
            await self.client.patch(self.resource, key, merge_patch({"spec": {"zone": "UTC"}}))


class RepeatingToy(Toy):
    """Sends the stored status again and again."""

    rules, words = ("redundant-writes",), "changed nothing"

    async def reconcile(self, key: Key) -> Result:
        obj = self.informer.get(key)
        await super().reconcile(key)
        if obj is not None and not obj.head.deleting and (status := obj.decode().get("status")):
            await self.patch(key, status)
        return Result(requeue_after=0.5)


class TrespassingToy(Toy):
    """Takes every schedule for one of its own."""

    rules, words = ("other-kinds",), "an object of another kind"

    async def reconcile(self, key: Key) -> Result:
        found = await self.client.list(CRDS)
        for definition in found:
            names = definition.decode()["spec"]["names"]
            # The schedules of other tests are left alone.
            if not names["kind"].startswith("ConformanceBystander"):
                continue
            resource = Resource(GROUP, "v1", names["plural"], names["kind"])
            for other in await self.client.list(resource, key.namespace):
                patch = merge_patch({"status": {"active": True}})
                await self.client.patch(resource, other.key, patch, subresource="status")
        return await super().reconcile(key)


class HeedlessToy(Toy):
    """Looks at new generations only, so that what else happens to a status stays so."""

    rules, words = ("status-restored",), "is not written again"

    def wakes(self, change: Change) -> bool:
        return change.old is None or change.old.head.generation != change.head.generation


# Specs that cannot be followed -------------------------------------------------------------------------------------


class SulkingToy(Toy):
    """Says nothing of a spec that it cannot follow."""

    rules, words = ("invalid-spec", "verdict-held"), "Ready is not False"

    def broken(self, old: Json, obj: Object, now: datetime) -> Json:
        return old

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        if wanted:
            await super().write(key, obj, old, wanted)


class RuthlessToy(Toy):
    """Takes the machines away when the spec cannot be followed."""

    rules, words = ("verdict-held",), "an invalid spec changed it to false"

    def broken(self, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().broken(old, obj, now), "active": False}


class GrudgingToy(Toy):
    """Never forgives."""

    rules, words = ("recovers",), "after the spec was corrected it is not Ready"

    def __init__(self, context: ManagerContext) -> None:
        super().__init__(context)
        self.failed: set[Key] = set()

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        if "active" not in spec:
            self.failed.add(key)
        return self.broken(old, obj, now) if key in self.failed else super().status(key, spec, old, obj, now)


class PoisonedToy(Toy):
    """Stops deciding anything after one spec that it cannot follow."""

    rules, words = ("isolation",), "objects with an invalid spec"

    def __init__(self, context: ManagerContext) -> None:
        super().__init__(context)
        self.poisoned = False

    async def reconcile(self, key: Key) -> Result:
        obj = self.informer.get(key)
        if obj is not None and "active" not in obj.decode()["spec"]:
            self.poisoned = True
        return Result() if self.poisoned else await super().reconcile(key)


# Ends --------------------------------------------------------------------------------------------------------------


class ClingingToy(Toy):
    """Takes a finalizer and never gives it back."""

    rules, words = ("deletion",), "held by the finalizer example.com/mine"

    async def write(self, key: Key, obj: Object, old: Json, wanted: Mapping[str, Any]) -> None:
        await ensure_finalizer(self.client, self.resource, obj, "example.com/mine")
        await super().write(key, obj, old, wanted)


class MourningToy(Toy):
    """Reports on objects that are being deleted."""

    rules, words = ("deletion",), "while it was being deleted"

    def sees_deleting(self) -> bool:
        return True

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().status(key, spec, old, obj, now), "active": not obj.head.deleting}


class SentimentalToy(Toy):
    """Remembers verdicts by name."""

    rules, words = ("recreated",), "deleted and recreated"

    def __init__(self, context: ManagerContext) -> None:
        super().__init__(context)
        self.known: dict[tuple[Key, int], bool] = {}

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        wanted = super().status(key, spec, old, obj, now)
        return {**wanted, "active": self.known.setdefault((key, obj.head.generation), wanted["active"])}


class VainToy(Toy):
    """Writes when it was started into every status."""

    rules, words = ("restart",), "written 1 times after the restart"

    def __init__(self, context: ManagerContext) -> None:
        super().__init__(context)
        self.started = context.clock.now().isoformat()

    def status(self, key: Key, spec: Spec, old: Json, obj: Object, now: datetime) -> Json:
        return {**super().status(key, spec, old, obj, now), "by": self.started}


# Kinds -------------------------------------------------------------------------------------------------------------


class TrapToy(Toy):
    """Has a default for the verdict."""

    rules, words = ("active-required",), "has the default False"

    @classmethod
    def status_schema(cls) -> Json:
        return {**super().status_schema(), "properties": {"active": {"type": "boolean", "default": False}}}


class OpenToy(Toy):
    """Has no status subresource."""

    rules, words = ("status-subresource",), "has no status subresource"

    @classmethod
    def definition(cls) -> Json:
        found = super().definition()
        del found["spec"]["versions"][0]["subresources"]
        return found

    async def patch(self, key: Key, status: Mapping[str, Any]) -> None:
        try:
            await self.client.patch(self.resource, key, merge_patch({"status": status}))
        except NotFoundError:
            return


class StayingToy(Toy):
    """Is left behind by clusterctl move."""

    rules, words = ("move-label",), "no label"

    @classmethod
    def definition(cls) -> Json:
        found = super().definition()
        del found["metadata"]["labels"]
        return found


class ClusterToy(Toy):
    """Is cluster-scoped."""

    rules, words = ("kind-served",), "is cluster-scoped"

    @classmethod
    def make_resource(cls) -> Resource:
        return replace(super().make_resource(), namespaced=False)

    @classmethod
    def definition(cls) -> Json:
        found = super().definition()
        found["spec"]["scope"] = "Cluster"
        return found


def _all(base: type[Toy]) -> list[type[Toy]]:
    return [toy for child in base.__subclasses__() for toy in (child, *_all(child)) if toy.rules]


WRONG = sorted(_all(Toy), key=lambda toy: toy.__name__)
"""All of them."""
