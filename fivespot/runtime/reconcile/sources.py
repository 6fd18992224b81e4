"""Sources: where a controller's changes come from, and whether each has told all that is there.

A source exists from the moment it is declared, so that a standby holds warm caches and knows whether it is ready. It is
*attached* while the controller runs: only then do its changes become keys, beginning with everything that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fivespot.runtime.cache import InformerStatus, KindAbsent, KindState, KindUnknown
from fivespot.runtime.objects import Change, ChangeType, GroupKind, Object, Resource

__all__ = ["Closing", "InformerSource", "KindSource", "Source", "SourceInformer", "SourceKinds"]

Deliver = Callable[[Change], None]
Poke = Callable[[], None]


class Closing(Protocol):
    """A subscription."""

    def close(self) -> None: ...


class SourceInformer(Protocol):
    """What a source needs of an :class:`~fivespot.runtime.cache.Informer`."""

    @property
    def synced(self) -> bool: ...

    @property
    def status(self) -> InformerStatus: ...

    def subscribe(self, handler: Deliver, /, *, on_synced: Callable[[], None] | None = None) -> Closing: ...

    def on_status(self, fn: Callable[[InformerStatus], None], /) -> Closing: ...

    def list(self) -> list[Object]: ...

    def release(self) -> None: ...


class SourceKinds(Protocol):
    """What a source needs of :class:`~fivespot.runtime.cache.Kinds`."""

    def watch_group(self, group: str, /) -> None: ...

    def lookup(self, gk: GroupKind, /) -> KindState | KindAbsent | KindUnknown: ...

    def subscribe(self, fn: Callable[[str], None], /) -> Closing: ...


class Source(Protocol):
    """One source of a controller."""

    @property
    def gate(self) -> bool:
        """Whether the controller's start and readiness wait for it."""
        ...

    @property
    def told(self) -> bool:
        """Whether everything that was there when it was attached has become keys."""
        ...

    @property
    def problem(self) -> str:
        """Why its objects are not all known; "" if they are."""
        ...

    @property
    def status(self) -> InformerStatus | None:
        """How its informer is doing; None while it has none."""
        ...

    def attach(self) -> None:
        """Begin to deliver, starting with what is there."""
        ...

    def detach(self) -> None:
        """Stop delivering."""
        ...

    def close(self) -> None:
        """Give up the source; the controller no longer has it."""
        ...


class _Feed:
    """One informer, subscribed while attached."""

    __slots__ = ("_deliver", "_on_told", "_subscription", "informer", "told")

    def __init__(self, informer: SourceInformer, deliver: Deliver, on_told: Poke) -> None:
        self.informer = informer
        self.told = False
        self._deliver = deliver
        self._on_told = on_told
        self._subscription: Closing | None = None

    @property
    def problem(self) -> str:
        if self.informer.synced:
            return ""
        status = self.informer.status
        return f"{status.resource} is not synced" + (f": {status.last_error}" if status.last_error else "")

    def attach(self) -> None:
        if self._subscription is None:
            self.told = False
            self._subscription = self.informer.subscribe(self._deliver, on_synced=self._all_told)

    def detach(self) -> None:
        subscription, self._subscription = self._subscription, None
        self.told = False
        if subscription is not None:
            subscription.close()

    def _all_told(self) -> None:
        self.told = True
        self._on_told()


class InformerSource:
    """A source of a kind that is known to be served; it borrows the informer and never releases it.

    :param deliver: gets every change while attached.
    :param poke: called when :attr:`told` or :attr:`problem` may have changed.
    :param on_close: called once by :meth:`close`.
    """

    def __init__(
        self, informer: SourceInformer, deliver: Deliver, poke: Poke, on_close: Callable[[Source], None], *, gate: bool
    ) -> None:
        self.gate = gate
        self._feed = _Feed(informer, deliver, poke)
        self._on_close = on_close
        self._status = informer.on_status(lambda _: poke())

    @property
    def told(self) -> bool:
        return self._feed.told

    @property
    def problem(self) -> str:
        return self._feed.problem

    @property
    def status(self) -> InformerStatus | None:
        return self._feed.informer.status

    def attach(self) -> None:
        self._feed.attach()

    def detach(self) -> None:
        self._feed.detach()

    def close(self) -> None:
        self.detach()
        self._status.close()
        self._on_close(self)


