"""Call a provider's functions: from a stored spec to a verdict, or to the reason why there is none."""

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

__all__ = ["DECISION_TIMED_OUT", "Decider", "DecisionFailure", "PreparedSpec"]

DECISION_TIMED_OUT: Final = "DecisionTimedOut"

_log = structlog.get_logger("fivespot.provider")

Spec = TypeVar("Spec", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class DecisionFailure:
    """There is no verdict; the parameters are those of :class:`NoVerdict`."""

    reason: str
    message: str
    ready: Literal["False", "Unknown"] = "False"
    patience: float = 0.0
    retry: float | None = None


@dataclass(frozen=True, slots=True)
class PreparedSpec:
    """A spec that was read, kept per generation: the input of decisions, or the reason why it has none."""

    uid: str
    generation: int
    rule: Any = None
    overrides: tuple[Override, ...] = ()
    failure: DecisionFailure | None = None
    advice: tuple[str, ...] = ()


class Decider(Generic[Spec]):
    """Calls a provider's functions. They are foreign code: whatever they raise fails one object, and no other."""

    def __init__(self, provider: Provider[Spec]) -> None:
        self._provider = provider

    def prepare(self, uid: str, generation: int, spec: Mapping[str, Any]) -> PreparedSpec:
        """Read a spec, once per generation."""
        try:
            model: Any = validate(self._provider.model, spec)
            rule = self._provider.prepare(model)
            overrides = read_overrides(model.overrides) if self._provider.overrides else ()
            advice = tuple(self._provider.advise(rule))
        except ValueError as error:
            return PreparedSpec(uid, generation, failure=DecisionFailure(INVALID_SPEC, str(error)))
        except Exception as error:
            _log.exception("a spec could not be prepared", kind=self._provider.kind)
            return PreparedSpec(uid, generation, failure=_failed("reading the spec", error))
        return PreparedSpec(uid, generation, rule, overrides, advice=advice)

    async def decide(self, prepared: PreparedSpec, at: datetime, context: Context) -> Verdict | DecisionFailure:
        """The verdict of the schedule itself at an instant, overrides left aside."""
        if not self._provider.asynchronous:
            return self.decide_now(prepared, at, context)
        limit = asyncio.timeout(self._provider.timeout)
        try:
            async with limit:
                verdict = _checked(await self._call(prepared, at, context), at)
        except NoVerdict as error:
            return DecisionFailure(error.reason, error.message, error.ready, error.patience, error.retry)
        except TimeoutError as error:
            if limit.expired():
                return DecisionFailure(
                    DECISION_TIMED_OUT, f"the decision took longer than {self._provider.timeout:g} s"
                )
            return _failed("the decision", error)
        except Exception as error:
            return _failed("the decision", error)
        # Without an instant of its own it may change with any answer.
        return verdict if verdict.until is not None else replace(verdict, foreseen=False)

    def decide_now(self, prepared: PreparedSpec, at: datetime, context: Context) -> Verdict | DecisionFailure:
        """As :meth:`decide`, for a provider that is not asynchronous; needs no event loop."""
        try:
            return _checked(self._call(prepared, at, context), at)
        except NoVerdict as error:
            return DecisionFailure(error.reason, error.message, error.ready, error.patience, error.retry)
        except Exception as error:
            return _failed("the decision", error)

    def rule(self, prepared: PreparedSpec, base: Verdict, now: datetime, context: Context) -> Rule:
        """The verdict of the schedule at any instant: decided where the provider is pure, else assumed."""
        provider = self._provider
        pure = not (provider.asynchronous or provider.takes_context)

        def rule(at: datetime) -> Verdict:
            if at == now:
                return base
            if pure:
                try:
                    return _checked(self._call(prepared, at, context), at)
                except Exception as error:
                    _log.debug(
                        "no verdict at another instant",
                        kind=provider.kind,
                        at=str(at),
                        error=str(error),
                    )
            if base.until is None or at < base.until:
                return base
            return Verdict(not base.active)

        return rule

    def _call(self, prepared: PreparedSpec, at: datetime, context: Context) -> Any:
        if self._provider.takes_context:
            return self._provider.decide(prepared.rule, at, context)
        return self._provider.decide(prepared.rule, at)


def _checked(verdict: object, at: datetime) -> Verdict:
    if not isinstance(verdict, Verdict):
        raise TypeError(f"decide answered {verdict!r} instead of a Verdict")
    if verdict.until is not None and verdict.until <= at:
        raise ValueError(f"decide answered a next change at {verdict.until}, which is not after {at}")
    return verdict


def _failed(what: str, error: Exception) -> DecisionFailure:
    return DecisionFailure(DECISION_FAILED, f"{what} failed: {type(error).__name__}: {error}")
