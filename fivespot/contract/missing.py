"""Why a schedule that is referred to cannot be found, in the words and the order of the contract."""

from __future__ import annotations

from .reading import Reference, Unresolved
from .reasons import PROVIDER_CRD_NOT_INSTALLED, PROVIDER_NOT_FOUND

__all__ = ["kind_missing", "kind_unusable", "object_missing"]


def kind_missing(kind: str, *, group: str, field: str) -> Unresolved:
    """No definition of the group accepts the kind.

    :param field: the field that holds the reference, such as ``spec.schedule``.
    """
    return Unresolved(
        PROVIDER_CRD_NOT_INSTALLED,
        f"no CustomResourceDefinition of group {group} accepts kind {kind}: "
        f"install the provider, or correct {field}.kind",
    )


def kind_unusable(definition: str, problem: str) -> Unresolved:
    """A definition exists and serves no namespaced objects.

    :param definition: its name.
    :param problem: what it lacks.
    """
    return Unresolved(
        PROVIDER_CRD_NOT_INSTALLED, f"CustomResourceDefinition {definition}: {problem or 'it is not namespaced'}"
    )


def object_missing(reference: Reference, *, namespace: str, field: str) -> Unresolved:
    """The kind is there, the object is not."""
    return Unresolved(
        PROVIDER_NOT_FOUND,
        f"{reference} does not exist in namespace {namespace}: create it, or correct {field}.name",
    )