class KindSource:
    """A source of a kind whose CustomResourceDefinition may come and go.

    While the definition is known to be absent (or to serve nothing) the source counts as synced and empty. When the
    kind appears an informer is opened; when it goes, or the version that is read is no longer served or wanted, the
    informer is released and everything it held is delivered as deleted with ``final_state_unknown``. While nothing is
    known of the definition the source is not synced, and an informer that runs goes on: a failure to read is no
    verdict.

    :ivar informer: what readers read from; None when there is none. See :attr:`problem` for whether that means empty.
    :param required: an absent kind is a problem, for the one kind that a controller cannot be without.
    :param on_change: called when the informer was opened, has told everything, or was released.
    :param version: the served version to read, or "" for the stored one; asked again whenever the definition changes.
    """

    def __init__(
        self,
        kinds: SourceKinds,
        group_kind: GroupKind,
        open_: Callable[[Resource], SourceInformer],
        deliver: Deliver,
        poke: Poke,
        on_close: Callable[[Source], None],
        *,
        gate: bool,
        required: bool,
        on_change: Callable[[], None] | None,
        version: Callable[[KindState], str] | None = None,
    ) -> None:
        self.gate = gate
        self._kinds = kinds
        self._version = version
        self._group_kind = group_kind
        self._open = open_
        self._deliver = deliver
        self._poke = poke
        self._on_close = on_close
        self._required = required
        self._on_change: Callable[[], None] | None = None
        self._feed: _Feed | None = None
        self._resource: Resource | None = None
        self._status: Closing | None = None
        self._attached = False
        self._facts = kinds.subscribe(self._facts_changed)
        kinds.watch_group(group_kind.group)
        self._refresh()
        # Not earlier: whoever is called back wants to look at this source, which the caller does not have yet.
        self._on_change = on_change

    @property
    def informer(self) -> SourceInformer | None:
        return self._feed.informer if self._feed is not None else None

    @property
    def told(self) -> bool:
        return self._feed.told if self._feed is not None else not self.problem

    @property
    def problem(self) -> str:
        if self._feed is not None:
            return self._feed.problem
        facts = self._kinds.lookup(self._group_kind)
        if isinstance(facts, KindUnknown):
            return f"{self._group_kind} is unknown: {facts.why}"
        if self._required:
            return f"{self._group_kind} {facts.problem if isinstance(facts, KindState) else 'is not installed'}"
        return ""

    @property
    def status(self) -> InformerStatus | None:
        return self._feed.informer.status if self._feed is not None else None

    def attach(self) -> None:
        self._attached = True
        if self._feed is not None:
            self._feed.attach()

    def detach(self) -> None:
        self._attached = False
        if self._feed is not None:
            self._feed.detach()

    def close(self) -> None:
        self.detach()
        self._facts.close()
        self._release()
        self._on_close(self)

    def _facts_changed(self, group: str) -> None:
        if group == self._group_kind.group:
            self._refresh()
            self._poke()

    def _refresh(self) -> None:
        facts = self._kinds.lookup(self._group_kind)
        if isinstance(facts, KindUnknown):
            return
        # Objects of a definition that is being deleted still exist, and go one by one.
        readable = isinstance(facts, KindState) and facts.established and bool(facts.served)
        read = self._resource
        wanted = self._version(facts) if self._version is not None and isinstance(facts, KindState) else ""
        if read is not None and not (
            isinstance(facts, KindState)
            and readable
            and read.version in facts.served
            and read.version == (wanted or read.version)
            and read.plural == facts.plural
        ):
            self._release()
        if self._feed is None and isinstance(facts, KindState) and readable:
            self._start(facts.resource(wanted or None))

    def _start(self, resource: Resource) -> None:
        informer = self._open(resource)
        self._feed = _Feed(informer, self._deliver, self._changed)
        self._resource = informer.status.resource
        self._status = informer.on_status(lambda _: self._poke())
        if self._attached:
            self._feed.attach()
        self._changed()

    def _release(self) -> None:
        feed, self._feed = self._feed, None
        status, self._status = self._status, None
        self._resource = None
        if feed is None:
            return
        held = feed.informer.list()
        feed.detach()
        if status is not None:
            status.close()
        feed.informer.release()
        if self._attached:
            for obj in held:
                self._deliver(Change(ChangeType.DELETED, obj, obj, final_state_unknown=True))
        self._changed()

    def _changed(self) -> None:
        self._poke()
        if self._on_change is not None:
            self._on_change()
