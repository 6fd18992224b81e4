"""A virtual-time loop on which simulated processes can be paused, as by SIGSTOP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import TypeVarTuple, Unpack

from fivespot.testing.virtual_time import VirtualTimeLoop

PROCESS: ContextVar[str] = ContextVar("process", default="")
"""The simulated process that a task or callback belongs to; inherited by the tasks that it starts."""

Ts = TypeVarTuple("Ts")


class PausableLoop(VirtualTimeLoop):
    """Pauses processes: by :meth:`pause`, or ``victim`` before its ``pause_at``-th step, for ``length`` seconds.

    A step is one callback of the process: the part of a task between two suspensions, a timer, a future's callback.
    While it is paused, what becomes due is kept; when it resumes, all of that runs in one turn of the loop before
    anything else of the process, as overdue timers and socket events do.
    """

    def __init__(self, *, victim: str = "", pause_at: int = 0, length: float = 0.0) -> None:
        super().__init__()
        self.steps = 0
        self.step_times: list[float] = []
        self.resumed_at: float | None = None
        self._victim = victim
        self._pause_at = pause_at
        self._length = length
        self._kept: dict[str, list[Callable[[], None]]] = {}

    @property
    def paused(self) -> frozenset[str]:
        """The processes that are paused now."""
        return frozenset(self._kept)

    def pause(self, process: str, length: float) -> None:
        """Stop scheduling a process for ``length`` seconds. No effect on one that is paused."""
        if process not in self._kept:
            self._kept[process] = []
            Context().run(self.call_later, length, self._resume, process)

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context if context is not None else copy_context()
        run = _Step(self, partial(callback, *args), context)
        handle = super().call_soon(run.take, context=context)
        run.handle = handle
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        context = context if context is not None else copy_context()
        run = _Step(self, partial(callback, *args), context)
        handle = super().call_at(when, run.take, context=context)
        run.handle = handle
        return handle

    def take_step(self, step: _Step) -> None:
        process = step.context.get(PROCESS, "")
        if process and process == self._victim and process not in self._kept:
            self.steps += 1
            self.step_times.append(self.time())
            if self.steps == self._pause_at:
                self.pause(process, self._length)
        if process in self._kept:
            self._kept[process].append(step.run_kept)
            return
        step.callback()

    def _resume(self, process: str) -> None:
        self.resumed_at = self.time()
        for run in self._kept.pop(process):
            run()


class _Step:
    """One callback, with the handle by which it may be cancelled while it is kept."""

    handle: asyncio.Handle

    def __init__(self, loop: PausableLoop, callback: Callable[[], object], context: Context) -> None:
        self.loop = loop
        self.callback = callback
        self.context = context

    def take(self) -> None:
        self.loop.take_step(self)

    def run_kept(self) -> None:
        if not self.handle.cancelled():
            self.context.run(self.callback)
