"""What the environment of a process says about how it is to run: the variables of ``fivespot manager``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fivespot.api.names import ANNOTATION_RECONCILERS, SYSTEM_NAMESPACE
from fivespot.runtime.errors import ConfigError

if TYPE_CHECKING:
    from fivespot.runtime import ElectionSettings, ManagerSettings, ServingSettings

__all__ = ["in_pod", "settings_from"]

_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE: Final = frozenset({"", "0", "false", "f", "no", "n", "off"})


def in_pod(environ: Mapping[str, str], kubeconfig: str | None) -> bool:
    """Whether the process runs under a pod's ServiceAccount (Kubernetes, "Accessing the Kubernetes API from a Pod")."""
    return kubeconfig is None and not environ.get("KUBECONFIG") and bool(environ.get("KUBERNETES_SERVICE_HOST"))


def settings_from(
    environ: Mapping[str, str], reconcilers: Sequence[str], *, pod: bool, identity: str
) -> ManagerSettings:
    """Endpoints and leader election of a program that runs providers.

    In a pod it listens on ports 8080 and 8081 and stands for election, so that a second replica may stand by; elsewhere
    it does neither unless a variable says so.

    :param identity: who we are in the Lease, where ``POD_NAME`` does not say.
    :raises ConfigError: a variable cannot be used; the text names it.
    """
    from fivespot.runtime import ManagerSettings  # noqa: PLC0415 - it brings an HTTP server

    return ManagerSettings(
        serving=_serving(environ, pod),
        election=_election(environ, reconcilers, pod, identity),
        tune_collector=True,
    )


def _serving(environ: Mapping[str, str], pod: bool) -> ServingSettings | None:
    from fivespot.runtime import ServingSettings  # noqa: PLC0415

    if not pod and not environ.get("METRICS_PORT") and not environ.get("HEALTH_PORT"):
        return None
    metrics, health = _port(environ, "METRICS_PORT", 8080), _port(environ, "HEALTH_PORT", 8081)
    if metrics == health != 0:
        raise ConfigError(f"METRICS_PORT and HEALTH_PORT are both {health}; they must differ")
    return ServingSettings(
        bind_address="0.0.0.0" if pod else "127.0.0.1",  # noqa: S104 - a pod's probes come from outside
        metrics_port=metrics,
        health_port=health,
    )


def _election(
    environ: Mapping[str, str], reconcilers: Sequence[str], pod: bool, identity: str
) -> ElectionSettings | None:
    from fivespot.runtime import ElectionSettings, ElectionTimings  # noqa: PLC0415

    if not _flag(environ, "ENABLE_LEADER_ELECTION", pod):
        return None
    names = tuple(sorted(reconcilers))
    try:
        timings = ElectionTimings(
            _seconds(environ, "LEASE_DURATION_SECONDS", 15.0),
            _seconds(environ, "LEASE_RENEW_DEADLINE_SECONDS", 10.0),
            _seconds(environ, "LEASE_RETRY_PERIOD_SECONDS", 2.0),
        )
    except ValueError as error:
        raise ConfigError(
            f"LEASE_DURATION_SECONDS, LEASE_RENEW_DEADLINE_SECONDS, LEASE_RETRY_PERIOD_SECONDS: {error}"
        ) from error
    return ElectionSettings(
        namespace=environ.get("POD_NAMESPACE") or SYSTEM_NAMESPACE,
        name=environ.get("LEASE_NAME") or f"5spot-{'-'.join(names)}-leader",
        identity=environ.get("POD_NAME") or identity,
        annotation=ANNOTATION_RECONCILERS,
        members=names,
        timings=timings,
    )


def _port(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise ConfigError(f"{name}: {text!r} is no port; write a number from 0 (a free one) to 65535")
    return int(text)


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name) or str(default)
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is no number of seconds") from None


def _flag(environ: Mapping[str, str], name: str, default: bool) -> bool:
    text = environ.get(name)
    if text is None:
        return default
    if text.lower() not in _TRUE | _FALSE:
        raise ConfigError(f"{name}: {text!r} is neither true nor false")
    return text.lower() in _TRUE
