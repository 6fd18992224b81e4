"""ManualSchedule: a switch, or another schedule that overrides take precedence over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.api.types import DNS_SUBDOMAIN_PATTERN, KIND_PATTERN, ApiModel
from fivespot.contract import PROVIDER_NOT_READY
from fivespot.providers.registry import SHIPPED
from fivespot.providers.sdk import (
    SCHEDULES,
    UNREADABLE_PATIENCE,
    Column,
    Context,
    NoVerdict,
    Provider,
    Resolved,
    Unreadable,
    Verdict,
)
from fivespot.runtime import Resource
from fivespot.runtime.crd import Cel, matches

__all__ = [
    "BASE_CYCLE",
    "BASE_UNRESOLVED",
    "KIND",
    "LONGEST_CHAIN",
    "MANUAL_SCHEDULES",
    "PROVIDER",
    "Base",
    "ManualScheduleSpec",
    "decide",
]

KIND: Final = "ManualSchedule"

MANUAL_SCHEDULES: Final = Resource(PROVIDER_GROUP, PROVIDER_VERSION, "manualschedules", KIND)


_KIND_MESSAGE: Final = "must be a kind such as TimeBasedSpotSchedule, in CamelCase"


def _kind_message(text: str) -> str:
    by_name = {kind.lower(): kind for kind in SHIPPED} | {
        "tbss": "TimeBasedSpotSchedule",
        "cms": "CapitalMarketsSchedule",
    }
    meant = by_name.get(text.lower()) or by_name.get(text.lower().removesuffix("s"))
    return f"{_KIND_MESSAGE}; did you mean {meant}?" if meant else _KIND_MESSAGE


class Base(ApiModel):
    """Another schedule of the namespace."""

    EXAMPLE: ClassVar[str] = "{kind: TimeBasedSpotSchedule, name: office-hours}"

    kind: Annotated[
        str,
        Field(max_length=63),
        replace(matches(KIND_PATTERN, _KIND_MESSAGE), explain=_kind_message),
    ]
    """Its kind, such as TimeBasedSpotSchedule; any kind of the group spotschedules.5spot.finos.org."""
    name: Annotated[
        str,
        Field(min_length=1, max_length=253),
        matches(DNS_SUBDOMAIN_PATTERN, "must be the name of an object: lower-case letters, digits, '-' and '.'"),
    ]
    """Its name."""


class ManualScheduleSpec(ApiModel):
    """The verdict while no override decides: exactly one of enabled and base."""

    RULES = (
        Cel(
            "has(self.enabled) != has(self.base)",
            "exactly one of enabled and base must be given: enabled is a switch, base names a schedule to go by",
            check=lambda spec: (spec.enabled is None) != (spec.base is None),
        ),
    )

    enabled: bool | None = None
    """Whether machines should exist."""
    base: Base | None = None
    """The schedule that decides while no override does."""


BASE_UNRESOLVED: Final = "BaseUnresolved"

BASE_CYCLE: Final = "BaseCycle"
"""Reasons of a Ready that is not True."""

LONGEST_CHAIN: Final = 8
"""The greatest length of a chain of schedules, the first base included."""

_RETRY: Final = 60.0
"""Seconds between two evaluations of a base that gives no verdict (contract A8); changes are noticed by a watch."""


def decide(spec: ManualScheduleSpec, at: datetime, context: Context) -> Verdict:
    """Return the switch, or the verdict of the base.

    :raises NoVerdict: the base gives none, or the chain of bases is circular.
    """
    base = spec.base
    if base is None:
        on = bool(spec.enabled)
        return Verdict(on, None, "Enabled" if on else "Disabled", f"switched {'on' if on else 'off'} by spec.enabled")
    _follow(base, context)
    reading = context.schedule(base.kind, base.name, field="spec.base")
    if isinstance(reading, Unreadable):
        # Nothing is known about the base, which is reported only if it lasts.
        raise NoVerdict(BASE_UNRESOLVED, reading.why, ready="Unknown", patience=UNREADABLE_PATIENCE, retry=_RETRY)
    if not isinstance(reading, Resolved):
        # No text of the base is copied: a base that changes it often would cause as many writes of this object.
        not_ready = f"{base.kind}/{base.name} is not Ready; its own condition says why"
        why = not_ready if reading.reason == PROVIDER_NOT_READY else reading.message
        raise NoVerdict(BASE_UNRESOLVED, f"{reading.reason}: {why}", retry=_RETRY)
    says = "active" if reading.active else "inactive"
    # Only the base knows when it changes.
    return Verdict(
        reading.active, None, f"Base{says.capitalize()}", f"{base.kind}/{base.name} is {says}", foreseen=False
    )


def _follow(base: Base, context: Context) -> None:
    """Follow the chain of bases, which only ManualSchedules have.

    :raises NoVerdict: one of them comes twice, or there are too many.
    """
    seen = [(KIND, context.name)]
    step: Base | None = base
    while step is not None:
        here = (step.kind, step.name)
        if here in seen:
            path = " -> ".join(name for _, name in (*seen, here))
            raise NoVerdict(BASE_CYCLE, f"spec.base leads back to ManualSchedule/{step.name}: {path}", retry=_RETRY)
        seen.append(here)
        if len(seen) > LONGEST_CHAIN + 1:
            raise NoVerdict(
                BASE_CYCLE, f"spec.base leads over more than {LONGEST_CHAIN} schedules; shorten the chain", retry=_RETRY
            )
        step = _base_of(context.get(MANUAL_SCHEDULES, step.name)) if step.kind == KIND else None


def _base_of(found: Mapping[str, Any] | None) -> Base | None:
    spec = found.get("spec") if found is not None else None
    base = spec.get("base") if isinstance(spec, Mapping) else None
    if not isinstance(base, Mapping):
        return None
    kind, name = base.get("kind"), base.get("name")
    return Base.model_construct(kind=kind, name=name) if isinstance(kind, str) and isinstance(name, str) else None


PROVIDER: Final = Provider(
    KIND,
    MANUAL_SCHEDULES.plural,
    spec=ManualScheduleSpec,
    decide=decide,
    version=MANUAL_SCHEDULES.version,
    # Cluster API's MachineSets claim `ms` as well, and kubectl prefers them.
    short_names=("ms", "manual"),
    columns=(Column("Enabled", "boolean", ".spec.enabled"), Column("Base", "string", ".spec.base.name")),
    description="A schedule that is decided by hand: a switch, or another schedule with overrides on top of it.",
    reads=(SCHEDULES, MANUAL_SCHEDULES),
)
