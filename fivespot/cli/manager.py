"""``fivespot manager``: its flags and environment variables."""

from __future__ import annotations

import sys
from typing import Any, Literal

import click

from fivespot import settings
from fivespot.settings import Setting

from .options import ManagerOptions

__all__ = ["manager"]


class _Text(click.types.StringParamType):
    """A value that is read by the parser that all ways of starting a manager share."""

    def __init__(self, name: str, setting: Setting[Any]) -> None:
        self.name = name
        self._setting = setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _parsed(self, self._setting, value, param, ctx)


class _Flag(click.types.BoolParamType):
    """The same of a flag, which click wants to be boolean."""

    def __init__(self, setting: Setting[Any]) -> None:
        self._setting = setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return _parsed(self, self._setting, value, param, ctx)


def _parsed(
    kind: _Text | _Flag, setting: Setting[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return setting.parse(value)
    except ValueError as error:
        kind.fail(str(error), param, ctx)


def _setting(name: str, setting: Setting[Any]) -> dict[str, Any]:
    kind = _Text(name, setting) if name else _Flag(setting)
    return {"type": kind, "envvar": setting.variable, "default": setting.default}


def _stderr_is_terminal() -> bool:
    return sys.stderr.isatty()


def _log_format() -> Literal["json", "text"]:
    return "text" if _stderr_is_terminal() else "json"


@click.command(context_settings={"show_default": True})
@click.option(
    "--controllers",
    multiple=True,
    metavar="KIND,...",
    help="Kinds to reconcile, in lower case, or all; default all, or none with --provider.",
)
@click.option(
    "--provider",
    multiple=True,
    metavar="MODULE:OBJECT",
    help="A provider of your own, such as my_package:WEEKS; may be given several times.",
)
@click.option("--namespaces", multiple=True, metavar="NAME,...", help="Namespaces to watch; default all.")
@click.option("--kubeconfig", metavar="FILE", help="Default: in-cluster credentials, or KUBECONFIG.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one.")
@click.option("--dry-run", is_flag=True, help="Compute all decisions and write nothing; see the log and /debug/plans.")
@click.option(
    "--max-deletions-per-minute",
    type=click.IntRange(min=1),
    metavar="N",
    help="Limit on deletions of machines by schedule; default none.",
)
@click.option(
    "--shortest-grace",
    default="0s",
    metavar="DURATION",
    help="Grace of machines that ask for less, such as 5m; kill switches and deletions know no grace.",
)
@click.option(
    "--max-activations-per-hour",
    type=click.IntRange(min=1),
    metavar="N",
    help="Limit on machines created for one ScheduledMachine within an hour; default none.",
)
@click.option(
    "--max-namespace-activations-per-hour",
    type=click.IntRange(min=1),
    metavar="N",
    help="Limit on machines created in one namespace within an hour; default none.",
)
@click.option(
    "--max-machines-per-namespace",
    type=click.IntRange(min=1),
    metavar="N",
    help="Limit on machines that a namespace has at a time; default none.",
)
@click.option(
    "--require-admission-policy",
    is_flag=True,
    help="Create nothing until the ValidatingAdmissionPolicy is bound.",
)
@click.option(
    "--force-finalizer-on-timeout",
    is_flag=True,
    envvar="FORCE_FINALIZER_ON_TIMEOUT",
    help="Remove the finalizer of a deleted ScheduledMachine even if its machine was not removed in time.",
)
@click.option("--bind-address", metavar="IP", help="Default: all addresses in a cluster, else 127.0.0.1.")
@click.option("--metrics-port", **_setting("port", settings.METRICS_PORT), help="0 chooses a free port.")
@click.option("--health-port", **_setting("port", settings.HEALTH_PORT), help="0 chooses a free port.")
@click.option(
    "--debug", is_flag=True, help="Serve /debug on the health port, to loopback peers; a dry run does so always."
)
@click.option(
    "--metrics-secure",
    is_flag=True,
    help="Serve metrics over TLS, to accounts that may get /metrics by TokenReview and SubjectAccessReview.",
)
@click.option(
    "--metrics-cert-dir",
    default="",
    metavar="DIR",
    show_default=False,
    help="Directory with tls.crt and tls.key for that; default a self-signed certificate.",
)
@click.option("-v", "--verbose", count=True, show_default=False, help="Log debug messages.")
@click.option(
    "--log-format",
    type=click.Choice(["json", "text"], case_sensitive=False),
    envvar=["LOG_FORMAT", "RUST_LOG_FORMAT"],
    default=_log_format,
    show_default="text on a terminal, else json",
)
@click.option(
    "--enable-leader-election/--disable-leader-election",
    "leader_election",
    **_setting("", settings.ENABLE_LEADER_ELECTION),
    help="Reconcile only while holding a Lease, so that replicas can stand by; default in a cluster.",
)
@click.option(
    "--lease-name",
    **_setting("name", settings.LEASE_NAME),
    metavar="NAME",
    show_default=False,
    help="Default derived from --controllers.",
)
@click.option("--lease-namespace", **_setting("name", settings.LEASE_NAMESPACE), metavar="NAME")
@click.option("--lease-duration-secs", "lease_duration", **_setting("seconds", settings.LEASE_DURATION))
@click.option(
    "--lease-renew-deadline-secs", "lease_renew_deadline", **_setting("seconds", settings.LEASE_RENEW_DEADLINE)
)
@click.option("--lease-retry-period-secs", "lease_retry_period", **_setting("seconds", settings.LEASE_RETRY_PERIOD))
@click.option("--instance-id", type=click.IntRange(min=0), envvar="OPERATOR_INSTANCE_ID", default=0)
@click.option("--instance-count", type=click.IntRange(min=1), envvar="OPERATOR_INSTANCE_COUNT", default=1)
@click.option(
    "--event-loop",
    **_setting("loop", settings.EVENT_LOOP),
    metavar="[asyncio|uvloop|auto]",
    help="uvloop needs less CPU time and the package of that name; auto uses it where it is installed.",
)
@click.option("--capi-machine-api-version", envvar="CAPI_MACHINE_API_VERSION", hidden=True)
@click.option("--pod-name", **_setting("name", settings.POD_NAME), hidden=True)
def manager(**given: Any) -> None:
    """Run controllers against a cluster.

    Stops on SIGTERM or SIGINT within 30 seconds; a second signal ends the process at once.
    """
    options = ManagerOptions.parse(given)

    from .process import run_process  # noqa: PLC0415 - the help must not import the runtime

    run_process(options)
