"""``fivespot rbac``: the controllers' ClusterRoles with the kinds that a cluster serves, in place of wildcards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from fivespot.runtime import Resource

__all__ = ["CHILD_GROUPS", "rbac", "roles"]

_LIMIT: Final = 30.0
"""Seconds for all requests together: a person waits."""

CHILD_GROUPS: Final = ("bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "k0smotron.io")
"""The groups of bootstrap and infrastructure objects, as in the shipped roles."""
_SCHEDULES: Final = "spotschedules.5spot.finos.org"
_NOT_OF_A_MACHINE: Final = ("Template", "Cluster", "ControlPlane", "Identity")
"""Ends of the names of kinds that no machine is made of, by the conventions of Cluster API."""

Json = dict[str, Any]


@click.command()
@click.option("--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, in-cluster credentials, or ~/.kube/config.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default its current one.")
def rbac(kubeconfig: str | None, context: str | None) -> None:
    """Write the controllers' ClusterRoles with the kinds that the cluster serves in place of wildcards.

    They replace the shipped roles of the same names. Run it again whenever a provider is installed:

    fivespot rbac | kubectl apply --server-side --force-conflicts -f -
    """
    import yaml  # noqa: PLC0415 - the help must not import it

    served = asyncio.run(_served(kubeconfig, context))
    documents = (yaml.safe_dump(role, sort_keys=False, width=110) for role in roles(served))
    click.echo("---\n".join(documents), nl=False)


async def _served(kubeconfig: str | None, context: str | None) -> dict[str, list[Resource]]:
    from fivespot import __version__  # noqa: PLC0415 - the help must not import the runtime
    from fivespot.runtime import ConfigError, Discovery, SystemClock, TransportError, connect  # noqa: PLC0415
    from fivespot.runtime.clock import ThreadOffload, system_random  # noqa: PLC0415
    from fivespot.runtime.errors import KindNotServedError  # noqa: PLC0415

    connection = await connect(
        kubeconfig=kubeconfig,
        context=context,
        user_agent=f"fivespot/{__version__} (rbac)",
        clock=SystemClock(),
        rng=system_random(),
        offload=ThreadOffload(),
    )
    async with connection:
        await connection.check()
        discovery = Discovery(connection.client)
        found: dict[str, list[Resource]] = {}
        try:
            async with asyncio.timeout(_LIMIT):
                for group in (*CHILD_GROUPS, _SCHEDULES):
                    try:
                        served = await discovery.group(group)
                    except KindNotServedError:
                        continue
                    kinds = {resource.kind: resource for kind in served.kinds.values() for resource in kind.values()}
                    found[group] = [kinds[kind] for kind in sorted(kinds) if kinds[kind].namespaced]
        except TimeoutError as error:
            raise ConfigError(f"{connection.source}: {connection.server} did not answer within {_LIMIT:g} s") from error
        except TransportError as error:
            raise ConfigError(f"{connection.source}: {error}") from error
        return found


def roles(served: Mapping[str, Sequence[Resource]]) -> list[Json]:
    """The ClusterRoles that have wildcards as shipped, with the resources that are served in their place.

    Kinds whose names say that no machine is made of them are listed only, in the search for leftovers.

    :param served: the namespaced resources of each group; a group that is not served may be missing.
    """
    children: list[Json] = []
    for group in CHILD_GROUPS:
        made = [found.plural for found in served.get(group, ()) if not found.kind.endswith(_NOT_OF_A_MACHINE)]
        others = [found.plural for found in served.get(group, ()) if found.kind.endswith(_NOT_OF_A_MACHINE)]
        children += _rule(group, made, "get", "list", "watch", "create", "delete")
        children += _rule(group, others, "list")
    schedules = _rule(_SCHEDULES, [found.plural for found in served.get(_SCHEDULES, ())], "list", "watch")
    policies = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
    named = {"resourceNames": ["scheduledmachine-validation", "scheduledmachine-controller"]}
    own = "5spot.finos.org"
    return [
        _role(
            "5spot-scheduledmachine-controller",
            *_rule(own, ["scheduledmachines"], "list", "watch", "patch"),
            *_rule(own, ["scheduledmachines/status"], "patch"),
            *_rule(own, ["scheduledmachines/finalizers"], "update"),
            *_rule("cluster.x-k8s.io", ["machines"], "get", "list", "watch", "create", "patch", "delete"),
            *_rule("cluster.x-k8s.io", ["clusters"], "list", "watch"),
            *children,
            *schedules,
            *({**rule, **named} for rule in _rule("admissionregistration.k8s.io", policies, "get")),
        ),
        _role("5spot-manualschedule-controller", *schedules, *_rule(_SCHEDULES, ["manualschedules/status"], "patch")),
    ]


def _rule(group: str, resources: list[str], *verbs: str) -> list[Json]:
    return [{"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}] if resources else []


def _role(name: str, *rules: Json) -> Json:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "fivespot"}}
    version = "rbac.authorization.k8s.io/v1"
    return {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": list(rules)}
