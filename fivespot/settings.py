"""Process settings of a manager: variables, defaults and checks, for ``fivespot manager`` and for the SDK's ``run``.

The command line offers the same settings as flags. This module imports nothing heavy, so that ``--help`` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeVar

from fivespot.runtime.errors import ConfigError

if TYPE_CHECKING:
    from fivespot.runtime import ElectionSettings, ManagerSettings, ServingSettings
    from fivespot.runtime.manager.entrypoint import EventLoop

__all__ = [
    "ENABLE_LEADER_ELECTION",
    "EVENT_LOOP",
    "HEALTH_PORT",
    "LEASE_DURATION",
    "LEASE_NAME",
    "LEASE_NAMESPACE",
    "LEASE_RENEW_DEADLINE",
    "LEASE_RETRY_PERIOD",
    "METRICS_PORT",
    "POD_NAME",
    "ProcessSettings",
    "Setting",
    "in_pod",
    "lease_name",
    "program_settings",
]

_TRUE: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE: Final = frozenset({"", "0", "false", "f", "no", "n", "off"})
_MACHINE_CONTROLLER: Final = "scheduledmachine"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Setting(Generic[Value]):
    """One setting, by the names that it has in both places.

    :param flag: of ``fivespot manager``.
    :param parse: reads its text; raises ValueError with what to write instead.
    """

    variable: str
    flag: str
    default: Value
    parse: Callable[[str], Value]

    def read(self, environ: Mapping[str, str]) -> Value:
        """The value that the environment gives; an empty variable counts as unset.

        :raises ConfigError: the variable cannot be used; the text names it.
        """
        text = environ.get(self.variable)
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise ConfigError(f"{self.variable}: {error}") from None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= 65_535):
        raise ValueError(f"{text!r} is no port; write a number from 0 (a free one) to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is no number of seconds above 0")
    return seconds


def _flag(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() in _TRUE


def _event_loop(text: str) -> EventLoop:
    match text.lower():
        case "asyncio" | "uvloop" | "auto" as name:
            return name
    raise ValueError(f"{text!r} is no event loop; write asyncio, uvloop or auto")


METRICS_PORT: Final = Setting("METRICS_PORT", "--metrics-port", 8080, _port)
HEALTH_PORT: Final = Setting("HEALTH_PORT", "--health-port", 8081, _port)
ENABLE_LEADER_ELECTION: Final[Setting[bool | None]] = Setting(
    "ENABLE_LEADER_ELECTION", "--enable-leader-election", None, _flag
)
"""None: in a cluster only, where a second replica may be running."""
LEASE_NAME: Final = Setting("LEASE_NAME", "--lease-name", "", str)
LEASE_NAMESPACE: Final = Setting("POD_NAMESPACE", "--lease-namespace", "5spot-system", str)
LEASE_DURATION: Final = Setting("LEASE_DURATION_SECONDS", "--lease-duration-secs", 15.0, _seconds)
LEASE_RENEW_DEADLINE: Final = Setting("LEASE_RENEW_DEADLINE_SECONDS", "--lease-renew-deadline-secs", 10.0, _seconds)
LEASE_RETRY_PERIOD: Final = Setting("LEASE_RETRY_PERIOD_SECONDS", "--lease-retry-period-secs", 2.0, _seconds)
POD_NAME: Final = Setting("POD_NAME", "--pod-name", "", str)
EVENT_LOOP: Final[Setting[EventLoop]] = Setting("EVENT_LOOP", "--event-loop", "asyncio", _event_loop)


def in_pod(environ: Mapping[str, str], kubeconfig: str | None) -> bool:
    """Whether the process runs under a pod's ServiceAccount (Kubernetes, "Accessing the Kubernetes API from a Pod")."""
    return kubeconfig is None and not environ.get("KUBECONFIG") and bool(environ.get("KUBERNETES_SERVICE_HOST"))


def lease_name(given: str, reconcilers: Iterable[str]) -> str:
    """The name of the leader election Lease.

    With the machine controller it is the one that 5-Spot uses, so that the two exclude each other. Otherwise it follows
    from the providers, so that deployments of different ones do not.
    """
    names = sorted(reconcilers)
    if given:
        return given
    return "5spot-leader" if _MACHINE_CONTROLLER in names else f"5spot-{'-'.join(names)}-leader"


