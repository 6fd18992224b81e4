"""Check the manager's flags and variables: plain values, without click's machinery and without I/O."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fivespot.providers.registry import SHIPPED
from fivespot.runtime import ConfigError
from fivespot.settings import ProcessSettings, lease_name

from .provider_loader import load_providers

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider
    from fivespot.runtime.manager.entrypoint import EventLoop

__all__ = [
    "CONTROLLERS",
    "MACHINE_CONTROLLER",
    "ManagerOptions",
    "api_version",
    "controllers",
    "namespaces",
    "reconcilers",
]

MACHINE_CONTROLLER = "scheduledmachine"

CONTROLLERS = tuple(sorted((MACHINE_CONTROLLER, *map(str.lower, SHIPPED))))
"""The kinds that ``--controllers`` can name, in lower case."""

_DAY = 86_400

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

_API_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")


def controllers(texts: Sequence[str], *, alone: bool = True) -> tuple[str, ...]:
    """The kinds named by ``--controllers``, sorted; none given, or ``all``, means all.

    :param alone: False where a ``--provider`` is given: none given then means none.
    :raises ConfigError: a kind is unknown.
    """
    chosen = sorted(set(_split(texts))) or (list(CONTROLLERS) if alone else [])
    if "all" in chosen:
        return tuple(CONTROLLERS)
    for name in chosen:
        if name not in CONTROLLERS:
            near = difflib.get_close_matches(name.lower(), CONTROLLERS, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(f"--controllers: unknown kind {name!r}; {hint}known: {', '.join(CONTROLLERS)}")
    return tuple(chosen)


def reconcilers(shipped: Iterable[str], providers: Iterable[str]) -> tuple[str, ...]:
    """All that is to run, sorted.

    :raises ConfigError: a provider of one's own has the kind of a shipped one that runs too.
    """
    names = [*shipped, *providers]
    for name in names:
        if names.count(name) > 1:
            remedy = f"leave {name} out of --controllers to run your own"
            raise ConfigError(f"--provider: {name} is among --controllers as well; {remedy}")
    return tuple(sorted(names))


def namespaces(texts: Sequence[str]) -> tuple[str, ...] | None:
    """The namespaces named by ``--namespaces``, sorted; None for all.

    :raises ConfigError: a name is no namespace name (RFC 1123 label).
    """
    chosen = sorted(set(_split(texts)))
    for name in chosen:
        if _LABEL.fullmatch(name) is None:
            raise ConfigError(f"--namespaces: {name!r} cannot be a namespace (lower-case letters, digits and '-')")
    return tuple(chosen) or None


def api_version(text: str | None) -> str | None:
    """The version in ``CAPI_MACHINE_API_VERSION``; a group before a ``/`` is dropped, "" is none.

    :raises ConfigError: it is no Kubernetes API version.
    """
    version = (text or "").rpartition("/")[2]
    if not version:
        return None
    if _API_VERSION.fullmatch(version) is None:
        raise ConfigError(f"CAPI_MACHINE_API_VERSION: {text!r} is no API version such as v1beta2")
    return version


def _shortest_grace(text: str) -> int:
    from fivespot.api import duration_seconds  # noqa: PLC0415 - it brings the models

    try:
        seconds = duration_seconds(text)
    except ValueError as error:
        raise ConfigError(f"--shortest-grace: {error}") from None
    if seconds > _DAY:
        raise ConfigError(f"--shortest-grace: {text!r} is longer than a day, the longest grace of a ScheduledMachine")
    return seconds


def _split(texts: Sequence[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions(ProcessSettings):
    """The command line of one run, checked and complete.

    :param controllers: shipped kinds, in lower case.
    :param providers: those that ``--provider`` names.
    :param shortest_grace: in seconds.
    """

    NAMED_BY: ClassVar[Literal["variable", "flag"]] = "flag"

    controllers: tuple[str, ...]
    providers: tuple[Provider[Any], ...] = ()
    namespaces: tuple[str, ...] | None
    kubeconfig: str | None
    context: str | None
    log_format: Literal["json", "text"]
    verbose: int
    dry_run: bool
    force_finalizer_on_timeout: bool
    max_deletions_per_minute: int | None
    shortest_grace: int = 0
    max_activations_per_hour: int | None = None
    max_namespace_activations_per_hour: int | None = None
    max_machines_per_namespace: int | None = None
    require_admission_policy: bool = False
    capi_version: str | None
    instance_id: int
    event_loop: EventLoop

    @classmethod
    def parse(cls, given: dict[str, Any]) -> ManagerOptions:
        """Check what click collected.

        :raises ConfigError: a value cannot be used, or the values do not fit together.
        """
        if given.pop("instance_count") > 1:
            raise ConfigError("--instance-count above 1 is not supported yet, use leader election")
        providers = load_providers(given.pop("provider"))
        chosen = controllers(given.pop("controllers"), alone=not providers)
        names = reconcilers(chosen, [provider.name for provider in providers])
        capi = given.pop("capi_machine_api_version")
        options = cls(
            controllers=chosen,
            providers=providers,
            namespaces=namespaces(given.pop("namespaces")),
            lease_name=lease_name(given.pop("lease_name"), names),
            capi_version=api_version(capi),
            shortest_grace=_shortest_grace(given.pop("shortest_grace")),
            **given,
        )
        options.check()
        return options

    @property
    def reconcilers(self) -> tuple[str, ...]:
        """All that runs, in lower case, sorted."""
        return tuple(sorted([*self.controllers, *(provider.name for provider in self.providers)]))
