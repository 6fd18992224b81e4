"""A group of named tasks that start in stages and stop in reverse order within a grace period.

Unlike :class:`asyncio.TaskGroup` it does not wait indefinitely for a task that ignores its cancellation: the error
names the task, and the process can exit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import structlog

from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import FivespotError, StopError
from fivespot.runtime.telemetry.logs import traceback_text

__all__ = ["MemberEndedError", "RunnableGroup", "leaf_error"]

_log = structlog.get_logger(__name__)

_RESERVE = 0.5
"""Seconds reserved for each stage that still has to stop after a slow one; at most a tenth of the grace period."""


class MemberEndedError(FivespotError):
    """A task that has to run until it is stopped returned, or was cancelled from elsewhere."""


@dataclass(slots=True, eq=False)
class _Member:
    name: str
    task: asyncio.Task[None]
    may_end: bool = False
    before_stop: Callable[[float], Awaitable[None]] | None = None
    may_be_cancelled: bool = False


class RunnableGroup:
    """Runs tasks until asked to stop or until one of them fails.

    Tasks of one stage stop together; a later stage stops before an earlier one::

        lifetime = RunnableGroup(clock=clock, grace=30.0)
        try:
            await lifetime.enter("cache", cache)
            lifetime.next_stage()
            lifetime.spawn("controller", controller.run)
            await lifetime.watch(stop)
        finally:
            await lifetime.close()

    :param grace: seconds that :meth:`close` may take in total.
    """

    def __init__(self, *, clock: Clock, grace: float) -> None:
        self._clock = clock
        self._grace = grace
        self._stages: list[list[_Member]] = [[]]
        self._closing: asyncio.Task[None] | None = None
        self._raised: BaseException | None = None
        self._members_changed = asyncio.Event()

    @property
    def dead(self) -> str:
        """Names of members that ended unexpectedly, for a liveness check; "" when there are none."""
        return ", ".join(
            member.name
            for stage in self._stages
            for member in stage
            if self._closing is None and member.task.done() and _failure(member) is not None
        )

    @property
    def running(self) -> tuple[str, ...]:
        """Names of members that are running."""
        return tuple(member.name for stage in self._stages for member in stage if not member.task.done())

    def next_stage(self) -> None:
        """Begin a stage; its members stop before those added so far."""
        self._stages.append([])

    def spawn(
        self,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        *,
        may_end: bool = False,
        before_stop: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        """Start a member.

        :param may_end: returning is not a failure.
        :param before_stop: awaited before the member is cancelled, with the seconds it may take.
        """
        task = asyncio.create_task(run(), name=name)
        self._stages[-1].append(_Member(name, task, may_end, before_stop))
        self._members_changed.set()

    async def stop_member(self, name: str) -> None:
        """Cancel one member, wait until it has ended, and forget it; unknown names are ignored.

        :raises StopError: it did not stop within the grace period.
        """
        for stage in self._stages:
            for member in [member for member in stage if member.name == name]:
                member.may_be_cancelled = True
                member.task.cancel()
                await asyncio.wait({member.task}, timeout=self._grace)
                if not member.task.done():
                    raise StopError(f"did not stop within {self._grace:g} s: {name}")
                if member in stage:
                    stage.remove(member)

    async def enter(self, name: str, manager: AbstractAsyncContextManager[object]) -> None:
        """Enter an async context manager in a task of its own and return once it is entered.

        :raises Exception: the error that entering raised.
        """
        entered = asyncio.Event()

        async def hold() -> None:
            async with manager:
                entered.set()
                await asyncio.Event().wait()

        self.spawn(name, hold)
        member = self._stages[-1][-1]
        waiter = asyncio.create_task(entered.wait(), name=f"{name} (starting)")
        try:
            await asyncio.wait({waiter, member.task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if not entered.is_set() and (failure := _failure(member)) is not None:
            self._raised = failure
            raise failure

    async def watch(self, stop: asyncio.Event) -> None:
        """Return when ``stop`` is set.

        :raises Exception: the error of the first member that failed, or :class:`MemberEndedError`.
        """
        stopper = asyncio.create_task(stop.wait(), name="waiting for stop")
        try:
            while not stop.is_set():
                self._members_changed.clear()
                watched = {
                    member.task: member
                    for stage in self._stages
                    for member in stage
                    if not member.task.done() or _failure(member) is not None
                }
                changed = asyncio.create_task(self._members_changed.wait(), name="waiting for new members")
                try:
                    await asyncio.wait({stopper, changed, *watched}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                for member in watched.values():
                    failure = _failure(member)
                    if failure is not None:
                        self._raised = failure
                        raise failure
        finally:
            stopper.cancel()

    async def close(self) -> None:
        """Stop all members, latest stage first. Cancellation does not interrupt it, because its duration is bounded.

        :raises StopError: names the members that did not stop within the grace period. They keep running; the process
            should exit.
        :raises Exception: an error that a member raised while stopping, unless :meth:`watch` has raised one.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="stopping")
        cancelled: asyncio.CancelledError | None = None
        while not self._closing.done():
            try:
                await asyncio.wait({self._closing})
            except asyncio.CancelledError as error:
                cancelled = error
        self._closing.result()
        if cancelled is not None:
            raise cancelled

    async def _close(self) -> None:
        deadline = self._clock.monotonic() + self._grace
        reserve = min(_RESERVE, self._grace / 10)
        stuck: list[str] = []
        failures: list[BaseException] = []
        for position in range(len(self._stages) - 1, -1, -1):
            stage = self._stages[position]
            if not stage:
                continue
            budget = max(deadline - self._clock.monotonic() - position * reserve, reserve)
            await self._stop(stage, budget)
            stuck += [member.name for member in stage if not member.task.done()]
            for member in stage:
                failure = _failure(member, stopping=True) if member.task.done() else None
                if failure is not None and failure is not self._raised:
                    _log.error("failed while stopping", task=member.name, exception=traceback_text(failure))
                    failures.append(failure)
        if stuck:
            raise StopError(f"did not stop within {self._grace:g} s: {', '.join(stuck)}")
        if failures and self._raised is None:
            raise failures[0]

    async def _stop(self, stage: list[_Member], budget: float) -> None:
        started = self._clock.monotonic()
        for member in stage:
            if member.before_stop is not None and not member.task.done():
                try:
                    async with asyncio.timeout(budget / 2):
                        await member.before_stop(budget / 4)
                except TimeoutError:
                    _log.warning("preparation for the stop timed out", task=member.name)
        tasks = {member.task for member in stage if not member.task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, budget - (self._clock.monotonic() - started)))


def leaf_error(error: BaseException) -> BaseException:
    """The single error inside nested exception groups, or the group itself when it holds several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _failure(member: _Member, *, stopping: bool = False) -> BaseException | None:
    """The error of a finished member; None when it was allowed to end."""
    task = member.task
    if not task.done():
        return None
    if task.cancelled():
        return (
            None
            if stopping or member.may_be_cancelled
            else MemberEndedError(f"{member.name} was cancelled from elsewhere")
        )
    error = task.exception()
    if error is not None:
        return error
    return (
        None
        if stopping or member.may_end
        else MemberEndedError(f"{member.name} returned, but has to run until it is stopped")
    )
