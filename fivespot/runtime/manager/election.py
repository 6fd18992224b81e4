"""Leader election: drives :mod:`.lease` against the API server, and owns the work that only a leader may do."""

from __future__ import annotations

import asyncio
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

from .lease import Candidate, ElectionTimings, claim, read_lease, released
from .runnable_group import RunnableGroup

__all__ = ["LEASES", "Election", "ElectionSettings", "LeaseClient", "Work"]

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

Work = Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
"""Named coroutine functions that run while this process leads. Each must run until it is cancelled."""

_EXPECTED = (ApiError, TransportError, ProtocolError, TimeoutError)
"""What a request to a server that is away, slow or unwilling raises."""

_COMPLAINT_INTERVAL = 60.0

_NO_TIME = 0.001
"""Seconds before the deadline that are not worth another try; a loop's clock need not tell them from none."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """Which Lease, and who we are.

    :param identity: ``holderIdentity``; unique among the processes that stand.
    :param annotation: name of the annotation on the Lease that tells the holder's reconcilers.
    :param members: our reconcilers.
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


class LeaseClient(Protocol):
    """The verbs that an election needs: get, create and update on its Lease."""

    async def get(self, resource: Resource, key: Key) -> Object: ...

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object: ...

    async def replace(self, resource: Resource, body: dict[str, Any]) -> Object: ...


