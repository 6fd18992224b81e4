"""Schedules of any kind of the provider group: finds the kind that a person names, reads objects and their verdicts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from fivespot.api import InvalidObject, validate
from fivespot.api.names import PROVIDER_GROUP
from fivespot.providers.registry import SHIPPED, shipped_provider
from fivespot.providers.sdk import NoVerdict, Override, OverrideRecord, SpecError, Verdict
from fivespot.providers.sdk.override_spec import OverrideEntry, read_overrides, read_records
from fivespot.runtime import Client, ConfigError, Discovery, Key, NotFoundError, Resource, find_condition
from fivespot.runtime.errors import KindNotServedError
from fivespot.runtime.objects import parse_rfc3339
from fivespot.schedule import UnknownZone, Zone, load_zone

__all__ = [
    "LiveSchedule",
    "OverridableKind",
    "find_kind",
    "list_schedules",
    "read_schedule",
    "served_kinds",
    "verdict_at",
]

_OVERRIDDEN: Final = "InForce"


@dataclass(frozen=True, slots=True)
class LiveSchedule:
    """A schedule object as read from the API server."""

    resource: Resource
    key: Key
    body: Mapping[str, Any]

    @property
    def label(self) -> str:
        """``Kind/name``, for messages."""
        return f"{self.resource.kind}/{self.key.name}"

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.body.get("spec") or {}
        return found

    @property
    def status(self) -> Mapping[str, Any]:
        found = self.body.get("status")
        return found if isinstance(found, Mapping) else {}

    @property
    def entries(self) -> list[dict[str, Any]]:
        """``spec.overrides`` as stored."""
        found = self.spec.get("overrides")
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    @property
    def overrides(self) -> tuple[Override, ...]:
        """``spec.overrides``; entries that are invalid are left out."""
        valid = []
        for entry in self.entries:
            try:
                valid.append(validate(OverrideEntry, entry))
            except InvalidObject:
                continue
        return read_overrides(valid)

    @property
    def records(self) -> dict[str, OverrideRecord]:
        """``status.overrides`` by name."""
        return read_records(self.status.get("overrides"))

    @property
    def zone(self) -> Zone | None:
        """The time zone in which the schedule is written, None if it names none."""
        name = self.spec.get("timezone")
        if name is None and self.resource.kind == "TimeBasedSpotSchedule":
            name = "UTC"
        try:
            return load_zone(name) if isinstance(name, str) else None
        except UnknownZone:
            return None

    def rule(self) -> Callable[[datetime], Verdict] | None:
        """The verdict of the schedule itself at any instant, overrides left aside; None if it cannot be computed here.

        Where it depends on other objects or on a source outside the cluster, its status has to do: the verdict now, and
        the next change that it announces.
        """
        return self._computed() or self._reported()

    def _computed(self) -> Callable[[datetime], Verdict] | None:
        enabled = self.spec.get("enabled")
        if self.resource.kind == "ManualSchedule" and isinstance(enabled, bool):
            return lambda at: Verdict(enabled)
        if self.resource.kind not in SHIPPED:
            return None
        provider = shipped_provider(self.resource.kind)
        if provider.asynchronous or provider.takes_context:
            return None
        try:
            prepared = provider.prepare(validate(provider.model, self.spec))
        except (InvalidObject, SpecError):
            return None

        def rule(at: datetime) -> Verdict:
            verdict = provider.decide(prepared, at)
            assert isinstance(verdict, Verdict)  # It is not asynchronous.
            return verdict

        return rule

    def _reported(self) -> Callable[[datetime], Verdict] | None:
        active, until = self.status.get("active"), self.status.get("nextTransitionTime")
        ready = find_condition(self.status.get("conditions"), "Ready")
        overridden = any(record.state.value == _OVERRIDDEN for record in self.records.values())
        if not isinstance(active, bool) or overridden or (ready is not None and ready.get("status") != "True"):
            return None
        try:
            change = parse_rfc3339(until) if isinstance(until, str) else None
        except ValueError:
            change = None
        verdict = Verdict(active, change, foreseen=change is not None)

        def rule(at: datetime) -> Verdict:
            return verdict if change is None or at < change else Verdict(not active, foreseen=False)

        return rule


def verdict_at(rule: Callable[[datetime], Verdict] | None, at: datetime) -> Verdict | None:
    """The verdict of a rule, None if it has none."""
    if rule is None:
        return None
    try:
        return rule(at)
    except NoVerdict:
        return None


@dataclass(frozen=True, slots=True)
class OverridableKind:
    """A kind of the provider group, with all names that kubectl accepts for it."""

    resource: Resource
    names: frozenset[str]


class _ListedResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    short_names: list[str] = msgspec.field(default_factory=list)


class _ResourceList(msgspec.Struct):
    resources: list[_ListedResource] = msgspec.field(default_factory=list)


async def served_kinds(client: Client) -> list[OverridableKind]:
    """The schedule kinds that the API server serves, each at its preferred version.

    :raises ConfigError: none is served.
    """
    try:
        versions = (await Discovery(client).group(PROVIDER_GROUP)).versions
    except KindNotServedError:
        raise ConfigError(
            f"no kind of the group {PROVIDER_GROUP} is installed; fivespot crds | kubectl apply --server-side -f -"
        ) from None
    found: dict[str, OverridableKind] = {}
    for version in versions:
        listed = msgspec.json.decode(await client.raw("GET", f"/apis/{PROVIDER_GROUP}/{version}"), type=_ResourceList)
        for entry in listed.resources:
            if "/" in entry.name or not entry.namespaced or entry.kind in found:
                continue
            resource = Resource(PROVIDER_GROUP, version, entry.name, entry.kind)
            names = {entry.name, entry.kind.lower(), entry.singular_name, *entry.short_names} - {""}
            found[entry.kind] = OverridableKind(resource, frozenset(names))
    return list(found.values())


def find_kind(kinds: Iterable[OverridableKind], name: str) -> Resource:
    """The kind that a person names by kind, singular, plural or short name.

    :raises ConfigError: there is none.
    """
    all_names: dict[str, Resource] = {}
    for kind in kinds:
        all_names.update(dict.fromkeys(kind.names, kind.resource))
    wanted = name.lower().removesuffix(f".{PROVIDER_GROUP}")
    if wanted in all_names:
        return all_names[wanted]
    near = difflib.get_close_matches(wanted, all_names, n=1)
    hint = f"did you mean {all_names[near[0]].kind}? " if near else ""
    known = ", ".join(sorted({resource.kind for resource in all_names.values()}))
    raise ConfigError(f"there is no schedule kind {name!r}; {hint}installed: {known}")


async def read_schedule(client: Client, resource: Resource, key: Key) -> LiveSchedule:
    """Read one schedule.

    :raises ConfigError: it does not exist.
    """
    try:
        return LiveSchedule(resource, key, (await client.get(resource, key)).decode())
    except NotFoundError as error:
        raise ConfigError(f"there is no {resource.kind} {key.name} in namespace {key.namespace}") from error


async def list_schedules(client: Client, resource: Resource, namespace: str) -> list[LiveSchedule]:
    """Read all schedules of a kind in a namespace; "" for all namespaces."""
    return [LiveSchedule(resource, obj.key, obj.decode()) for obj in await client.list(resource, namespace or None)]
