"""CustomResourceDefinitions, read without their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from fivespot.runtime.objects import KindState, Object

__all__ = ["by_priority", "read_definition"]


class _Names(msgspec.Struct, gc=False):
    kind: str = ""
    plural: str = ""


class _Version(msgspec.Struct, gc=False):
    name: str
    served: bool = False
    storage: bool = False


class _Spec(msgspec.Struct, gc=False):
    group: str
    names: _Names
    scope: str
    versions: list[_Version]


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, gc=False, rename="camel"):
    accepted_names: _Names | None = None
    conditions: list[_Condition] | None = None


class _Definition(msgspec.Struct, gc=False):
    spec: _Spec
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Definition)


def read_definition(obj: Object) -> KindState:
    """Read the state of a kind from its whole CustomResourceDefinition.

    The kind is the one that the API server *accepted*: while names are in conflict with another definition it goes
    on serving the earlier ones, or none.

    :raises ProtocolError: it is no CustomResourceDefinition.
    """
    definition = obj.decode_as(_decoder)
    spec, status = definition.spec, definition.status or _Status()
    conditions = {condition.type: condition.status for condition in status.conditions or ()}
    accepted = status.accepted_names or spec.names
    head = obj.head
    return KindState(
        group=spec.group,
        kind=accepted.kind or spec.names.kind,
        plural=accepted.plural or spec.names.plural,
        crd_name=head.name,
        namespaced=spec.scope == "Namespaced",
        established=conditions.get("Established") == "True",
        deleting=head.deleting or conditions.get("Terminating") == "True",
        served=by_priority(version.name for version in spec.versions if version.served),
        storage=next((version.name for version in spec.versions if version.storage), ""),
        labels=head.labels,
        uid=head.uid,
        version=head.version,
    )


_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


def by_priority(versions: Iterable[str]) -> tuple[str, ...]:
    """Sort by Kubernetes version priority: v2, v1, v2beta1, v1beta2, v1alpha1, then other names in alphabetical order.

    Source: Kubernetes documentation, "Versions in CustomResourceDefinitions", "Version priority".
    """

    def rank(name: str) -> tuple[int, int, int, int, str]:
        match = _VERSION.fullmatch(name)
        if match is None:
            return (1, 0, 0, 0, name)
        major, stage, minor = match.groups()
        return (0, -_STABILITY[stage], -int(major), -int(minor or 0), name)

    return tuple(sorted(versions, key=rank))
