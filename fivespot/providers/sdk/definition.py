"""A provider as a value: its kind, its spec and its decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from fivespot.api import ApiModel
from fivespot.api.names import PROVIDER_GROUP, PROVIDER_VERSION
from fivespot.runtime.objects import Resource

from .verdict import Verdict

__all__ = ["Provider"]

Spec = TypeVar("Spec", bound=ApiModel)


@dataclass(frozen=True)
class Provider(Generic[Spec]):
    """A kind of schedule and how it decides.

    ``decide`` gets what ``prepare`` made of the spec and an aware UTC instant. Both are pure: no clock, no I/O.

    :param kind: such as ``OfficeHours``.
    :param plural: the resource, such as ``officehours``.
    :param spec: the pydantic model of ``spec``; what it refuses is an invalid spec.
    :param prepare: called once per generation; raises :class:`~fivespot.providers.sdk.SpecError` (or any ValueError
        with a text for people) for a spec that cannot be followed.
    :param decide: the verdict at an instant.
    :param metrics: prefix of the provider's metrics, such as ``fivespot_time_based``.
    :param version: the served version that is read and written.
    """

    kind: str
    plural: str
    spec: type[Spec]
    prepare: Callable[[Spec], Any]
    decide: Callable[[Any, datetime], Verdict]
    metrics: str
    version: str = PROVIDER_VERSION

    @property
    def resource(self) -> Resource:
        return Resource(PROVIDER_GROUP, self.version, self.plural, self.kind)

    @property
    def name(self) -> str:
        """The name of its controller: the kind in lower case."""
        return self.kind.lower()
