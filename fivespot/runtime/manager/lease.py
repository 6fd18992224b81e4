"""Leader election by a Lease (coordination.k8s.io/v1), as pure code.

Safety rests on three rules. A leader counts its deadline from *before* it sent the renewal that succeeded, on a clock
that continues in suspend, so it stops no later than others could start. A candidate counts the holder's lease duration
from when it first *observed* the holder's latest renewal, on its own monotonic clock, and never compares the clocks
written in the record. Every write carries the resourceVersion that was read, so a write that arrives late is refused.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fivespot.runtime.objects import Object, rfc3339_micro

__all__ = ["Candidate", "ElectionTimings", "Lease", "claim", "read_lease", "released"]


@dataclass(frozen=True, slots=True)
class ElectionTimings:
    """Durations of an election in seconds; the defaults are those of client-go.

    :param lease_duration: how long others wait after the last renewal that they observed.
    :param renew_deadline: how long a leader continues without a successful renewal, counted from before its send.
    :param retry_period: between the sends of two attempts, of a candidate and of a leader.
    :param jitter: a candidate waits up to this fraction longer, so that candidates do not act in step.
    :raises ValueError: the values cannot keep two leaders apart.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration < math.inf:
            raise ValueError(
                "leader election needs lease duration > renew deadline > retry period > 0, "
                f"got {self.lease_duration:g}, {self.renew_deadline:g}, {self.retry_period:g} seconds"
            )

    @property
    def request_timeout(self) -> float:
        """Limit of one write: a request that hangs leaves time for a second one before the deadline."""
        return self.renew_deadline / 2

    @property
    def read_timeout(self) -> float:
        """Limit of one read by a candidate, on which no deadline depends."""
        return self.renew_deadline

    @property
    def contact_limit(self) -> float:
        """Return the longest time without a successful read or renewal after which a process is still ready."""
        return 4 * self.lease_duration


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of a Lease object.

    :param duration: seconds that the *holder* asks others to wait; None when absent.
    :param members: the reconcilers of the holder; None when absent.
    """

    holder: str
    duration: float | None
    renewed: str
    acquired: str
    transitions: int
    members: frozenset[str] | None
    source: Object

    @property
    def signature(self) -> tuple[object, ...]:
        """The fields that change with every renewal. A changed label in the metadata is not a renewal."""
        return (self.holder, self.renewed, self.acquired, self.transitions, self.duration)


def read_lease(obj: Object, annotation: str) -> Lease:
    """Read a Lease; fields of the wrong type count as absent."""
    body = obj.decode()
    spec = body.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    duration = _count(spec.get("leaseDurationSeconds"))
    names = obj.head.annotations.get(annotation)
    return Lease(
        holder=_text(spec.get("holderIdentity")),
        duration=float(duration) if duration > 0 else None,
        renewed=_text(spec.get("renewTime")),
        acquired=_text(spec.get("acquireTime")),
        transitions=_count(spec.get("leaseTransitions")),
        members=None if names is None else frozenset(name.strip() for name in names.split(",") if name.strip()),
        source=obj,
    )


def claim(
    lease: Lease | None,
    *,
    name: str,
    namespace: str,
    identity: str,
    members: Iterable[str],
    annotation: str,
    duration: float,
    now: datetime,
) -> dict[str, Any]:
    """The object to write to acquire or renew the lease. Fields of other writers are kept."""
    body = _body(lease, name, namespace)
    spec = body["spec"]
    stamp = rfc3339_micro(now)
    renewal = lease is not None and lease.holder == identity
    spec["holderIdentity"] = identity
    spec["leaseDurationSeconds"] = math.ceil(duration)
    spec["renewTime"] = stamp
    if not renewal or not spec.get("acquireTime"):
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = lease.transitions + (not renewal) if lease is not None else 0
    body["metadata"].setdefault("annotations", {})[annotation] = ",".join(sorted(members))
    return body


def released(lease: Lease, *, name: str, namespace: str, now: datetime) -> dict[str, Any]:
    """The object to write to release the lease: without a holder, so that others need not wait."""
    body = _body(lease, name, namespace)
    body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": rfc3339_micro(now)}
    return body


class Candidate:
    """One process's view of an election. Instants are arguments; no method waits.

    A record in this process's name counts as ours only if *this process* wrote it, which its renewal time shows.
    Otherwise it was written before a restart of the pod or by another process with the same name, and is respected
    like that of any other holder.

    :ivar lead_until: until when no other process can acquire the lease, on the clock of :meth:`Clock.boottime`.
    """

    def __init__(self, identity: str, members: Iterable[str], timings: ElectionTimings) -> None:
        self.identity = identity
        self.members = frozenset(members)
        self.timings = timings
        self.lease: Lease | None = None
        self.lead_until = -math.inf
        self._seen_at = -math.inf
        self._vanished_until = -math.inf
        self._holder_alive = False
        self._attempts: dict[str, float] = {}

    def observe(self, lease: Lease | None, at: float) -> None:
        """Take the record as read; ``at`` is the monotonic instant at which the answer was complete."""
        before = self.lease
        self.lease = lease
        if lease is None:
            if before is not None and before.holder and not self._wrote(before):
                # The holder does not know yet that its Lease was deleted, and leads until its deadline.
                self._vanished_until = at + (before.duration or self.timings.lease_duration)
            self._holder_alive = False
            return
        self._vanished_until = -math.inf
        if before is None or before.signature != lease.signature:
            self._seen_at = at
            self._holder_alive = before is not None and before.holder == lease.holder
        sent_at = self._attempts.get(lease.renewed)
        if lease.holder == self.identity and sent_at is not None:
            # A write whose answer was lost did arrive: it counts from before its send.
            self._confirm(lease.renewed, sent_at)

    def sent(self, renewed: str, at: float) -> None:
        """A claim with this renewal time is about to be sent; ``at`` is an instant of :meth:`Clock.boottime`."""
        self._attempts[renewed] = at

    def confirmed(self, lease: Lease, at: float) -> None:
        """A claim succeeded; ``at`` is a monotonic instant."""
        self.observe(lease, at)

    def leads(self, at: float) -> bool:
        """Whether this process holds the lease and its deadline is not over at an instant of :meth:`Clock.boottime`."""
        return self.ours and at < self.lead_until

    @property
    def ours(self) -> bool:
        """Whether the record, as last observed, was written by this process."""
        return self.lease is not None and self._wrote(self.lease)

    @property
    def claimed(self) -> bool:
        """Whether a write of this process may be the current record."""
        return bool(self._attempts)

    def may_claim_at(self) -> float:
        """The monotonic instant from which an unchanged record may be claimed; in the past when it may be now."""
        lease = self.lease
        if lease is None:
            return self._vanished_until
        if not lease.holder or self.ours:
            return -math.inf
        return self._seen_at + (lease.duration or self.timings.lease_duration)

    @property
    def conflicting_holder(self) -> Lease | None:
        """The record of a live holder that shares no reconciler with this process: two deployments share the lease.

        Live means that a renewal was observed to follow another; the record of a deployment that was removed is
        taken over.
        """
        lease = self.lease
        if lease is None or not lease.holder or self.ours or not self._holder_alive:
            return None
        if lease.members is None or lease.members & self.members or not self.members:
            return None
        return lease

    def forget(self) -> None:
        """Treat no record as ours any more."""
        self._attempts.clear()
        self.lead_until = -math.inf

    def _wrote(self, lease: Lease) -> bool:
        return lease.holder == self.identity and lease.renewed in self._attempts

    def _confirm(self, renewed: str, sent_at: float) -> None:
        # Older attempts can no longer succeed: the version they were based on is gone.
        self._attempts = {renewed: sent_at}
        self.lead_until = sent_at + self.timings.renew_deadline


def _body(lease: Lease | None, name: str, namespace: str) -> dict[str, Any]:
    body = copy.deepcopy(lease.source.decode()) if lease is not None else {}
    metadata = body.setdefault("metadata", {})
    metadata |= {"name": name, "namespace": namespace}
    metadata.pop("managedFields", None)
    if not isinstance(body.get("spec"), dict):
        body["spec"] = {}
    return {**body, "apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
