"""The kinds that CustomResourceDefinitions define, group by group, without holding the definitions.

Clusters hold thousands of large definitions. Their metadata is watched, and of the groups that somebody asked for
each definition is read once whenever its version changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from fivespot.runtime.backoff import Backoff
from fivespot.runtime.client import Client
from fivespot.runtime.clock import Random
from fivespot.runtime.errors import ApiError, NotFoundError, ProtocolError, TransportError
from fivespot.runtime.objects import (
    CRDS,
    METADATA,
    Change,
    ChangeType,
    GroupKind,
    Head,
    Key,
    KindAbsent,
    KindState,
    KindUnknown,
    Projection,
    Resource,
)
from fivespot.runtime.telemetry.logs import traceback_text

from .crds import read_definition
from .informer import Informer, Subscription

__all__ = ["Kinds"]

_log = structlog.get_logger(__name__)

_AT_ONCE = 4
"""Definitions read at the same time: a start with hundreds of kinds must not crowd out other requests."""
_RETRY = Backoff(base=0.25, cap=30.0, jitter=0.5)
"""Between attempts to read one definition."""
_GROUP_INDEX = "group"


@dataclass(slots=True)
class _Group:
    """The knowledge of one group.

    :param known: the facts by kind.
    :param unknown: definitions whose present facts could not be read yet, with the reason.
    """

    known: dict[str, KindState] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    synced: bool = False


class _Opener(Protocol):
    def informer(self, resource: Resource, *, projection: Projection = ...) -> Informer: ...
    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None: ...
    def kind_changed(self, qualified: str) -> None: ...


class Kinds:
    """Knows the defined kinds and reports changes of them. All questions are answered without waiting."""

    def __init__(self, cache: _Opener, client: Client, *, rng: Random) -> None:
        self._cache = cache
        self._client = client
        self._rng = rng
        self._informer: Informer | None = None
        self._groups: dict[str, _Group] = {}
        self._facts: dict[str, KindState] = {}
        self._errors: dict[str, str] = {}
        self._reading: set[str] = set()
        self._few = asyncio.Semaphore(_AT_ONCE)
        self._listeners: tuple[Callable[[str], None], ...] = ()
        self._settled = asyncio.Event()

    @property
    def synced(self) -> bool:
        """Whether the metadata of all definitions is listed, and each one of a watched group was read (or refused)."""
        return self._settled.is_set()

    async def wait_synced(self) -> None:
        """Wait until :attr:`synced`."""
        self._open()
        await self._settled.wait()

    def watch_group(self, group: str) -> None:
        """Keep the definitions of this group current from now on. A second call changes nothing."""
        if group in self._groups:
            return
        self._groups[group] = _Group()
        informer = self._open()
        for obj in informer.by_index(_GROUP_INDEX, group):
            self._need(obj.head)
        self._refresh(group)

    def lookup(self, gk: GroupKind) -> KindState | KindAbsent | KindUnknown:
        """Return the state of a kind of a watched group."""
        group = self._groups.get(gk.group)
        if group is None:
            return KindUnknown(f"the definitions of {gk.group} are not watched")
        state = group.known.get(gk.kind)
        if state is not None:
            return state
        return self._unknown(group) or KindAbsent()

    def in_group(self, group: str) -> tuple[KindState, ...] | KindUnknown:
        """Return all kinds of a watched group, by name; unknown unless every definition is known."""
        known = self._groups.get(group)
        if known is None:
            return KindUnknown(f"the definitions of {group} are not watched")
        return self._unknown(known) or tuple(sorted(known.known.values(), key=lambda state: state.kind))

    def subscribe(self, fn: Callable[[str], None]) -> Subscription:
        """Call ``fn(group)`` whenever the state of a kind of that group may have changed.

        It is not called for what is known already.
        """

        def listener(group: str) -> None:
            fn(group)

        self._listeners = (*self._listeners, listener)

        def close() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

        return Subscription(close)

    def _open(self) -> Informer:
        if self._informer is None:
            informer = self._informer = self._cache.informer(CRDS, projection=METADATA)
            informer.add_index(_GROUP_INDEX, _group_of)
            informer.subscribe(self._changed)
            informer.on_status(lambda _: self._refresh_all())
            self._settle()
        return self._informer

    def _unknown(self, group: _Group) -> KindUnknown | None:
        if not group.synced:
            assert self._informer is not None
            error = self._informer.status.last_error
            return KindUnknown("CustomResourceDefinitions are not listed yet" + (f": {error}" if error else ""))
        for name, why in group.unknown.items():
            return KindUnknown(f"CustomResourceDefinition {name} {why}")
        return None

    def _changed(self, change: Change) -> None:
        name = change.head.name
        # Informers that wait for the resource to be served try again, also those of groups that nobody watches here.
        self._cache.kind_changed(name)
        group = name.partition(".")[2]
        if group not in self._groups:
            return
        if change.type is ChangeType.DELETED:
            self._facts.pop(name, None)
            self._errors.pop(name, None)
        else:
            self._need(change.head)
        self._refresh(group)

    def _need(self, head: Head) -> None:
        if head.name not in self._reading and not self._current(head):
            self._reading.add(head.name)
            self._cache.spawn(self._read(head.name), f"definition {head.name}")

    def _current(self, head: Head) -> bool:
        facts = self._facts.get(head.name)
        return facts is not None and facts.uid == head.uid and facts.version >= head.version

    async def _read(self, name: str) -> None:
        """Read one definition until its facts are current or it is gone."""
        assert self._informer is not None
        group = name.partition(".")[2]
        key = Key("", name)
        attempts = 0
        try:
            while (wanted := self._informer.get(key)) is not None and not self._current(wanted.head):
                if attempts:
                    await asyncio.sleep(_RETRY.delay(attempts, self._rng))
                attempts += 1
                try:
                    async with self._few:
                        obj = await self._client.get(CRDS, key)
                    facts = read_definition(obj)
                except NotFoundError:
                    # It is gone; the watch will say so, and until then nothing is known of it.
                    continue
                except (ApiError, TransportError, ProtocolError) as error:
                    if name not in self._errors:
                        _log.warning("cannot read a definition", definition=name, error=str(error))
                    self._errors[name] = f"cannot be read: {error}"
                else:
                    if self._informer.get(key) is not None:
                        self._facts[name] = facts
                    self._errors.pop(name, None)
                self._refresh(group)
        finally:
            self._reading.discard(name)

    def _refresh_all(self) -> None:
        for group in list(self._groups):
            self._refresh(group)
        self._settle()

    def _refresh(self, name: str) -> None:
        """Compute the knowledge of a group, and call the listeners if it differs from before."""
        informer = self._informer
        assert informer is not None
        fresh = _Group(synced=informer.synced)
        for obj in informer.by_index(_GROUP_INDEX, name):
            facts = self._facts.get(obj.head.name)
            if obj.head.name in self._errors:
                fresh.unknown[obj.head.name] = self._errors[obj.head.name]
            elif facts is None or facts.uid != obj.head.uid:
                fresh.unknown[obj.head.name] = "is being read"
            else:
                # While a newer version is being read, which takes milliseconds, the facts before it stand.
                rival = fresh.known.get(facts.kind)
                if rival is None or facts.established > rival.established:
                    fresh.known[facts.kind] = facts
        before = self._groups[name]
        self._groups[name] = fresh
        self._settle()
        if (before.known, before.unknown.keys(), before.synced) != (fresh.known, fresh.unknown.keys(), fresh.synced):
            for listener in self._listeners:
                try:
                    listener(name)
                except Exception as error:
                    # A listener's mistake is its own: the facts, and the other listeners, are not affected.
                    _log.error("failed in a listener for kinds", group=name, exception=traceback_text(error))

    def _settle(self) -> None:
        informer = self._informer
        waiting = any(definition not in self._errors for group in self._groups.values() for definition in group.unknown)
        if informer is not None and informer.synced and not waiting:
            self._settled.set()
        else:
            self._settled.clear()


def _group_of(change: Change) -> tuple[str]:
    return (change.head.name.partition(".")[2],)
