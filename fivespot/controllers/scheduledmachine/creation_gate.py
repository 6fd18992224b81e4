"""Applies the administrator's limits on creations to the machines of the caches (contract B8.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from fivespot.api import Reason, names
from fivespot.runtime import Head, Key
from fivespot.runtime.clock import Clock

from .activation_limiter import ActivationLimiter, ActivationLimits, Exceeded
from .holds import CreationHold
from .informers import MachineInformers
from .instants import read_instant, whole_second
from .stored_status import stored_status_of

__all__ = ["CreationGate"]

_HOUR: Final = 3600.0


class CreationGate:
    """Admits creations within the limits, and says why and until when it holds back others.

    :param enqueue: enqueues a machine once there is room for it.
    """

    def __init__(
        self,
        limits: ActivationLimits,
        informers: MachineInformers,
        clock: Clock,
        enqueue: Callable[[Key, float], None],
    ) -> None:
        self._limits = limits
        self._informers = informers
        self._clock = clock
        self._limiter = ActivationLimiter(limits, enqueue)

    def __len__(self) -> int:
        return len(self._limiter)

    def begin_term(self) -> None:
        """Start over with the creations that the caches show."""
        if self._limits.any:
            self._limiter.begin_term(self._created_lately())

    def hold(self, key: Key, now: datetime, monotonic: float) -> CreationHold | None:
        """Return the reason for which the machine is not created now; None takes its place."""
        exceeded = self._limiter.exceeded(key, monotonic, partial(self._machines, key.namespace))
        return None if exceeded is None else _hold(key, exceeded, now)

    def used(self, key: Key) -> None:
        """Note that the machine was created, or may have been."""
        self._limiter.used(key, self._clock.monotonic())

    def release(self, key: Key) -> None:
        """Note that nothing is to be created, or that nothing was."""
        if self._limits.any:
            self._limiter.release(key)
            self._limiter.offer(key, partial(self._machines, key.namespace))

    def _machines(self, namespace: str) -> int:
        machines = self._informers.machines
        return sum(_of_a_scheduled_machine(obj.head) for obj in machines.list(namespace)) if machines else 0

    def _created_lately(self) -> Iterator[tuple[Key, float]]:
        """Yield the creations of the last hour, from Machines and statuses, on the loop's clock."""
        wall, now, machines = self._clock.now(), self._clock.monotonic(), self._informers.machines
        seen = {
            (obj.key, obj.head.creation_timestamp)
            for obj in (machines.list() if machines is not None else ())
            if _of_a_scheduled_machine(obj.head)
        }
        seen |= {
            (obj.key, str(stored_status_of(obj).raw.get("lastScheduledTime")))
            for obj in self._informers.scheduled_machines.list()
        }
        for key, text in seen:
            at = read_instant(text)
            if at is not None and 0 <= (wall - at).total_seconds() < _HOUR:
                yield key, now - (wall - at).total_seconds()


def _of_a_scheduled_machine(head: Head) -> bool:
    owner = head.controller
    return owner is not None and owner.kind == names.KIND and owner.api_version.startswith(f"{names.GROUP}/")


def _hold(key: Key, exceeded: Exceeded, now: datetime) -> CreationHold:
    allowed = exceeded.allowed
    if exceeded.wait is None:
        message = (
            f"namespace {key.namespace} has {allowed} machines, the most that the manager allows "
            "(--max-machines-per-namespace); the machine is created once there are fewer"
        )
        return CreationHold(Reason.NAMESPACE_LIMIT_REACHED, message)
    until = whole_second(now + timedelta(seconds=exceeded.wait + 1))
    what, flag = (
        ("a machine", "--max-activations-per-hour")
        if exceeded.limit == "per_machine"
        else (f"namespace {key.namespace}", "--max-namespace-activations-per-hour")
    )
    message = (
        f"the machine is created at {until:%Y-%m-%dT%H:%M:%SZ}: the manager allows {what} {allowed} activations an "
        f"hour ({flag})"
    )
    return CreationHold(Reason.ACTIVATION_RATE_LIMITED, message, until)
