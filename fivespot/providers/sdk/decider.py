"""From a stored spec to a verdict, or to the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeVar

import structlog
from pydantic import BaseModel

from fivespot.api import validate

from .definition import Provider
from .dependencies import Context
from .override_spec import read_overrides
from .overrides import Override, Rule
from .status import DECISION_FAILED, INVALID_SPEC
from .verdict import NoVerdict, Verdict

__all__ = ["DECISION_TIMED_OUT", "Decider", "Prepared", "Trouble"]

DECISION_TIMED_OUT: Final = "DecisionTimedOut"

_log = structlog.get_logger("fivespot.provider")

Spec = TypeVar("Spec", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Trouble:
    """There is no verdict; the parameters are those of :class:`NoVerdict`."""

    reason: str
    message: str
    ready: Literal["False", "Unknown"] = "False"
    patience: float = 0.0
    retry: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a spec came to, kept per generation: the decision's input, or what is wrong with it."""

    uid: str
    generation: int
    rule: Any = None
    overrides: tuple[Override, ...] = ()
    trouble: Trouble | None = None


class Decider(Generic[Spec]):
    """Calls a provider's functions. They are other people's code: whatever they raise is trouble of one object."""

    def __init__(self, provider: Provider[Spec]) -> None:
        self._provider = provider

    def prepare(self, uid: str, generation: int, spec: Mapping[str, Any]) -> Prepared:
        """Read a spec, once per generation."""
        try:
            model: Any = validate(self._provider.model, spec)
            rule = self._provider.prepare(model)
            overrides = read_overrides(model.overrides) if self._provider.overrides else ()
        except ValueError as error:
            return Prepared(uid, generation, trouble=Trouble(INVALID_SPEC, str(error)))
        except Exception as error:
            _log.exception("a spec could not be prepared", kind=self._provider.kind)
            return Prepared(uid, generation, trouble=_failed("reading the spec", error))
        return Prepared(uid, generation, rule, overrides)

    async def decide(self, prepared: Prepared, at: datetime, context: Context) -> Verdict | Trouble:
        """What the schedule itself says at an instant."""
        if not self._provider.asynchronous:
            return self.decide_now(prepared, at, context)
        limit = asyncio.timeout(self._provider.timeout)
        try:
            async with limit:
                verdict = _checked(await self._call(prepared, at, context), at)
        except NoVerdict as error:
            return Trouble(error.reason, error.message, error.ready, error.patience, error.retry)
        except TimeoutError as error:
            if limit.expired():
                return Trouble(DECISION_TIMED_OUT, f"the decision took longer than {self._provider.timeout:g} s")
            return _failed("the decision", error)
        except Exception as error:
            return _failed("the decision", error)
        # Without an instant of its own it may change with any answer to come.
        return verdict if verdict.until is not None else replace(verdict, foreseen=False)

    def decide_now(self, prepared: Prepared, at: datetime, context: Context) -> Verdict | Trouble:
        """The same of a provider that is not asynchronous, also where no loop runs."""
        try:
            return _checked(self._call(prepared, at, context), at)
        except NoVerdict as error:
            return Trouble(error.reason, error.message, error.ready, error.patience, error.retry)
        except Exception as error:
            return _failed("the decision", error)

    def rule(self, prepared: Prepared, base: Verdict, now: datetime, context: Context) -> Rule:
        """What the schedule says at any instant: asked where it is a pure function of the instant, else assumed."""
        provider = self._provider
        pure = not (provider.asynchronous or provider.takes_context)

        def rule(at: datetime) -> Verdict:
            if at == now:
                return base
            if pure:
                try:
                    return _checked(self._call(prepared, at, context), at)
                except Exception as error:
                    _log.debug("no verdict at another instant", kind=provider.kind, at=str(at), error=str(error))
            if base.until is None or at < base.until:
                return base
            return Verdict(not base.active)

        return rule

    def _call(self, prepared: Prepared, at: datetime, context: Context) -> Any:
        if self._provider.takes_context:
            return self._provider.decide(prepared.rule, at, context)
        return self._provider.decide(prepared.rule, at)


def _checked(verdict: object, at: datetime) -> Verdict:
    if not isinstance(verdict, Verdict):
        raise TypeError(f"decide answered {verdict!r} instead of a Verdict")
    if verdict.until is not None and verdict.until <= at:
        raise ValueError(f"decide answered a next change at {verdict.until}, which is not after {at}")
    return verdict


def _failed(what: str, error: Exception) -> Trouble:
    return Trouble(DECISION_FAILED, f"{what} failed: {type(error).__name__}: {error}")
