"""Leader election: runs :mod:`.lease` against the API server, and owns the work that only the leader does."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.errors import (
    AlreadyExistsError,
    ApiError,
    ConfigError,
    ConflictError,
    NotFoundError,
    ProtocolError,
    StopError,
    TransportError,
)
from fivespot.runtime.objects import Key, Object, Resource, rfc3339_micro
from fivespot.runtime.telemetry.logs import LogLimiter

from .leader_gate import HEARTBEAT, LeaderGate, Term
from .lease import Candidate, ElectionTimings, claim, read_lease, released
from .runnable_group import RunnableGroup

__all__ = ["LEASES", "Election", "ElectionSettings", "LeaderWork", "LeaseClient"]

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

LeaderWork = Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
"""Named coroutine functions that run while this process leads, until they are cancelled."""

_EXPECTED = (ApiError, TransportError, ProtocolError, TimeoutError)
"""Errors of a server that is down, slow or refuses the request."""

_LOG_INTERVAL = 60.0

_NO_TIME = 0.001
"""Seconds before the deadline that are too few for another attempt."""

_RELEASE_RETRY = 0.05
"""Seconds between two attempts to release the lease while a renewal is in progress."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The Lease to stand for, and the identity of this process.

    :param identity: ``holderIdentity``; unique among the candidates.
    :param annotation: name of the annotation on the Lease that lists the holder's reconcilers.
    :param members: the reconcilers of this process.
    """

    namespace: str
    name: str
    identity: str
    annotation: str
    members: tuple[str, ...] = ()
    timings: ElectionTimings = field(default_factory=ElectionTimings)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class _Work:
    run: Callable[[], Coroutine[Any, Any, None]]
    may_end: bool = False


@dataclass(frozen=True, slots=True)
class _Refused:
    """Claims of a Lease that nobody holds have failed.

    :param since: time of the first, on the monotonic clock.
    :param why: the last error.
    """

    since: float
    why: str


class LeaseClient(Protocol):
    """The client verbs that an election uses on its Lease."""

    async def get(self, resource: Resource, key: Key) -> Object: ...

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object: ...

    async def replace(self, resource: Resource, body: dict[str, Any]) -> Object: ...


class Election:
    """Stands for election until cancelled, and runs work while this process leads.

    Guaranteed: work is cancelled before another process can acquire the lease, as long as no candidate's clock runs
    faster than the leader's by more than lease duration over renew deadline (1.5 by default); a process that was paused
    for longer sends no write through its gate when it resumes; and this process does not stand again before its work
    has ended.

    Not guaranteed: that the work has ended when another process becomes leader, because cancellation may take the
    difference of the two durations (5 s by default); nor that a request sent in time does not arrive later. No election
    can promise that, so every leader-only write needs a precondition: uid, resourceVersion or a fixed name.

    :param client: sends the requests for the Lease; must not be gated itself.
    :param gate: opened for the writes of leader-only work while this process leads.
    :param grace: seconds that leader-only work may take to stop. Beyond that the election ends with
        :class:`StopError` and the process has to exit, because it can no longer prove that there is one leader.
    :param on_lease: called with the Lease whenever it was read or written.
    :param on_change: called with True when this process becomes leader and with False when it stops leading.
    :param on_silence: called when the server has not answered for the renew deadline, once until it answers again:
        connections may be dead without an error.
    """

    def __init__(
        self,
        client: LeaseClient,
        settings: ElectionSettings,
        *,
        clock: Clock,
        rng: Random,
        gate: LeaderGate | None = None,
        grace: float = 30.0,
        on_lease: Callable[[Object], None] = lambda lease: None,
        on_change: Callable[[bool], None] = lambda leading: None,
        on_silence: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._timings = settings.timings
        self._clock = clock
        self._rng = rng
        self._gate = gate
        self._grace = grace
        self._on_lease = on_lease
        self._on_change = on_change
        self._on_silence = on_silence
        self._candidate = Candidate(settings.identity, settings.members, settings.timings)
        self._work: dict[str, _Work] = {}
        self._group: RunnableGroup | None = None
        self._leading = False
        self._contact: float | None = None
        self._refused: _Refused | None = None
        self._started: float | None = None
        self._answered: float | None = None
        self._silent = False
        self._log_limiter = LogLimiter(_LOG_INTERVAL, size=64)
        self._holder = ""

    @property
    def leading(self) -> bool:
        return self._leading

    def not_ready_reason(self) -> str:
        """A readiness check: a standby is ready, a process that cannot read or acquire its Lease for long is not."""
        now, limit = self._clock.monotonic(), self._timings.contact_limit
        since = self._contact if self._contact is not None else self._started
        if since is not None and now - since > limit:
            return f"no successful read of lease {self._settings.key} for {now - since:.0f} s"
        if self._refused is not None and now - self._refused.since > limit:
            seconds = now - self._refused.since
            return f"lease {self._settings.key} cannot be acquired for {seconds:.0f} s: {self._refused.why}"
        return ""

    def add(self, name: str, run: Callable[[], Coroutine[Any, Any, None]], *, may_end: bool = False) -> None:
        """Add work; it starts at once if this process is the leader.

        :param may_end: returning is not a failure; the work runs again in the next term.
        :raises ValueError: the name is taken.
        """
        if name in self._work:
            raise ValueError(f"{name} exists already")
        self._work[name] = _Work(run, may_end)
        if self._group is not None:
            self._group.spawn(name, run, may_end=may_end)

    async def remove(self, name: str) -> None:
        """Stop and forget work; unknown names are ignored."""
        self._work.pop(name, None)
        if self._group is not None:
            await self._group.stop_member(name)

    async def run(self, work: LeaderWork | None = None) -> None:
        """Stand, lead, lose, stand again, until cancelled; then release the lease.

        :param work: is added first.
        :raises ConfigError: the holder of the lease does other work than this process would.
        :raises StopError: work did not stop in time after the lease was lost.
        :raises Exception: the error that ended the work; the lease is released first.
        """
        for name, run in (work or {}).items():
            self.add(name, run)
        self._started = self._answered = self._clock.monotonic()
        try:
            while True:
                await self._acquire()
                await self._lead()
        except StopError:
            # Work that did not stop may still act: nobody may acquire the lease before it expires.
            self._candidate.forget()
            raise
        finally:
            await self._release()

    # Standing ----------------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._timings.read_timeout):
                    await self._read()
                self._check_holder()
                if self._clock.monotonic() < self._candidate.may_claim_at():
                    self._refused = None
                else:
                    async with asyncio.timeout(self._timings.request_timeout):
                        await self._claim()
                    self._refused = None
                    # Not on an earlier claim that turned out to have arrived: its time may be almost over.
                    if self._candidate.leads(self._clock.boottime()):
                        return
            except (ConflictError, NotFoundError) as error:
                # Another process was faster, or the namespace is missing; the next read shows which.
                self._note_refusal(error)
                self._log_failure("the lease could not be acquired", error)
            except _EXPECTED as error:
                self._note_refusal(error)
                self._log_failure("the lease cannot be read or acquired", error)
            await asyncio.sleep(self._timings.retry_period * (1 + self._timings.jitter * self._rng.random()))

    def _note_refusal(self, error: Exception) -> None:
        since = self._refused.since if self._refused is not None else self._clock.monotonic()
        self._refused = _Refused(since, str(error) or type(error).__name__)

    async def _read(self) -> None:
        try:
            obj = await self._client.get(LEASES, self._settings.key)
        except NotFoundError:
            lease = None
        else:
            lease = read_lease(obj, self._settings.annotation)
            self._on_lease(obj)
        now = self._contact = self._note_answer()
        self._candidate.observe(lease, now)

    async def _claim(self) -> None:
        lease, settings = self._candidate.lease, self._settings
        now = self._clock.now()
        body = claim(
            lease,
            name=settings.name,
            namespace=settings.namespace,
            identity=settings.identity,
            members=settings.members,
            annotation=settings.annotation,
            duration=self._timings.lease_duration,
            now=now,
        )
        self._candidate.sent(rfc3339_micro(now), self._clock.boottime())
        if lease is None:
            obj = await self._client.create(LEASES, body, namespace=settings.namespace)
        else:
            obj = await self._client.replace(LEASES, body)
        at = self._contact = self._note_answer()
        self._candidate.confirmed(read_lease(obj, settings.annotation), at)
        self._on_lease(obj)

    def _check_holder(self) -> None:
        """Log the holder of the lease once, and fail when the lease is shared by mistake."""
        other = self._candidate.conflicting_holder
        if other is not None:
            raise ConfigError(
                f"lease {self._settings.key} is held by {other.holder}, which runs {_names(other.members)}, "
                f"while this process runs {_names(self._candidate.members)}: two deployments share a lease by mistake; "
                "give one of them another --lease-name"
            )
        lease = self._candidate.lease
        holder = lease.holder if lease is not None else ""
        if lease is None or not holder or self._candidate.ours or holder == self._holder:
            return
        self._holder = holder
        _log.info("standing by", lease=str(self._settings.key), holder=holder)
        if lease.members != self._candidate.members:
            _log.warning(
                "the holder of the lease does not run the same reconcilers",
                lease=str(self._settings.key),
                holder=holder,
                theirs=_names(lease.members),
                ours=_names(self._candidate.members),
            )

    # Leading -----------------------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        lost, renew_now = asyncio.Event(), asyncio.Event()
        term = Term(self._clock, held_until=self._candidate.lead_until, on_gap=renew_now.set)
        group = RunnableGroup(clock=self._clock, grace=self._grace)
        # Renewal is the first stage, so that it continues while the work stops.
        group.spawn("lease renewal", lambda: self._renew(term, lost, renew_now), may_end=True)
        group.spawn("lease heartbeat", lambda: self._beat(term, lost), may_end=True)
        group.next_stage()
        try:
            if self._gate is not None:
                self._gate.term = term
            self._group = group
            self._change(True)
            for name, work in self._work.items():
                group.spawn(name, work.run, may_end=work.may_end)
            await group.watch(lost)
        finally:
            if lost.is_set():
                # What is not in the kernel yet must not be sent any more. After an orderly stop the work may still
                # write while it winds down, because the Lease is renewed until it has ended.
                term.end()
            self._group = None
            self._change(False)
            try:
                await group.close()
            finally:
                term.end()
                if self._gate is not None:
                    self._gate.term = None
        # An answer within the last request's time means that the connection works, and the reason is another.
        self._check_silence(self._timings.request_timeout)
        _log.warning("lost the lease, work has stopped", lease=str(self._settings.key))

    async def _beat(self, term: Term, lost: asyncio.Event) -> None:
        """Notice pauses of the process early, and step down at once after one that outlasted the hold."""
        while term.beat():  # noqa: ASYNC110 - a clock is watched, which sets no event
            await asyncio.sleep(HEARTBEAT)
        lost.set()

    async def _renew(self, term: Term, lost: asyncio.Event, renew_now: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        deadline: asyncio.TimerHandle | None = None
        due = self._clock.monotonic() + self._timings.retry_period
        try:
            while True:
                left = self._candidate.lead_until - self._clock.boottime()
                if left <= _NO_TIME or not self._candidate.ours:
                    break
                if deadline is not None:
                    deadline.cancel()
                # Independent of the request, which may not even react to its cancellation.
                deadline = loop.call_later(left, lost.set)
                wait = min(max(0.0, due - self._clock.monotonic()), left)
                await _wait_for(renew_now, wait)
                renew_now.clear()
                if self._clock.boottime() >= self._candidate.lead_until:
                    break
                due = self._clock.monotonic() + self._timings.retry_period
                sent_at = self._clock.boottime()
                renewed = await self._try_renewal()
                if self._candidate.ours:
                    # Of an attempt that failed, an earlier one may turn out to have arrived; it was sent before a gap.
                    term.renewed(self._candidate.lead_until, sent_at if renewed else -math.inf)
        finally:
            if deadline is not None:
                deadline.cancel()
            lost.set()

    async def _try_renewal(self) -> bool:
        """Renew the lease once; whether that succeeded."""
        try:
            async with asyncio.timeout(self._timings.request_timeout):
                try:
                    await self._claim()
                except (AlreadyExistsError, ConflictError, NotFoundError):
                    # Changed or deleted by another client, or by an attempt of ours whose answer was lost.
                    await self._read()
                    if self._candidate.lease is not None and not self._candidate.ours:
                        return False
                    await self._claim()
        except _EXPECTED as error:
            self._log_failure("the lease could not be renewed", error)
            return False
        return True

    # Releasing ---------------------------------------------------------------------------------------------------

    async def _release(self) -> None:
        if not self._candidate.claimed:
            return
        settings = self._settings
        try:
            async with asyncio.timeout(self._timings.request_timeout):
                while not await self._try_release():  # noqa: ASYNC110 - the server is asked
                    await asyncio.sleep(_RELEASE_RETRY)
        except _EXPECTED as error:
            text = str(error) or type(error).__name__
            _log.warning("the lease could not be released, others have to wait", lease=str(settings.key), error=text)
        finally:
            self._candidate.forget()

    async def _try_release(self) -> bool:
        """Release the lease if it is ours. False: it was changed meanwhile and has to be read again."""
        settings = self._settings
        await self._read()
        lease = self._candidate.lease
        if lease is None or not self._candidate.ours:
            return True
        body = released(lease, name=settings.name, namespace=settings.namespace, now=self._clock.now())
        try:
            await self._client.replace(LEASES, body)
        except ConflictError:
            # A renewal that was in progress when the stop came has arrived at the server.
            return False
        _log.info("released the lease", lease=str(settings.key))
        return True

    # Contact -----------------------------------------------------------------------------------------------------

    def _note_answer(self) -> float:
        """Note that the server has answered; the monotonic time."""
        self._silent = False
        now = self._answered = self._clock.monotonic()
        return now

    def _check_silence(self, limit: float) -> None:
        """Call ``on_silence`` if the server has not answered for so many seconds."""
        assert self._answered is not None
        if not self._silent and self._clock.monotonic() - self._answered >= limit:
            self._silent = True
            self._on_silence()

    def _log_failure(self, what: str, error: Exception) -> None:
        if isinstance(error, ApiError | ProtocolError):
            self._note_answer()
        self._check_silence(self._timings.renew_deadline)
        suppressed = self._log_limiter.allow((what, type(error)), self._clock.monotonic())
        if suppressed is not None:
            text = str(error) or type(error).__name__
            _log.warning(what, lease=str(self._settings.key), error=text, suppressed=suppressed)

    def _change(self, leading: bool) -> None:
        if leading is self._leading:
            return
        self._leading = leading
        if leading:
            self._holder = self._settings.identity
            _log.info("leading", lease=str(self._settings.key), identity=self._settings.identity)
        self._on_change(leading)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _names(members: frozenset[str] | None) -> str:
    return ", ".join(sorted(members)) if members else "(unknown)"