class Election:
    """Stands for election until cancelled, and runs work while it leads.

    Guaranteed: work is cancelled before another process can take the lease that it counted on, as long as no
    candidate's clock runs faster than the leader's by more than lease duration over renew deadline (1.5 by default);
    and this process does not stand again before its work has ended.

    Not guaranteed: that the work has ended by the time another process leads, for it has the difference of the two (5 s
    by default) to end in; nor that a request that it sent does not arrive later. No election can promise that, so every
    leader-only write needs a precondition of its own: uid, resourceVersion or a fixed name.

    :param grace: seconds that leader-only work may take to stop. If it takes longer the election ends with
        :class:`StopError` and the process has to: it could no longer prove that only one leader works.
    :param on_change: told True when this process begins to lead and False when it stops.
    :param on_silence: told when the server has not answered for the renew deadline, once until it does again: what
        was open to it may be dead, although nothing says so.
    """

    def __init__(
        self,
        client: LeaseClient,
        settings: ElectionSettings,
        *,
        clock: Clock,
        rng: Random,
        grace: float = 30.0,
        on_change: Callable[[bool], None] = lambda leading: None,
        on_silence: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._timings = settings.timings
        self._clock = clock
        self._rng = rng
        self._grace = grace
        self._on_change = on_change
        self._on_silence = on_silence
        self._candidate = Candidate(settings.identity, settings.members, settings.timings)
        self._leading = False
        self._contact: float | None = None
        self._started: float | None = None
        self._answered: float | None = None
        self._silent = False
        self._complaints = LogLimiter(_COMPLAINT_INTERVAL, size=64)
        self._holder = ""

    @property
    def leading(self) -> bool:
        return self._leading

    def not_ready_reason(self) -> str:
        """A readiness check: a standby is well, a process that cannot reach its Lease for long is not."""
        since = self._contact if self._contact is not None else self._started
        if since is None:
            return ""
        silent = self._clock.monotonic() - since
        if silent <= self._timings.contact_limit:
            return ""
        return f"no successful read of lease {self._settings.key} for {silent:.0f} s"

    async def run(self, work: Work) -> None:
        """Stand, lead, lose, stand again, until cancelled; then let the lease go.

        :raises ConfigError: the holder of the lease does other work than this process would.
        :raises StopError: work did not stop in time after the lease was lost.
        :raises Exception: what ended the work; the lease is let go first.
        """
        self._started = self._answered = self._clock.monotonic()
        try:
            while True:
                await self._acquire()
                await self._lead(work)
        except StopError:
            # What did not stop may still act: nobody may take the lease before it runs out.
            self._candidate.forget()
            raise
        finally:
            await self._release()

    # Standing ----------------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._timings.request_timeout):
                    await self._read()
                self._judge()
                if self._clock.monotonic() >= self._candidate.may_claim_at():
                    async with asyncio.timeout(self._timings.request_timeout):
                        await self._claim()
                    # Not on the strength of an earlier claim found out to have arrived: its time may be all but over.
                    if self._candidate.leads(self._clock.monotonic()):
                        return
            except (ConflictError, NotFoundError) as error:
                # Somebody was faster, or the namespace is missing; the next read tells.
                self._failed("the lease could not be taken", error)
            except _EXPECTED as error:
                self._failed("the lease cannot be read or taken", error)
            await asyncio.sleep(self._timings.retry_period * (1 + self._timings.jitter * self._rng.random()))

    async def _read(self) -> None:
        try:
            obj = await self._client.get(LEASES, self._settings.key)
        except NotFoundError:
            lease = None
        else:
            lease = read_lease(obj, self._settings.annotation)
        now = self._contact = self._heard()
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
        self._candidate.sent(rfc3339_micro(now), self._clock.monotonic())
        if lease is None:
            obj = await self._client.create(LEASES, body, namespace=settings.namespace)
        else:
            obj = await self._client.replace(LEASES, body)
        at = self._contact = self._heard()
        self._candidate.confirmed(read_lease(obj, settings.annotation), at)

    def _judge(self) -> None:
        """Say who holds the lease, once per holder, and give up when it is shared by mistake."""
        stranger = self._candidate.stranger
        if stranger is not None:
            raise ConfigError(
                f"lease {self._settings.key} is held by {stranger.holder}, which runs {_names(stranger.members)}, "
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

    async def _lead(self, work: Work) -> None:
        lost = asyncio.Event()
        term = RunnableGroup(clock=self._clock, grace=self._grace)
        # Renewal is the first stage, so that it goes on while the work winds down.
        term.spawn("lease renewal", lambda: self._renew(lost), may_end=True)
        term.next_stage()
        try:
            self._change(True)
            for name, run in work.items():
                term.spawn(name, run)
            await term.watch(lost)
        finally:
            self._change(False)
            await term.close()
        # An answer within the last request's time means that the connection is well, and the reason another.
        self._mind_silence(self._timings.request_timeout)
        _log.warning("lost the lease, work has stopped", lease=str(self._settings.key))

    async def _renew(self, lost: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        deadline: asyncio.TimerHandle | None = None
        try:
            while True:
                left = self._candidate.lead_until - self._clock.monotonic()
                if left <= _NO_TIME or not self._candidate.ours:
                    break
                if deadline is not None:
                    deadline.cancel()
                # Apart from the request: a transport that does not even answer to cancellation changes nothing.
                deadline = loop.call_later(left, lost.set)
                await asyncio.sleep(min(self._timings.retry_period, left))
                await self._try_renewal()
        finally:
            if deadline is not None:
                deadline.cancel()
            lost.set()

    async def _try_renewal(self) -> None:
        left = self._candidate.lead_until - self._clock.monotonic()
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(self._timings.request_timeout, left)):
                try:
                    await self._claim()
                except (AlreadyExistsError, ConflictError, NotFoundError):
                    # Written or removed by others, or by an attempt of ours whose answer was lost.
                    await self._read()
                    if self._candidate.lease is None or self._candidate.ours:
                        await self._claim()
        except _EXPECTED as error:
            self._failed("the lease could not be renewed", error)

    # Letting go --------------------------------------------------------------------------------------------------

    async def _release(self) -> None:
        if not self._candidate.claimed:
            return
        settings = self._settings
        try:
            async with asyncio.timeout(self._timings.request_timeout):
                await self._read()
                lease = self._candidate.lease
                if lease is not None and self._candidate.ours:
                    body = released(lease, name=settings.name, namespace=settings.namespace, now=self._clock.now())
                    await self._client.replace(LEASES, body)
                    _log.info("let the lease go", lease=str(settings.key))
        except _EXPECTED as error:
            _log.warning(
                "the lease could not be let go, others have to wait", lease=str(settings.key), error=str(error)
            )
        finally:
            self._candidate.forget()

    # Contact -----------------------------------------------------------------------------------------------------

    def _heard(self) -> float:
        """The server has answered; the time."""
        self._silent = False
        now = self._answered = self._clock.monotonic()
        return now

    def _mind_silence(self, limit: float) -> None:
        """Tell of a silence that lasts longer than so many seconds."""
        assert self._answered is not None
        if not self._silent and self._clock.monotonic() - self._answered >= limit:
            self._silent = True
            self._on_silence()

    def _failed(self, what: str, error: Exception) -> None:
        if isinstance(error, ApiError | ProtocolError):
            self._heard()
        self._mind_silence(self._timings.renew_deadline)
        held_back = self._complaints.allow((what, type(error)), self._clock.monotonic())
        if held_back is not None:
            text = str(error) or type(error).__name__
            _log.warning(what, lease=str(self._settings.key), error=text, held_back=held_back)

    def _change(self, leading: bool) -> None:
        if leading is self._leading:
            return
        self._leading = leading
        if leading:
            self._holder = self._settings.identity
            _log.info("leading", lease=str(self._settings.key), identity=self._settings.identity)
        self._on_change(leading)


def _names(members: frozenset[str] | None) -> str:
    return ", ".join(sorted(members)) if members else "(unknown)"
