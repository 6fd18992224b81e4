"""Which resources the server serves. Plurals and scopes are looked up, never guessed."""

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
"""A kind that is missing from facts of this age is asked for again: long enough that many keys which wait for one
absent kind cost one look, short enough that a kind installed meanwhile is soon found."""


@dataclass(frozen=True, slots=True)
class GroupServed:
    """What the server serves of one group at one moment.

    :param versions: in the server's order, its preferred one first.
    :param kinds: per version the resources by kind; subresources are left out.
    """

    group: str
    versions: tuple[str, ...]
    kinds: Mapping[str, Mapping[str, Resource]]

    def find(self, kind: str, prefer: Sequence[str] = ()) -> Resource | None:
        """The kind at the first version of ``prefer`` that serves it, else at the first of all."""
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
    """Reads and remembers what is served, group by group.

    Facts are kept until :meth:`invalidate`, which belongs to whoever watches CustomResourceDefinitions. Many tasks
    that ask for one group at once cost one look.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, _Entry] = {}

    async def resource(self, gk: GroupKind, *, prefer: Sequence[str] = ()) -> Resource:
        """The served resource of a kind.

        :param prefer: versions to use if they are served, best first; otherwise the server's order decides.
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
        """Everything served of one group ("" for the core group).

        :raises KindNotServedError: nothing of the group is served.
        """
        return await self._facts(group, self._entry(group), since=None)

    def invalidate(self, group: str | None = None) -> None:
        """Forget one group, or all. An answer that is under way does not count as fresh."""
        entries = self._groups.values() if group is None else [e for g, e in self._groups.items() if g == group]
        for entry in entries:
            entry.served = None
            entry.invalidations += 1

    def _entry(self, group: str) -> _Entry:
        return self._groups.setdefault(group, _Entry())

    async def _facts(self, group: str, entry: _Entry, since: float | None) -> GroupServed:
        """Remembered facts, read again if there are none or they are not newer than ``since``."""
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
            raise KindNotServedError(f"the server serves nothing of the group {group or 'core'}") from error
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
