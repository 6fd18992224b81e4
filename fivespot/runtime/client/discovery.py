"""Discovery of the resources that the server serves. Plurals and scopes are looked up, never guessed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from fivespot.runtime.errors import KindNotServedError, NotFoundError, NotServedError, ProtocolError
from fivespot.runtime.objects import UNDECODABLE, GroupKind, Resource

from .client import Client

__all__ = ["Discovery", "GroupServed"]

T = TypeVar("T")

_FRESH_SECONDS: Final = 10.0
"""Age of a cached answer from which a kind that is missing in it is looked up again: many keys that wait for one absent
kind then cost one request, and a kind that was installed meanwhile is soon found."""


@dataclass(frozen=True, slots=True)
class GroupServed:
    """The resources of one API group at one moment.

    :param versions: in the server's order, the preferred one first.
    :param kinds: the resources by version and kind, without subresources.
    """

    group: str
    versions: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, Resource]]

    def find(self, kind: str, prefer: Sequence[str] = ()) -> Resource | None:
        """Find a kind at the first version of ``prefer`` that has it, else at the first version that does."""
        for version in (*prefer, *self.versions):
            resource = self.kinds.get(version, {}).get(kind)
            if resource is not None:
                return resource
        return None


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    served: GroupServed | None = None
    read_at: float = 0.0
    invalidations: int = 0


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_GroupVersion]


class _CoreVersions(msgspec.Struct):
    versions: list[str]


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] | None = None


class Discovery:
    """Reads and caches the served resources, group by group.

    A group is cached until :meth:`invalidate`, to be called by whoever watches CustomResourceDefinitions. Concurrent
    lookups of a group share one request.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, _Entry] = {}

    async def resource(self, gk: GroupKind, *, prefer: Sequence[str] = ()) -> Resource:
        """Look up the resource of a kind.

        :param prefer: versions to use if they are served, best first; by default the server's order decides.
        :raises KindNotServedError: no served version has the kind.
        """
        entry = self._entry(gk.group)
        served = await self._facts(gk.group, entry, since=None)
        found = served.find(gk.kind, prefer)
        if found is None and self._client.clock.monotonic() - entry.read_at >= _FRESH_SECONDS:
            served = await self._facts(gk.group, entry, since=entry.read_at)
            found = served.find(gk.kind, prefer)
        if found is None:
            versions = ", ".join(served.versions)
            raise KindNotServedError(f"{gk}: the server serves {gk.group or 'core'}/{versions} without this kind")
        return found

    async def group(self, group: str) -> GroupServed:
        """Look up all resources of a group ("" for the core group).

        :raises KindNotServedError: the group is not served.
        """
        return await self._facts(group, self._entry(group), since=None)

    def invalidate(self, group: str | None = None) -> None:
        """Drop one group from the cache, or all. A response under way does not count as fresh."""
        entries = self._groups.values() if group is None else [e for g, e in self._groups.items() if g == group]
        for entry in entries:
            entry.served = None
            entry.invalidations += 1

    def _entry(self, group: str) -> _Entry:
        return self._groups.setdefault(group, _Entry())

    async def _facts(self, group: str, entry: _Entry, since: float | None) -> GroupServed:
        """The cached group, read again if there is none or it is not newer than ``since``."""
        if entry.served is not None and (since is None or entry.read_at > since):
            return entry.served
        async with entry.lock:
            if entry.served is not None and (since is None or entry.read_at > since):
                return entry.served
            invalidations, read_at = entry.invalidations, self._client.clock.monotonic()
            served = await self._read(group)
            if entry.invalidations == invalidations:
                entry.served, entry.read_at = served, read_at
            return served

    async def _read(self, group: str) -> GroupServed:
        try:
            if group:
                found = _decode(await self._client.raw("GET", f"/apis/{group}"), _Group, group)
                versions = [entry.version for entry in found.versions]
            else:
                versions = _decode(await self._client.raw("GET", "/api"), _CoreVersions, "core").versions
        except (NotFoundError, NotServedError) as error:
            raise KindNotServedError(f"the server does not serve the group {group or 'core'}") from error
        kinds: dict[str, Mapping[str, Resource]] = {}
        for version in versions:
            try:
                kinds[version] = await self._read_version(group, version)
            except (NotFoundError, NotServedError):
                # It was removed between the two requests; the next invalidation will tell.
                continue
        return GroupServed(group, tuple(version for version in versions if version in kinds), kinds)

    async def _read_version(self, group: str, version: str) -> Mapping[str, Resource]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = _decode(await self._client.raw("GET", path), _ResourceList, f"{group}/{version}")
        resources: dict[str, Resource] = {}
        for entry in listed.resources or ():
            if "/" not in entry.name:
                resources.setdefault(entry.kind, Resource(group, version, entry.name, entry.kind, entry.namespaced))
        return resources


def _decode(body: bytes, shape: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except UNDECODABLE as error:
        raise ProtocolError(f"discovery of {what}: {error}") from error
