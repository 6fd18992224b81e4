"""Derive the CustomResourceDefinition of a provider's kind from its spec model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Optional

from pydantic import BaseModel, Field, create_model

from fivespot.api.names import LABEL_CLUSTERCTL, LABEL_CLUSTERCTL_MOVE, PROVIDER_GROUP
from fivespot.api.types import ApiModel, ScheduleStatus
from fivespot.runtime.crd import Column, CrdVersion, crd

from .override_spec import Overrides, OverrideStatuses

__all__ = ["Kind", "kind_definition", "spec_model"]

_READY: Final = '.status.conditions[?(@.type=="Ready")]'

_OVERRIDES: Final = "Decisions for a time, over what the schedule says. Of those that have started and not ended, the \
one that started last decides; of two that started at once, the one whose name comes last."
_STATUSES: Final = "The state of each override."
_SPEC: Final = "The times at which machines should exist."
_STATUS: Final = "The current verdict, and the time of its next change."


@dataclass(frozen=True, slots=True)
class Kind:
    """The input of a definition."""

    kind: str
    plural: str
    version: str
    spec: type[BaseModel]
    status: type[ScheduleStatus]
    description: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    overrides: bool


def spec_model(spec: type[BaseModel], *, overrides: bool) -> type[BaseModel]:
    """Return the model of the whole ``spec``: the provider's own fields, and those that the kit adds."""
    if not overrides or "overrides" in spec.model_fields:
        return spec
    optional = Annotated[Overrides | None, Field(description=_OVERRIDES)]
    return create_model(
        spec.__name__, __base__=spec, __module__=spec.__module__, __doc__=spec.__doc__, overrides=(optional, None)
    )


def kind_definition(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition.

    :raises SchemaError: a field has no schema; the text names it.
    """
    status: type[BaseModel] = kind.status
    if kind.overrides and "overrides" not in status.model_fields:
        optional = Annotated[OverrideStatuses | None, Field(description=_STATUSES)]
        status = create_model(status.__name__, __base__=status, __doc__=status.__doc__, overrides=(optional, None))
    optional_status: Any = Optional[status]  # noqa: UP045 - a value, which `|` would make for a name only
    root = create_model(
        kind.kind,
        __base__=ApiModel,
        __doc__=kind.description,
        spec=(kind.spec, Field(description=_SPEC)),
        status=(optional_status, Field(default=None, description=_STATUS)),
    )
    return crd(
        group=PROVIDER_GROUP,
        kind=kind.kind,
        plural=kind.plural,
        singular=kind.kind.lower(),
        short_names=kind.short_names,
        columns=(
            Column("Active", "boolean", ".status.active"),
            *kind.columns,
            Column("NextTransition", "string", ".status.nextTransitionTime"),
            Column("Age", "date", ".metadata.creationTimestamp"),
            Column("Reason", "string", f"{_READY}.reason", priority=1),
            Column("Message", "string", f"{_READY}.message", priority=1),
        ),
        # `clusterctl move` takes the kind along.
        labels={LABEL_CLUSTERCTL: "", LABEL_CLUSTERCTL_MOVE: ""},
        versions=(CrdVersion(kind.version, root),),
    )
