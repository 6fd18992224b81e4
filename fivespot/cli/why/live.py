"""The inputs of an evaluation, read by single requests instead of informers.

They answer with what has been read and note what is missing. That is then fetched and the evaluation repeated until
nothing is missing, so the controller's own code determines what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from fivespot.api import names
from fivespot.controllers.scheduledmachine.observe import CLUSTER_KIND, MACHINE_KIND, machine_version
from fivespot.controllers.scheduledmachine.protocols import NamedKind
from fivespot.runtime import (
    CRDS,
    ApiError,
    Client,
    Discovery,
    ForbiddenError,
    GroupKind,
    Key,
    KindAbsent,
    KindUnknown,
    NotFoundError,
    Object,
    Resource,
)
from fivespot.runtime.cache.crds import by_priority, read_definition
from fivespot.runtime.client.discovery import GroupServed
from fivespot.runtime.errors import KindNotServedError, NotServedError, ProtocolError
from fivespot.runtime.objects import KindState

__all__ = ["LiveInputs", "LiveKind", "LiveKinds", "LiveObjects", "LiveReaders", "ReadRefused", "Unread"]

_NOT_YET = "it is not read yet"
_CONTRACTS = ("v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read.

    :param verb: ``get`` or ``list``.
    :param resource: ``plural.group``.
    :param key: the object; a name of "" means all.
    :param why: the server's message.
    :param denied: the user lacks the right.
    :param instead: the fallback that was used.
    """

    verb: str
    resource: str
    key: Key
    why: str
    denied: bool
    instead: str = ""


