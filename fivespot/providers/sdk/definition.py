"""The declaration of a provider: a kind, its spec model, its decision, and the names that follow from the kind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.api.types import ScheduleStatus
from fivespot.providers.registry import SHIPPED
from fivespot.runtime import Resource
from fivespot.runtime.crd import Column

from .dependencies import SCHEDULES, Readable
from .schema import Kind, kind_definition, spec_model
from .verdict import Verdict

__all__ = ["Provider", "metric_prefix", "plural", "short_names"]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[0-9]+")
_SUFFIX: Final = re.compile(r"(?<=.)(Spot)?Schedule$")


_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_PLURAL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_METRIC: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

PURE_WORKERS: Final = 32
"""Concurrent runs of a provider that does not wait: a little more than there are concurrent writes."""
ASKING_WORKERS: Final = 200
"""Concurrent runs of a provider that asks a source outside the cluster: a slow answer must not delay the others."""

Spec = TypeVar("Spec", bound=BaseModel)


def plural(kind: str) -> str:
    """``WeekSchedule`` -> ``weekschedules``; ``Policy`` -> ``policies``."""
    lower = kind.lower()
    if re.search(r"[^aeiou]y$", lower):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith(("s", "x", "z", "ch", "sh")) else f"{lower}s"


def short_names(kind: str) -> tuple[str, ...]:
    """The initials, such as ``ws``; none where they would be a single letter, or are those of a shipped kind.

    Of two kinds of one group that claim the same short name the API server does not serve the later one at all
    (condition NamesAccepted).
    """
    initials = _initials(kind)
    taken = {_initials(shipped) for shipped in SHIPPED if shipped != kind}
    return (initials,) if len(initials) > 1 and initials not in taken else ()


def metric_prefix(kind: str) -> str:
    """``WeekSchedule`` -> ``fivespot_week``."""
    words = _WORD.findall(_SUFFIX.sub("", kind))
    return "_".join(["fivespot", *(word.lower() for word in words)])


def _same(spec: Any) -> Any:
    return spec


def _no_advice(prepared: Any) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Provider(Generic[Spec]):
    """A kind of schedule and its decision::

        class ToggleSpec(ApiModel):
            up: bool

        TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(spec.up))

    ``decide(spec, at)`` gets what ``prepare`` made of the spec (by default the spec itself) and an aware UTC instant.
    It is pure: no clock, no I/O. With a third parameter it also gets a :class:`~fivespot.providers.sdk.Context`.
    As an ``async def`` it may ask the outside world: it is then called every ``poll`` seconds, cancelled after
    ``timeout``, and retried with a back-off when it fails.

    :param kind: the kind, such as ``OfficeHours``.
    :param plural: the resource; by default the English plural, such as ``weekschedules`` for ``WeekSchedule``.
    :param spec: the pydantic model of ``spec``; a spec that it rejects is invalid. ``overrides`` is added to it.
    :param decide: the verdict at an instant. Raises :class:`~fivespot.providers.sdk.NoVerdict` when there is none.
    :param prepare: called once per generation; raises :class:`~fivespot.providers.sdk.SpecError` (or any ValueError
        with a text for people) for a spec that cannot be followed.
    :param advise: called with what ``prepare`` made, once per generation: sentences on parts of the spec that have no
        effect or are probably not meant, for condition ``SpecWarnings``.
    :param metrics: prefix of the provider's metrics; by default from the kind, such as ``fivespot_office_hours``.
    :param version: the served version that is read and written.
    :param short_names: for kubectl; by default the initials, where they are two or more and not a shipped kind's.
    :param columns: shown by ``kubectl get`` between Active and NextTransition.
    :param description: what ``kubectl explain`` says of the kind; by default the spec's docstring.
    :param status: the model of ``status``. New kinds keep the default, in which ``active`` is required.
    :param overrides: whether ``spec.overrides`` is offered.
    :param reads: the other objects that ``decide`` may read through its context; it is called again when one that it
        read changes.
    :param poll: seconds after which to decide again although no change is known; None for never. By
        default 60 for an ``async`` decide, else never.
    :param timeout: seconds that one ``async`` decision may take.
    :param workers: concurrent decisions of this kind.
    :raises ValueError: a name cannot be used, or a number is not positive.
    :raises TypeError: ``spec`` is no pydantic model, or ``decide`` cannot be called so.
    """

    kind: str
    plural: str = ""
    _: KW_ONLY
    spec: type[Spec]
    decide: Callable[..., Verdict] | Callable[..., Awaitable[Verdict]]
    prepare: Callable[[Spec], Any] = _same
    advise: Callable[[Any], Iterable[str]] = _no_advice
    metrics: str = ""
    version: str = PROVIDER_VERSION
    short_names: tuple[str, ...] | None = None
    columns: tuple[Column, ...] = ()
    description: str = ""
    status: type[ScheduleStatus] = ScheduleStatus
    overrides: bool = True
    reads: tuple[Readable, ...] = ()
    poll: float | None = None
    timeout: float = 10.0
    workers: int = 0
    model: type[BaseModel] = field(init=False, repr=False, compare=False)
    """The whole spec, overrides included."""
    asynchronous: bool = field(init=False, repr=False, compare=False)
    """Whether ``decide`` is a coroutine function."""
    takes_context: bool = field(init=False, repr=False, compare=False)
    """Whether ``decide`` has a third parameter."""

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        if not _KIND.fullmatch(self.kind):
            raise ValueError(f"{self.kind!r} cannot be a kind: write it as OfficeHours, at most 63 letters and digits")
        spec: object = self.spec
        if not (isinstance(spec, type) and issubclass(spec, BaseModel)):
            raise TypeError(f"{self.kind}: spec {spec!r} is no pydantic model")
        settle("plural", self.plural or plural(self.kind))
        settle("metrics", self.metrics or metric_prefix(self.kind))
        if self.short_names is None:
            settle("short_names", short_names(self.kind))
        for what, text, pattern in (("plural", self.plural, _PLURAL), ("metrics", self.metrics, _METRIC)):
            if not pattern.fullmatch(text):
                raise ValueError(f"{self.kind}: {text!r} cannot be used as {what}")
        called = inspect.unwrap(self.decide)
        settle("asynchronous", _is_asynchronous(called))
        settle("takes_context", _positions(self.kind, called) == 3)
        if self.asynchronous and self.poll is None:
            settle("poll", 60.0)
        if not self.workers:
            settle("workers", ASKING_WORKERS if self.asynchronous else PURE_WORKERS)
        if (self.poll is not None and not self.poll > 0) or not self.timeout > 0 or self.workers < 1:
            raise ValueError(f"{self.kind}: poll, timeout and workers must be above zero")
        settle("model", spec_model(self.spec, overrides=self.overrides))

    @property
    def resource(self) -> Resource:
        """The resource of its objects."""
        return Resource(PROVIDER_GROUP, self.version, self.plural, self.kind)

    @property
    def name(self) -> str:
        """The name of its controller, and of its singular: the kind in lower case."""
        return self.kind.lower()

    @property
    def reads_schedules(self) -> bool:
        """Whether decisions read other schedules."""
        return SCHEDULES in self.reads

    def definition(self) -> dict[str, Any]:
        """The CustomResourceDefinition of the kind. The same models give the same definition.

        :raises SchemaError: the spec cannot be expressed as a schema; the text names the field.
        """
        return kind_definition(
            Kind(
                kind=self.kind,
                plural=self.plural,
                version=self.version,
                spec=self.model,
                status=self.status,
                description=self.description
                or inspect.cleandoc(self.spec.__doc__ or f"A schedule of kind {self.kind}."),
                short_names=self.short_names or (),
                columns=self.columns,
                overrides=self.overrides,
            )
        )


def _initials(kind: str) -> str:
    return "".join(re.findall("[A-Z]", kind)).lower()


def _is_asynchronous(decide: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(decide) or inspect.iscoroutinefunction(getattr(decide, "__call__", None))  # noqa: B004 - the method is looked at, not whether there is one


def _positions(kind: str, decide: Callable[..., Any]) -> int:
    """Return the number of arguments of ``decide``: two, or three with the context."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(decide).parameters.values()
    count = sum(parameter.kind in positional for parameter in parameters)
    needed = sum(parameter.kind in positional and parameter.default is parameter.empty for parameter in parameters)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        count = max(count, 2)
    if needed > 3 or count < 2:
        raise TypeError(f"{kind}: decide must take (spec, at) or (spec, at, context)")
    return min(count, 3)
