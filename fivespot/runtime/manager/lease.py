"""The rules of leader election by a Lease (coordination.k8s.io/v1), as pure code.

Safety rests on three things. A leader counts its deadline from *before* it sent the renewal that succeeded, so it stops
no later than others could begin to count. A candidate counts the holder's lease duration from when it first *saw* the
holder's latest renewal, on its own monotonic clock, and never compares the clocks written in the record. Every write
carries the resourceVersion that was read, so a write that arrives late is refused.
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
    """Seconds that govern an election; the defaults are those of client-go.

    :param lease_duration: how long others wait after the last renewal they saw.
    :param renew_deadline: how long a leader goes on without a successful renewal, counted from before its send.
    :param retry_period: between two tries, of a candidate and of a leader alike.
    :param jitter: a candidate waits up to this share longer, so that candidates do not march in step.
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
        """Limit of one request: a hung one leaves time for a second before the deadline."""
        return self.renew_deadline / 2

    @property
    def contact_limit(self) -> float:
        """How long a process may go without a successful read or renewal before it counts as cut off."""
        return 4 * self.lease_duration


@dataclass(frozen=True, slots=True)
class Lease:
    """What a Lease object says.

    :param duration: seconds the *holder* asked others to wait; None when the record does not say.
    :param members: the reconcilers of the holder; None when the record does not say.
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
        """What changes with every renewal. Metadata is left out: a label set by somebody is no sign of life."""
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
    """The object to write in order to take or renew the lease. Fields of others are kept."""
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
    """The object to write in order to let go: nobody holds it, and whoever sees it need not wait."""
    body = _body(lease, name, namespace)
    body["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": rfc3339_micro(now)}
    return body


class Candidate:
    """One process's view of an election; every method is told the instant, none waits.

    A record in our own name counts as ours only if *this process* wrote it, which the renewal time in it shows:
    another one belongs to an earlier life of the pod or to a twin that was given the same name, and is waited for like
    anybody's.
    """

    def __init__(self, identity: str, members: Iterable[str], timings: ElectionTimings) -> None:
        self.identity = identity
        self.members = frozenset(members)
        self.timings = timings
        self.lease: Lease | None = None
        self.lead_until = -math.inf
        self._seen_at = -math.inf
        self._holder_alive = False
        self._attempts: dict[str, float] = {}

    def observe(self, lease: Lease | None, at: float) -> None:
        """The record as read; ``at`` is when the answer was there."""
        before = self.lease
        self.lease = lease
        if lease is None:
            self._holder_alive = False
            return
        if before is None or before.signature != lease.signature:
            self._seen_at = at
            self._holder_alive = before is not None and before.holder == lease.holder
        sent_at = self._attempts.get(lease.renewed)
        if lease.holder == self.identity and sent_at is not None:
            # A write whose answer was lost has arrived after all: it counts from before its send.
            self._confirm(lease.renewed, sent_at)

    def sent(self, renewed: str, at: float) -> None:
        """A claim with this renewal time is about to be sent."""
        self._attempts[renewed] = at

    def confirmed(self, lease: Lease, at: float) -> None:
        """A claim was answered with success."""
        self.observe(lease, at)

    def leads(self, at: float) -> bool:
        """Whether this process holds the lease and its deadline has not passed."""
        return self.ours and at < self.lead_until

    @property
    def ours(self) -> bool:
        """Whether the record, as last seen, was written by this process."""
        lease = self.lease
        return lease is not None and lease.holder == self.identity and lease.renewed in self._attempts

    @property
    def claimed(self) -> bool:
        """Whether a write of ours may be what the record says now."""
        return bool(self._attempts)

    def may_claim_at(self) -> float:
        """The instant from which the record, if it stays as it is, may be taken; in the past when it may be now."""
        lease = self.lease
        if lease is None or not lease.holder or self.ours:
            return -math.inf
        return self._seen_at + (lease.duration or self.timings.lease_duration)

    @property
    def stranger(self) -> Lease | None:
        """The record of a holder that is alive and shares no reconciler with us: the lease is shared by mistake.

        Alive means that a renewal was seen to follow another; a record left behind by a dead deployment is no reason
        to give up.
        """
        lease = self.lease
        if lease is None or not lease.holder or self.ours or not self._holder_alive:
            return None
        if lease.members is None or lease.members & self.members or not self.members:
            return None
        return lease

    def forget(self) -> None:
        """Nothing that this process wrote is to be claimed again."""
        self._attempts.clear()
        self.lead_until = -math.inf

    def _confirm(self, renewed: str, sent_at: float) -> None:
        # Older attempts can no longer arrive: the version they were based on is gone.
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
