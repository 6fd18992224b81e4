"""The subject of a conformance run: a kind, specs for each of its states, and the YAML files that they come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from fivespot.api.names import PROVIDER_GROUP
from fivespot.api.yaml_documents import load_documents
from fivespot.runtime import ConfigError
from fivespot.runtime.objects import rfc3339

__all__ = [
    "SHIPPED",
    "BoundarySpec",
    "Flip",
    "Restart",
    "Samples",
    "Spec",
    "Subject",
    "Timing",
    "read_samples",
    "read_spec",
    "soon",
]

Spec: TypeAlias = Mapping[str, Any]
"""The ``spec`` of a manifest."""

Flip: TypeAlias = Callable[[str, str, bool], Awaitable[None]]
"""``await flip(namespace, name, active)`` changes the source that the provider reads, where that is not its spec."""

Restart: TypeAlias = Callable[[], Awaitable[None]]
"""Restarts the provider's process; need not wait until it is ready."""

BoundarySpec: TypeAlias = Callable[[datetime], tuple[Spec, datetime]]
"""Maps the current instant to a spec that is active now, and to the instant within seconds at which that ends."""

_STATES = ("active", "inactive", "invalid", "soon")
_SOON: Final = "$(SOON)"
"""Stands for the instant of the boundary in the spec of the state ``soon``."""
_AHEAD = timedelta(seconds=8)
"""Time until the boundary. The verdict before it has to be written by then, also on a busy machine."""
_ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
_NO_ZONE = "Europe/Nowhere"
_NO_SESSIONS = {"timezone": "UTC", "sessions": []}
_OFF = {"enabled": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A provider under test: its kind, and specs that put it into each state.

    :param kind: such as ``OfficeHours``.
    :param active: a spec that is active now and stays so for minutes.
    :param inactive: a spec that is inactive for as long. Not needed with ``flip``.
    :param invalid: a spec that the API server admits and the provider reports as invalid. Without it the rules on
        invalid specs are skipped.
    :param flip: for providers that read an external source; every object then has the ``active`` spec.
    :param boundary: without it the rule on boundaries is skipped.
    :param restart: without it the rule on restarts is skipped.
    :param prerequisites: other objects, with apiVersion and kind, that the specs refer to; created first, in the same
        namespace.
    :param version: the served version to use; "" for the server's preferred one.
    """

    kind: str
    active: Spec
    inactive: Spec | None = None
    invalid: Spec | None = None
    flip: Flip | None = None
    boundary: BoundarySpec | None = None
    restart: Restart | None = None
    prerequisites: Sequence[Mapping[str, Any]] = ()
    version: str = ""
    group: str = PROVIDER_GROUP

    def __post_init__(self) -> None:
        """Check that an object can become inactive.

        :raises ConfigError: neither ``inactive`` nor ``flip`` is given.
        """
        if self.inactive is None and self.flip is None:
            raise ConfigError(f"{self.kind}: a spec that is inactive is required, or a way to flip its source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Limits of a run, in seconds.

    :param settle: limit for a verdict after the change that it follows from.
    :param steady: time in which nothing may be written. For a provider that polls it should be a little longer than the
        interval, or a needless write is missed.
    :param total: limit of the run; rules that are still being checked then fail.
    """

    settle: float = 10.0
    steady: float = 5.0
    total: float = 180.0


@dataclass(frozen=True, slots=True)
class Samples:
    """The specs in a file, and its other objects."""

    active: Spec | None = None
    inactive: Spec | None = None
    invalid: Spec | None = None
    soon: Spec | None = None
    prerequisites: tuple[Mapping[str, Any], ...] = ()

    def subject(self, kind: str, **more: Any) -> Subject:
        """Build the subject of a run.

        :param more: further fields of :class:`~fivespot.testing.conformance.Subject`.
        :raises ConfigError: a state is missing.
        """
        if self.active is None:
            raise ConfigError(f"{kind}: a spec that is active is required")
        return Subject(
            kind=kind,
            active=self.active,
            inactive=self.inactive,
            invalid=self.invalid,
            prerequisites=self.prerequisites,
            **{"boundary": soon(self.soon) if self.soon is not None else None, **more},
        )


def soon(spec: Spec) -> BoundarySpec:
    """Build the boundary of a subject from a spec in which ``$(SOON)`` stands for the instant at which it ends.

    :raises ConfigError: the spec does not hold it.
    """
    if not _holds_soon(spec):
        raise ConfigError(f"the spec that ends soon must hold {_SOON}, which stands for the instant at which it ends")

    def boundary(now: datetime) -> tuple[Spec, datetime]:
        ends = (now + _AHEAD).replace(microsecond=0)
        return _with_soon(spec, rfc3339(ends)), ends

    return boundary


def _holds_soon(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_soon, value.values()))
    return any(map(_holds_soon, value)) if isinstance(value, list) else isinstance(value, str) and _SOON in value


