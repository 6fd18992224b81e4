"""Sources of a controller: informers whose changes become keys.

A source exists from the moment it is declared, so that a standby keeps its caches warm and reports readiness. It is
*attached* while the controller runs: only then do its changes become keys, beginning with everything in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fivespot.runtime.cache import InformerStatus
from fivespot.runtime.objects import Change, ChangeType, GroupKind, KindAbsent, KindState, KindUnknown, Object, Resource

__all__ = ["Closable", "InformerSource", "KindSource", "Source", "SourceInformer", "SourceKinds"]

Deliver = Callable[[Change], None]
Callback = Callable[[], None]


class Closable(Protocol):
    """A subscription, ended by :meth:`close`."""

    def close(self) -> None: ...


class SourceInformer(Protocol):
    """The part of an :class:`~fivespot.runtime.cache.Informer` that a source uses."""

    @property
    def synced(self) -> bool: ...

    @property
    def status(self) -> InformerStatus: ...

    def subscribe(self, handler: Deliver, /, *, on_synced: Callable[[], None] | None = None) -> Closable: ...

    def on_status(self, fn: Callable[[InformerStatus], None], /) -> Closable: ...

    def list(self) -> list[Object]: ...

    def release(self) -> None: ...


class SourceKinds(Protocol):
    """The part of :class:`~fivespot.runtime.cache.Kinds` that a source uses."""

    def watch_group(self, group: str, /) -> None: ...

    def lookup(self, gk: GroupKind, /) -> KindState | KindAbsent | KindUnknown: ...

    def subscribe(self, fn: Callable[[str], None], /) -> Closable: ...


class Source(Protocol):
    """One source of a controller."""

    @property
    def gate(self) -> bool:
        """Whether the controller's start and readiness wait for it."""
        ...

    @property
    def delivered(self) -> bool:
        """Whether every object present when the source was attached has been enqueued."""
        ...

    @property
    def not_ready_reason(self) -> str:
        """The reason why its cache is incomplete; "" when it is synced."""
        ...

    @property
    def kind_missing(self) -> bool:
        """Whether it waits for a kind that is known not to be installed."""
        ...

    @property
    def status(self) -> InformerStatus | None:
        """Status of its informer; None while there is none."""
        ...

    def attach(self) -> None:
        """Start delivering changes, beginning with the objects in the cache."""
        ...

    def detach(self) -> None:
        """Stop delivering."""
        ...

    def close(self) -> None:
        """Remove the source from its controller."""
        ...


class _Feed:
    """An informer that is subscribed to while attached."""

    __slots__ = ("_deliver", "_on_delivered", "_subscription", "delivered", "informer")

    def __init__(self, informer: SourceInformer, deliver: Deliver, on_delivered: Callback) -> None:
        self.informer = informer
        self.delivered = False
        self._deliver = deliver
        self._on_delivered = on_delivered
        self._subscription: Closable | None = None

    @property
    def not_ready_reason(self) -> str:
        if self.informer.synced:
            return ""
        status = self.informer.status
        return f"{status.resource} is not synced" + (f": {status.last_error}" if status.last_error else "")

    def attach(self) -> None:
        if self._subscription is None:
            self.delivered = False
            self._subscription = self.informer.subscribe(self._deliver, on_synced=self._all_delivered)

    def detach(self) -> None:
        subscription, self._subscription = self._subscription, None
        self.delivered = False
        if subscription is not None:
            subscription.close()

    def _all_delivered(self) -> None:
        self.delivered = True
        self._on_delivered()


class InformerSource:
    """A source over an informer that its caller owns and releases.

    :param deliver: called with every change while attached.
    :param on_state_change: called when :attr:`delivered` or :attr:`not_ready_reason` may have changed.
    :param on_close: called by :meth:`close`.
    """

    def __init__(
        self,
        informer: SourceInformer,
        deliver: Deliver,
        on_state_change: Callback,
        on_close: Callable[[Source], None],
        *,
        gate: bool,
    ) -> None:
        self.gate = gate
        self._feed = _Feed(informer, deliver, on_state_change)
        self._on_close = on_close
        self._status = informer.on_status(lambda _: on_state_change())

    @property
    def delivered(self) -> bool:
        return self._feed.delivered

    @property
    def not_ready_reason(self) -> str:
        return self._feed.not_ready_reason

    @property
    def kind_missing(self) -> bool:
        return False

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

    While the definition is known to be absent (or serves no version) the source counts as synced and empty. When the
    kind is installed an informer is opened. When it is removed, or the version being read is no longer served or
    wanted, the informer is released and everything it held is delivered as deleted with ``final_state_unknown``. While
    the definition cannot be read the source is not synced, and a running informer is kept.

    :ivar informer: the open informer, or None. :attr:`not_ready_reason` tells whether None means that there are no
        objects.
    :param required: an absent kind makes the source not ready, for the kind that a controller cannot work without.
    :param on_change: called after the informer is opened, has delivered every object, or is released.
    :param version: the served version to read, or "" for the stored one; asked again whenever the definition changes.
    """

    def __init__(
        self,
        kinds: SourceKinds,
        group_kind: GroupKind,
        open_: Callable[[Resource], SourceInformer],
        deliver: Deliver,
        on_state_change: Callback,
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
        self._on_state_change = on_state_change
        self._on_close = on_close
        self._required = required
        self._on_change: Callable[[], None] | None = None
        self._feed: _Feed | None = None
        self._resource: Resource | None = None
        self._status: Closable | None = None
        self._attached = False
        self._facts = kinds.subscribe(self._facts_changed)
        kinds.watch_group(group_kind.group)
        self._refresh()
        # Set last: the callback may look at this source, which its creator does not hold yet during construction.
        self._on_change = on_change

    @property
    def informer(self) -> SourceInformer | None:
        return self._feed.informer if self._feed is not None else None

    @property
    def delivered(self) -> bool:
        return self._feed.delivered if self._feed is not None else not self.not_ready_reason

    @property
    def not_ready_reason(self) -> str:
        if self._feed is not None:
            return self._feed.not_ready_reason
        facts = self._kinds.lookup(self._group_kind)
        if isinstance(facts, KindUnknown):
            return f"{self._group_kind} is unknown: {facts.why}"
        if self._required:
            return f"{self._group_kind} {facts.unusable_reason if isinstance(facts, KindState) else 'is not installed'}"
        return ""

    @property
    def kind_missing(self) -> bool:
        known = not isinstance(self._kinds.lookup(self._group_kind), KindUnknown)
        return self._required and self._feed is None and known

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
            self._on_state_change()

    def _refresh(self) -> None:
        facts = self._kinds.lookup(self._group_kind)
        if isinstance(facts, KindUnknown):
            return
        # Objects of a definition that is being deleted still exist until they are removed one by one.
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
        self._status = informer.on_status(lambda _: self._on_state_change())
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
        self._on_state_change()
        if self._on_change is not None:
            self._on_change()
