"""The spec of a ScheduledMachine, parsed once per generation.

Parsing is lenient: an object stored before a rule existed must still be shut down and deleted, so each field has a
value even where the spec is invalid, and ``problems`` lists what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypedDict

import msgspec

from fivespot.api import InvalidObject, validate_machine
from fivespot.contract import Reference
from fivespot.runtime import GroupKind, Object
from fivespot.runtime.errors import ProtocolError
from fivespot.runtime.objects import group_of, share, version_of

from .children import template_hash

__all__ = ["SpecView", "TemplateKind", "outline", "read_references", "read_spec"]

_DURATION = re.compile(r"0*([0-9]+)([smh])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_DEFAULT_TIMEOUT = timedelta(minutes=5)
_LONGEST = timedelta(hours=24)
_NOT_ACTED_ON = ("killIfCommands", "kubeconfigSecretRef", "kata")


@dataclass(frozen=True, slots=True)
class TemplateKind:
    """Kind and version of an embedded object, without its body."""

    group_kind: GroupKind
    version: str

    def __str__(self) -> str:
        return f"{self.group_kind.kind} ({self.group_kind.group}/{self.version})"


@dataclass(frozen=True, slots=True)
class SpecView:
    """The fields of the spec that ``decide`` needs, without any that could hold a credential."""

    schedule: Reference
    enabled: bool = True
    kill_switch: bool = False
    cluster: str = ""
    bootstrap: TemplateKind | None = None
    infrastructure: TemplateKind | None = None
    priority: int = 50
    grace: timedelta = _DEFAULT_TIMEOUT
    drain_timeout: timedelta = _DEFAULT_TIMEOUT
    tainted: bool = False
    template_hash: str = ""
    unsupported: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def drains(self) -> bool:
        """Whether the node is drained; ``0s`` means that it is not."""
        return self.drain_timeout > timedelta(0)


class _Template(TypedDict, total=False):
    apiVersion: Any
    kind: Any


class _Spec(TypedDict, total=False):
    schedule: Any
    clusterName: Any
    bootstrapSpec: _Template
    infrastructureSpec: _Template


class _Status(TypedDict, total=False):
    bootstrapRef: Any
    infrastructureRef: Any


class _Outline(TypedDict, total=False):
    spec: _Spec
    status: _Status


_outline_decoder = msgspec.json.Decoder(_Outline)


def outline(obj: Object) -> Mapping[str, Any]:
    """Decode what a ScheduledMachine refers to, in spec and status, and nothing of its embedded objects."""
    try:
        return obj.decode_as(_outline_decoder)
    except ProtocolError:
        # Stored before there was a schema, with a text where an object belongs.
        return obj.decode()


def read_references(body: Mapping[str, Any]) -> SpecView:
    """Read only the references of the spec: schedule, Cluster and template kinds. Cheap enough for every event."""
    spec = _mapping(body.get("spec"))
    schedule = _mapping(spec.get("schedule"))
    return SpecView(
        schedule=Reference(_text(schedule.get("kind")), _text(schedule.get("name"))),
        cluster=_text(spec.get("clusterName")),
        bootstrap=_template(spec.get("bootstrapSpec")),
        infrastructure=_template(spec.get("infrastructureSpec")),
    )


def read_spec(body: Mapping[str, Any]) -> SpecView:
    """Read a stored ScheduledMachine. Never raises for what the object holds."""
    problems: tuple[str, ...] = ()
    try:
        validate_machine(body)
    except InvalidObject as error:
        problems = tuple(str(problem) for problem in error.problems)
    refers = read_references(body)
    bootstrap, infrastructure = refers.bootstrap, refers.infrastructure
    if bootstrap is not None and infrastructure is not None and bootstrap.group_kind == infrastructure.group_kind:
        problems += (
            "spec.infrastructureSpec.kind: must differ from bootstrapSpec.kind, since both objects have the same name",
        )
    spec = _mapping(body.get("spec"))
    priority = spec.get("priority", 50)
    return replace(
        refers,
        enabled=spec.get("enabled") is not False,
        kill_switch=spec.get("killSwitch") is True,
        priority=priority if isinstance(priority, int) else 50,
        grace=_duration(spec.get("gracefulShutdownTimeout")),
        drain_timeout=_duration(spec.get("nodeDrainTimeout")),
        tainted=bool(spec.get("nodeTaints")),
        template_hash=template_hash(spec),
        unsupported=tuple(field for field in _NOT_ACTED_ON if spec.get(field)),
        problems=problems,
    )


def _template(value: object) -> TemplateKind | None:
    embedded = _mapping(value)
    api_version, kind = _text(embedded.get("apiVersion")), _text(embedded.get("kind"))
    if not kind or not group_of(api_version):
        return None
    return TemplateKind(GroupKind(group_of(api_version), kind), version_of(api_version))


def _duration(value: object) -> timedelta:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return _DEFAULT_TIMEOUT
    if len(found[1]) > 6:
        return _LONGEST
    return min(timedelta(seconds=int(found[1]) * _UNITS[found[2]]), _LONGEST)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    # Interned, because thousands of specs name the same few schedules, clusters and kinds.
    return share(value) if isinstance(value, str) else ""
