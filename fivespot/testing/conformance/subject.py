"""What the kit has to be told of a provider before it can look at it from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from fivespot.api.names import PROVIDER_GROUP
from fivespot.runtime.errors import ConfigError

__all__ = ["Flip", "Restart", "Soon", "Spec", "Subject", "Timing"]

Spec: TypeAlias = Mapping[str, Any]
"""A ``spec`` as it stands in a manifest."""

Flip: TypeAlias = Callable[[str, str, bool], Awaitable[None]]
"""``await flip(namespace, name, active)`` changes what the provider looks at, where that is not its own spec."""

Restart: TypeAlias = Callable[[], Awaitable[None]]
"""Ends the provider's process and starts it again; need not wait until it works."""

Soon: TypeAlias = Callable[[datetime], tuple[Spec, datetime]]
"""From the present instant: a spec that is active now, and the instant within seconds at which it ends to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A provider under test: its kind, and specs that put it into the states that the rules are about.

    :param kind: such as ``OfficeHours``.
    :param active: a spec that is active now and stays so for minutes.
    :param inactive: one that is inactive for as long. Not needed with ``flip``.
    :param invalid: one that the API server admits and the provider cannot follow. Without it the rules about bad
        specs are skipped.
    :param flip: for providers that ask the outside world; every object then has the ``active`` spec.
    :param soon: without it the rule about boundaries is skipped.
    :param restart: without it the rule about restarts is skipped.
    :param prerequisites: other objects, with apiVersion and kind, that the specs refer to; made first, in the same
        namespace.
    :param version: the served version to use; "" for the one that the server prefers.
    """

    kind: str
    active: Spec
    inactive: Spec | None = None
    invalid: Spec | None = None
    flip: Flip | None = None
    soon: Soon | None = None
    restart: Restart | None = None
    prerequisites: Sequence[Mapping[str, Any]] = ()
    version: str = ""
    group: str = PROVIDER_GROUP

    def __post_init__(self) -> None:
        """:raises ConfigError: nothing tells how an object becomes inactive."""
        if self.inactive is None and self.flip is None:
            raise ConfigError(f"{self.kind}: a spec that is inactive is needed, or a way to flip what it looks at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long the kit waits, in seconds.

    :param settle: until a verdict has to be there after what it follows from.
    :param steady: for which nothing may be written. A provider that polls less often than this can hide a needless
        write; give a little more than its interval then.
    :param total: after which rules still under way count as not kept.
    """

    settle: float = 10.0
    steady: float = 5.0
    total: float = 180.0