def program_settings(
    environ: Mapping[str, str], reconcilers: Iterable[str], *, in_cluster: bool, identity: str
) -> ManagerSettings:
    """The settings of a program that takes them all from its environment.

    In a pod it serves metrics and health checks and stands for election, so that a second replica can stand by;
    elsewhere it does neither unless a variable says so.

    :raises ConfigError: a variable cannot be used; the text names it.
    """
    serve = in_cluster or any(environ.get(port.variable) for port in (METRICS_PORT, HEALTH_PORT))
    settings = ProcessSettings.from_environ(environ)
    return settings.manager_settings(reconcilers, in_cluster=in_cluster, identity=identity, serve=serve)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """Endpoints and leader election of a process that runs a manager.

    :param bind_address: None for all addresses of both families in a cluster, else loopback.
    :param debug: whether to serve ``/debug/...``.
    :param metrics_secure: whether metrics need TLS, and a token that may get ``/metrics``.
    :param metrics_cert_dir: the directory with the certificate for that; "" has one made.
    :param leader_election: None for in a cluster only.
    :param lease_name: "" where it follows from the reconcilers.
    :param pod_name: the identity in the Lease; "" for one that is made up.
    """

    NAMED_BY: ClassVar[Literal["variable", "flag"]] = "variable"
    """The names of settings in messages."""

    bind_address: str | None = None
    metrics_port: int = METRICS_PORT.default
    health_port: int = HEALTH_PORT.default
    leader_election: bool | None = None
    lease_name: str = ""
    lease_namespace: str = LEASE_NAMESPACE.default
    lease_duration: float = LEASE_DURATION.default
    lease_renew_deadline: float = LEASE_RENEW_DEADLINE.default
    lease_retry_period: float = LEASE_RETRY_PERIOD.default
    pod_name: str = ""
    debug: bool = False
    metrics_secure: bool = False
    metrics_cert_dir: str = ""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> ProcessSettings:
        """The settings that the environment gives. :raises ConfigError: a variable cannot be used."""
        return ProcessSettings(
            metrics_port=METRICS_PORT.read(environ),
            health_port=HEALTH_PORT.read(environ),
            leader_election=ENABLE_LEADER_ELECTION.read(environ),
            lease_name=LEASE_NAME.read(environ),
            lease_namespace=LEASE_NAMESPACE.read(environ),
            lease_duration=LEASE_DURATION.read(environ),
            lease_renew_deadline=LEASE_RENEW_DEADLINE.read(environ),
            lease_retry_period=LEASE_RETRY_PERIOD.read(environ),
            pod_name=POD_NAME.read(environ),
        )

    def manager_settings(
        self, reconcilers: Iterable[str], *, in_cluster: bool, identity: str, serve: bool = True
    ) -> ManagerSettings:
        """The settings of the manager.

        :param reconcilers: lower-case kinds that it runs.
        :param identity: the name in the Lease of a process that has no pod name.
        :param serve: whether to listen for metrics and health checks.
        :raises ConfigError: settings do not fit together.
        """
        from fivespot.runtime import ManagerSettings  # noqa: PLC0415 - it brings an HTTP server

        names = tuple(sorted(reconcilers))
        return ManagerSettings(
            serving=self._serving(in_cluster) if serve else None,
            election=self._election(names, in_cluster, identity),
            tune_collector=True,
        )

    def check(self) -> None:
        """Check what needs no import. :raises ConfigError: settings do not fit together."""
        if self.metrics_port == self.health_port != 0:
            both = f"{self._name(METRICS_PORT)} and {self._name(HEALTH_PORT)}"
            raise ConfigError(f"{both} are both {self.health_port}; they must differ")
        if self.metrics_cert_dir and not self.metrics_secure:
            raise ConfigError("--metrics-cert-dir has no effect without --metrics-secure")

    def _serving(self, in_cluster: bool) -> ServingSettings:
        from fivespot.runtime import ServingSettings  # noqa: PLC0415

        self.check()
        return ServingSettings(
            # The probes of a pod come from outside of it.
            bind_address=self.bind_address or ("" if in_cluster else "127.0.0.1"),
            metrics_port=self.metrics_port,
            health_port=self.health_port,
            debug=self.debug,
            metrics_secure=self.metrics_secure,
            metrics_cert_dir=self.metrics_cert_dir,
        )

    def _election(self, reconcilers: tuple[str, ...], in_cluster: bool, identity: str) -> ElectionSettings | None:
        from fivespot.api.names import ANNOTATION_RECONCILERS  # noqa: PLC0415 - it brings the models
        from fivespot.runtime import ElectionSettings  # noqa: PLC0415
        from fivespot.runtime.manager import ElectionTimings  # noqa: PLC0415

        try:
            timings = ElectionTimings(self.lease_duration, self.lease_renew_deadline, self.lease_retry_period)
        except ValueError as error:
            times = (LEASE_DURATION, LEASE_RENEW_DEADLINE, LEASE_RETRY_PERIOD)
            raise ConfigError(f"{', '.join(self._name(setting) for setting in times)}: {error}") from error
        if not (in_cluster if self.leader_election is None else self.leader_election):
            return None
        return ElectionSettings(
            namespace=self.lease_namespace,
            name=lease_name(self.lease_name, reconcilers),
            identity=self.pod_name or identity,
            annotation=ANNOTATION_RECONCILERS,
            members=reconcilers,
            timings=timings,
        )

    def _name(self, setting: Setting[int] | Setting[float]) -> str:
        return setting.variable if self.NAMED_BY == "variable" else setting.flag