def _with_soon(value: Any, instant: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_soon(member, instant) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_soon(item, instant) for item in value]
    return value.replace(_SOON, instant) if isinstance(value, str) else value


def read_spec(text: str, *, source: str, kind: str) -> Spec:
    """Read the spec from one document: a manifest, or a bare spec.

    :param source: name of the text in messages.
    :raises ConfigError: it is neither.
    """
    documents = _documents(text, source)
    if len(documents) != 1:
        raise ConfigError(f"{source}: one document is required, found {len(documents)}")
    [document] = documents
    if "apiVersion" not in document and "kind" not in document:
        return document
    if document.get("kind") != kind:
        raise ConfigError(f"{source}: the object has kind {document.get('kind')}, not {kind}")
    return _spec(document, source)


def read_samples(text: str, *, source: str, kind: str) -> Samples:
    """Read all samples from a file of several documents.

    Objects of the kind are named ``active``, ``inactive``, ``invalid`` and ``soon`` (see :func:`soon`); all others are
    prerequisites.

    :raises ConfigError: it holds none of them, or is no such file.
    """
    specs: dict[str, Spec] = {}
    others = []
    for document in _documents(text, source):
        name = (document.get("metadata") or {}).get("name")
        if document.get("kind") == kind and name in _STATES:
            if name in specs:
                raise ConfigError(f"{source}: there is more than one {kind} {name}")
            specs[name] = _spec(document, source)
        else:
            others.append(document)
    if not specs:
        raise ConfigError(f"{source}: there is no {kind} named {', '.join(_STATES[:-1])} or {_STATES[-1]}")
    return Samples(**specs, prerequisites=tuple(others))


def _documents(text: str, source: str) -> list[dict[str, Any]]:
    found = [document for document in load_documents(text, source) if document is not None]
    if not all(isinstance(document, dict) for document in found):
        raise ConfigError(f"{source}: a document is not a mapping")
    return found


def _spec(document: Mapping[str, Any], source: str) -> Spec:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        raise ConfigError(f"{source}: {document.get('kind')} has no spec")
    return spec


def _valid_until(now: datetime) -> tuple[Spec, datetime]:
    ends = (now + _AHEAD).replace(microsecond=0)
    return {**_ALWAYS, "validUntil": rfc3339(ends)}, ends


def _overridden(base: Spec) -> BoundarySpec:
    """Add an override that ends within seconds to a spec that is inactive."""

    def boundary(now: datetime) -> tuple[Spec, datetime]:
        ends = (now + _AHEAD).replace(microsecond=0)
        return {**base, "overrides": [{"name": "conformance", "active": True, "until": rfc3339(ends)}]}, ends

    return boundary


SHIPPED: Final[Mapping[str, Subject]] = MappingProxyType(
    {
        subject.kind: subject
        for subject in (
            Subject(
                kind="TimeBasedSpotSchedule",
                active=_ALWAYS,
                inactive={"daysOfWeek": [], "hoursOfDay": []},
                invalid={**_ALWAYS, "timezone": _NO_ZONE},
                boundary=_valid_until,
            ),
            Subject(
                kind="CapitalMarketsSchedule",
                active={"timezone": "UTC", "sessions": [_ALWAYS]},
                inactive=_NO_SESSIONS,
                invalid={"timezone": _NO_ZONE, "sessions": [_ALWAYS]},
                boundary=_overridden(_NO_SESSIONS),
            ),
            Subject(
                kind="ManualSchedule",
                active={"enabled": True},
                inactive=_OFF,
                invalid={"base": {"kind": "ManualSchedule", "name": "conformance-nowhere"}},
                boundary=_overridden(_OFF),
            ),
        )
    }
)
"""Kind -> subject, of the kinds shipped with fivespot."""
