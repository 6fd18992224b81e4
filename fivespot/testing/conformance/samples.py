"""Specs for a run from the YAML that people have: manifests, or a file with a document for each state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

import yaml

from fivespot.runtime.errors import ConfigError
from fivespot.runtime.objects import rfc3339

from .subject import Soon, Spec, Subject

__all__ = ["SHIPPED", "Samples", "read_samples", "read_spec"]

_STATES = ("active", "inactive", "invalid")


@dataclass(frozen=True, slots=True)
class Samples:
    """The specs that a file holds, and the other objects in it."""

    active: Spec | None = None
    inactive: Spec | None = None
    invalid: Spec | None = None
    prerequisites: tuple[Mapping[str, Any], ...] = ()

    def subject(self, kind: str, **more: Any) -> Subject:
        """What the kit is to be told of a kind.

        :param more: further fields of :class:`~fivespot.testing.conformance.Subject`.
        :raises ConfigError: a state is missing.
        """
        if self.active is None:
            raise ConfigError(f"{kind}: a spec that is active is needed")
        return Subject(
            kind=kind,
            active=self.active,
            inactive=self.inactive,
            invalid=self.invalid,
            prerequisites=self.prerequisites,
            **more,
        )


def read_spec(text: str, *, source: str, kind: str) -> Spec:
    """The spec in one document: that of a manifest, or a bare spec.

    :param source: what messages call the text.
    :raises ConfigError: it is no such document.
    """
    documents = _documents(text, source)
    if len(documents) != 1:
        raise ConfigError(f"{source}: one document is needed, there are {len(documents)}")
    [document] = documents
    if "apiVersion" not in document and "kind" not in document:
        return document
    if document.get("kind") != kind:
        raise ConfigError(f"{source}: an object of the kind {kind} is needed, this is a {document.get('kind')}")
    return _spec(document, source)


def read_samples(text: str, *, source: str, kind: str) -> Samples:
    """All that a file of several documents holds.

    Objects of the kind are named ``active``, ``inactive`` and ``invalid``; any others are prerequisites.

    :raises ConfigError: it is no such file.
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
    return Samples(specs.get("active"), specs.get("inactive"), specs.get("invalid"), tuple(others))


def _documents(text: str, source: str) -> list[dict[str, Any]]:
    try:
        found = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{source}: not valid YAML{where}") from error
    if not all(isinstance(document, dict) for document in found):
        raise ConfigError(f"{source}: a document is no mapping")
    return found


def _spec(document: Mapping[str, Any], source: str) -> Spec:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        raise ConfigError(f"{source}: {document.get('kind')} has no spec")
    return spec


_AHEAD = timedelta(seconds=8)

"""Until the boundary that is looked at. The verdict before it has to be there by then, also on a busy machine."""

_ALWAYS = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}

_NO_ZONE = "Europe/Nowhere"


def _valid_until(now: datetime) -> tuple[Spec, datetime]:
    ends = (now + _AHEAD).replace(microsecond=0)
    return {**_ALWAYS, "validUntil": rfc3339(ends)}, ends


def _overridden(base: Spec) -> Soon:
    """An override that ends within seconds, over a spec that is inactive."""

    def soon(now: datetime) -> tuple[Spec, datetime]:
        ends = (now + _AHEAD).replace(microsecond=0)
        return {**base, "overrides": [{"name": "conformance", "active": True, "until": rfc3339(ends)}]}, ends

    return soon


_NO_SESSIONS = {"timezone": "UTC", "sessions": []}

_OFF = {"enabled": False}

SHIPPED: Final[Mapping[str, Subject]] = MappingProxyType(
    {
        subject.kind: subject
        for subject in (
            Subject(
                kind="TimeBasedSpotSchedule",
                active=_ALWAYS,
                inactive={"daysOfWeek": [], "hoursOfDay": []},
                invalid={**_ALWAYS, "timezone": _NO_ZONE},
                soon=_valid_until,
            ),
            Subject(
                kind="CapitalMarketsSchedule",
                active={"timezone": "UTC", "sessions": [_ALWAYS]},
                inactive=_NO_SESSIONS,
                invalid={"timezone": _NO_ZONE, "sessions": [_ALWAYS]},
                soon=_overridden(_NO_SESSIONS),
            ),
            Subject(
                kind="ManualSchedule",
                active={"enabled": True},
                inactive=_OFF,
                invalid={"base": {"kind": "ManualSchedule", "name": "conformance-nowhere"}},
                soon=_overridden(_OFF),
            ),
        )
    }
)

"""Kind -> what the kit has to be told of it."""
