"""The schedules of the files, and the provider of each kind: a shipped one, or one named on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fivespot.api import names
from fivespot.cli.provider_loader import load_providers
from fivespot.providers.registry import SHIPPED, shipped_provider
from fivespot.providers.sdk import Provider
from fivespot.runtime import ConfigError
from fivespot.runtime.objects import group_of

__all__ = ["ProviderKinds", "Schedule", "find", "find_schedules", "listed", "select", "zone_name"]

_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule object from a file."""

    kind: str
    name: str
    namespace: str
    body: Mapping[str, Any] = field(repr=False, hash=False, compare=False)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def title(self) -> str:
        """Return the display name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def identity(self) -> str:
        return f"{self.kind} {self.namespace} {self.name}"

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return its spec; empty if that is not an object."""
        return _mapping(self.body.get("spec"))


def find_schedules(objects: Sequence[Mapping[str, Any]]) -> list[Schedule]:
    """Return the schedules among objects, in their order.

    :raises ConfigError: a schedule has no name, or two have the same one.
    """
    found: dict[str, Schedule] = {}
    for body in objects:
        if group_of(str(body.get("apiVersion"))) != names.PROVIDER_GROUP:
            if body["kind"] in SHIPPED:
                raise ConfigError(
                    f"{body['kind']}: apiVersion is {body.get('apiVersion')!r}, it must be {names.PROVIDER_API_VERSION}"
                )
            continue
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        name, namespace = metadata.get("name"), metadata.get("namespace") or ""
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{body['kind']}: metadata.name is required")
        schedule = Schedule(body["kind"], name, str(namespace), body)
        if found.setdefault(schedule.identity, schedule) is not schedule:
            raise ConfigError(f"{schedule.title} occurs twice")
    return list(found.values())


def select(schedules: Sequence[Schedule], wanted: str | None, *, where: str) -> list[Schedule]:
    """Return the schedules of that name (``NAME`` or ``KIND/NAME``); all if no name is given.

    :raises ConfigError: there is none.
    """
    if not schedules:
        raise ConfigError(f"{where} contains no schedule (an object of {names.PROVIDER_GROUP})")
    if wanted is None:
        return list(schedules)
    kind, _, name = wanted.rpartition("/")
    found = [s for s in schedules if s.name == name and kind.lower() in ("", s.kind.lower())]
    if not found:
        near = difflib.get_close_matches(name, [s.name for s in schedules], n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(f"--name {wanted}: {where} contains no such schedule; {hint}it holds {listed(schedules)}")
    return found


def listed(schedules: Sequence[Schedule]) -> str:
    """Return the first names, for a message."""
    more = f" and {len(schedules) - _LISTED} more" if len(schedules) > _LISTED else ""
    return ", ".join(str(schedule) for schedule in schedules[:_LISTED]) + more


def find(schedules: Sequence[Schedule], namespace: str, kind: str, name: str) -> Schedule | None:
    """Find the schedule of that kind and name in a namespace; objects in a file may leave out theirs."""
    for schedule in schedules:
        same_place = "" in (namespace, schedule.namespace) or namespace == schedule.namespace
        if same_place and (schedule.kind, schedule.name) == (kind, name):
            return schedule
    return None


def zone_name(schedule: Schedule, schedules: Sequence[Schedule]) -> str:
    """Return the time zone of a schedule, or of its base; UTC if neither has one."""
    seen: set[str] = set()
    current: Schedule | None = schedule
    while current is not None and current.identity not in seen:
        seen.add(current.identity)
        zone = current.spec.get("timezone")
        if isinstance(zone, str) and zone:
            return zone
        base = _mapping(current.spec.get("base"))
        current = find(schedules, current.namespace, str(base.get("kind")), str(base.get("name")))
    return "UTC"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class ProviderKinds:
    """Kind -> provider.

    :param texts: ``MODULE:OBJECT`` of the user's providers, which take precedence over shipped ones.
    :raises ConfigError: one cannot be loaded.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._own = {provider.kind: provider for provider in load_providers(texts)}

    def provider(self, schedule: Schedule) -> Provider[Any]:
        """Return the provider of the schedule.

        :raises ConfigError: its kind is unknown.
        """
        kind = schedule.kind
        if kind in self._own:
            return self._own[kind]
        if kind in SHIPPED:
            return shipped_provider(kind)
        known = sorted({*SHIPPED, *self._own})
        near = difflib.get_close_matches(kind, known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"{schedule}: unknown kind of schedule; {hint}known: {', '.join(known)}; name the provider of another "
            "kind with --provider MODULE:OBJECT"
        )
