"""What a run of ``fivespot manager`` was told, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fivespot.runtime.errors import ConfigError

from . import options
from .loading import load_providers

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider

__all__ = ["ManagerOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """The command line of one run, checked and complete.

    :param controllers: shipped kinds, in lower case.
    :param providers: those that ``--provider`` names.
    """

    controllers: tuple[str, ...]
    providers: tuple[Provider[Any], ...] = ()
    namespaces: tuple[str, ...] | None
    kubeconfig: str | None
    context: str | None
    bind_address: str | None
    metrics_port: int
    health_port: int
    log_format: Literal["json", "text"]
    verbose: int
    leader_election: bool
    lease_name: str
    lease_namespace: str
    lease_duration: float
    lease_renew_deadline: float
    lease_retry_period: float
    dry_run: bool
    force_finalizer_on_timeout: bool
    max_deletions_per_minute: int | None
    capi_version: str | None
    instance_id: int
    pod_name: str
    event_loop: Literal["asyncio", "uvloop"]

    @classmethod
    def parse(cls, given: dict[str, Any]) -> ManagerOptions:
        """Check what click collected.

        :raises ConfigError: a value cannot be used, or the values do not fit together.
        """
        if given.pop("instance_count") > 1:
            raise ConfigError("--instance-count above 1 is not supported yet, use leader election")
        if given["metrics_port"] == given["health_port"] != 0:
            raise ConfigError(f"--metrics-port and --health-port are both {given['health_port']}; they must differ")
        providers = load_providers(given.pop("provider"))
        chosen = options.controllers(given.pop("controllers"), alone=not providers)
        names = options.reconcilers(chosen, [provider.name for provider in providers])
        capi = given.pop("capi_machine_api_version")
        return cls(
            controllers=chosen,
            providers=providers,
            namespaces=options.namespaces(given.pop("namespaces")),
            lease_name=options.lease_name(given.pop("lease_name"), names),
            capi_version=options.api_version(capi),
            **given,
        )

    @property
    def reconcilers(self) -> tuple[str, ...]:
        """All that runs, in lower case, sorted."""
        return tuple(sorted([*self.controllers, *(provider.name for provider in self.providers)]))