class ReadRefused:
    """Collects what could not be read, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Key], Unread] = {}

    def note(self, verb: str, resource: Resource, key: Key, error: Exception, instead: str = "") -> None:
        unread = Unread(verb, resource.qualified, key, str(error), isinstance(error, ForbiddenError), instead)
        self._found.setdefault((verb, resource.qualified, key), unread)

    @property
    def all(self) -> tuple[Unread, ...]:
        return tuple(self._found.values())


@dataclass(slots=True)
class LiveObjects:
    """The objects of one resource, each fetched on demand. If one cannot be read, none counts as read."""

    resource: Resource
    metadata_only: bool = False
    last_error: Exception | None = None
    # This is a refusal to the user; the controller would treat it as one to itself.
    error_since: float | None = None
    missing: set[Key] = field(default_factory=set)
    found: dict[Key, Object | None] = field(default_factory=dict)

    @property
    def synced(self) -> bool:
        return self.last_error is None

    @property
    def status(self) -> LiveObjects:
        return self

    def get(self, key: Key) -> Object | None:
        if key not in self.found:
            self.missing.add(key)
        return self.found.get(key)

    def list(self) -> list[Object]:
        return [obj for obj in self.found.values() if obj is not None]

    async def fetch(self, client: Client, refused: ReadRefused) -> None:
        """Read what is missing."""
        for key in sorted(self.missing):
            try:
                self.found[key] = await client.get(self.resource, key, metadata_only=self.metadata_only)
            except NotFoundError:
                self.found[key] = None
            except NotServedError:
                self.last_error = KindNotServedError(f"{self.resource} is not served any more")
                self.found[key] = None
            except ApiError as error:
                self.last_error = error
                refused.note("get", self.resource, key, error)
        self.missing.clear()


@dataclass(frozen=True, slots=True)
class LiveKind:
    """A kind and its objects."""

    resource: Resource
    informer: LiveObjects


class LiveReaders:
    """The objects of all kinds that are read the same way.

    :param metadata_only: their bodies are never asked for.
    """

    def __init__(self, *, metadata_only: bool) -> None:
        self._metadata_only = metadata_only
        self._opened: dict[GroupKind, LiveKind] = {}

    def get(self, group_kind: GroupKind) -> LiveKind | None:
        return self._opened.get(group_kind)

    def open(self, group_kind: GroupKind, state: KindState, version: str | None = None) -> LiveKind:
        found = self._opened.get(group_kind)
        if found is None:
            resource = state.resource(version if version in state.served else None)
            found = self._opened[group_kind] = LiveKind(resource, LiveObjects(resource, self._metadata_only))
        return found

    @property
    def unfinished(self) -> list[LiveObjects]:
        return [kind.informer for kind in self._opened.values() if kind.informer.missing]


class LiveInputs:
    """The inputs of an evaluation (:class:`~fivespot.controllers.scheduledmachine.protocols.Inputs`), read on demand.

    :param capi_version: the version of Machines that the controller is configured to use, if any.
    """

    def __init__(self, client: Client, refused: ReadRefused, capi_version: str | None) -> None:
        self._client = client
        self._refused = refused
        self._capi_version = capi_version
        self.kinds = LiveKinds(client, refused)
        self._schedules = LiveReaders(metadata_only=False)
        self._children = LiveReaders(metadata_only=True)
        # Machines and Clusters hold no credentials, and are read whole as the controller does.
        self._own = LiveReaders(metadata_only=False)

    @property
    def machines(self) -> LiveObjects | None:
        state = self.kinds.lookup(MACHINE_KIND)
        version = machine_version(state, self._capi_version) if isinstance(state, KindState) else ""
        if not isinstance(state, KindState) or not version:
            return None
        return self._own.open(MACHINE_KIND, state, version).informer

    @property
    def clusters(self) -> LiveObjects | None:
        state = self.kinds.lookup(CLUSTER_KIND)
        usable = isinstance(state, KindState) and state.usable
        return self._own.open(CLUSTER_KIND, state).informer if isinstance(state, KindState) and usable else None

    def lookup(self, gk: GroupKind) -> KindState | KindAbsent | KindUnknown:
        return self.kinds.lookup(gk)

    def in_group(self, group: str) -> tuple[KindState, ...] | KindUnknown:
        return self.kinds.in_group(group)

    def schedules(self, gk: GroupKind) -> LiveKind | None:
        return self._schedules.get(gk)

    def children(self, gk: GroupKind) -> LiveKind | None:
        return self._children.get(gk)

    def require(self, schedule: GroupKind, children: Iterable[NamedKind]) -> None:
        state = self.kinds.lookup(schedule)
        if isinstance(state, KindState) and state.usable and state.namespaced:
            self._schedules.open(schedule, state)
        for named in children:
            state = self.kinds.lookup(named.group_kind)
            if isinstance(state, KindState) and state.established and state.served:
                self._children.open(named.group_kind, state, named.version)

    async def complete(self) -> bool:
        """Read what is missing."""
        readers = (self._schedules, self._children, self._own)
        unfinished = [objects for reader in readers for objects in reader.unfinished]
        if not unfinished and not self.kinds.unfinished:
            return False
        await asyncio.gather(self.kinds.fetch(), *(o.fetch(self._client, self._refused) for o in unfinished))
        return True


class LiveKinds:
    """The defined kinds, from discovery, which everybody may read, and from their definitions where those may be
    read."""

    def __init__(self, client: Client, refused: ReadRefused) -> None:
        self._client = client
        self._discovery = Discovery(client)
        self._refused = refused
        self._known: dict[GroupKind, KindState | KindAbsent | KindUnknown] = {}
        self._groups: dict[str, tuple[KindState, ...] | KindUnknown] = {}
        self._names: dict[str, list[str]] | None = None
        self._missing_kinds: set[GroupKind] = set()
        self._missing_groups: set[str] = set()

    # Inputs of the evaluation -------------------------------------------------------------------------------------

    def lookup(self, gk: GroupKind) -> KindState | KindAbsent | KindUnknown:
        found = self._known.get(gk)
        if found is None:
            self._missing_kinds.add(gk)
            return KindUnknown(_NOT_YET)
        return found

    def in_group(self, group: str) -> tuple[KindState, ...] | KindUnknown:
        found = self._groups.get(group)
        if found is None:
            self._missing_groups.add(group)
            return KindUnknown(_NOT_YET)
        return found

    # Reading ------------------------------------------------------------------------------------------------------

    @property
    def unfinished(self) -> bool:
        return bool(self._missing_kinds or self._missing_groups)

    @property
    def known(self) -> dict[GroupKind, KindState]:
        """The kinds that were looked up and are defined."""
        return {gk: state for gk, state in self._known.items() if isinstance(state, KindState)}

    async def fetch(self) -> None:
        """Read what is missing."""
        kinds, groups = sorted(self._missing_kinds), sorted(self._missing_groups)
        states = await asyncio.gather(*(self._kind(gk) for gk in kinds))
        self._known.update(zip(kinds, states, strict=True))
        for group in groups:
            self._groups[group] = await self._group(group)
        self._missing_kinds.clear()
        self._missing_groups.clear()

    async def _kind(self, gk: GroupKind) -> KindState | KindAbsent | KindUnknown:
        try:
            served = await self._served(gk.group)
            resource = served.find(gk.kind) if served is not None else None
            if served is not None and resource is not None:
                return await self._definition(served, resource)
            # Not served. There may be a definition all the same, which says what is wrong.
            for name in await self._definitions(gk.group):
                state = await self._read(name)
                if state is not None and state.kind == gk.kind:
                    return state
        except ForbiddenError:
            return KindAbsent()
        except (ApiError, ProtocolError) as error:
            return KindUnknown(str(error))
        return KindAbsent()

    async def _group(self, group: str) -> tuple[KindState, ...] | KindUnknown:
        try:
            served = await self._served(group)
            resources = {} if served is None else {r.kind: r for v in served.versions for r in served.kinds[v].values()}
            states = [await self._definition(served, r) for r in resources.values()] if served is not None else []
        except (ApiError, ProtocolError) as error:
            return KindUnknown(str(error))
        return tuple(sorted(states, key=lambda state: state.kind))

    async def _served(self, group: str) -> GroupServed | None:
        try:
            return await self._discovery.group(group)
        except KindNotServedError:
            return None

    async def _definition(self, served: GroupServed, resource: Resource) -> KindState:
        try:
            state = await self._read(resource.qualified)
        except ForbiddenError as error:
            instead = "the kind is judged by what the server serves"
            self._refused.note("get", CRDS, Key("", resource.qualified), error, instead)
            state = None
        return state or _assumed(served, resource)

    async def _read(self, name: str) -> KindState | None:
        try:
            return read_definition(await self._client.get(CRDS, Key("", name)))
        except NotFoundError:
            return None

    async def _definitions(self, group: str) -> list[str]:
        """The names of the group's definitions. :raises ForbiddenError: they may not be listed, which is noted."""
        if self._names is None:
            try:
                found = await self._client.list(CRDS, metadata_only=True)
            except ForbiddenError as error:
                instead = "a kind that is not served counts as not installed"
                self._refused.note("list", CRDS, Key("", ""), error, instead)
                raise
            self._names = {}
            for obj in found:
                self._names.setdefault(obj.head.name.partition(".")[2], []).append(obj.head.name)
        return self._names.get(group, [])


def _assumed(served: GroupServed, resource: Resource) -> KindState:
    """A kind by what is served of it, as if its definition asked for nothing more."""
    versions = by_priority(v for v in served.versions if resource.kind in served.kinds[v])
    return KindState(
        group=resource.group,
        kind=resource.kind,
        plural=resource.plural,
        crd_name=resource.qualified,
        namespaced=resource.namespaced,
        established=True,
        deleting=False,
        served=versions,
        # The stored version is not visible; Cluster API stores the newest one that it serves.
        storage=versions[0],
        labels={f"{names.CLUSTER_API_GROUP}/{version}": "" for version in _CONTRACTS},
        uid="",
        version=0,
    )
