"""Simulated Cluster API providers: Machines are provisioned, get a Node and are removed without any cloud.

For tests of controllers that build on Cluster API: its core manager (a real one, or :mod:`.core`) finds a bootstrap
provider, an infrastructure provider and a control plane that follow its contract, and a kubelet that runs Pods and
terminates them. The spec of an object scripts what happens to it and when (:class:`LifeScript` and its subclasses), so
that a test needs no access to the process that runs the providers.

As a program, which also installs the kinds::

    python -m fivespot.testing.clusterapi --kubeconfig FILE

or in your own manager::

    async with open_manager("simulated-providers", kubeconfig=...) as manager:
        await install_definitions(manager.context.client)
        add_providers(manager)
        await manager.run(stop)

A Cluster needs a few objects in the right order: :func:`cluster_bodies` builds them, and :func:`is_usable` tells when
the Cluster is ready. All waiting is on the manager's clock, which may be virtual.
"""

from .kinds import (
    SIMULATED,
    SIMULATED_EARLIER,
    BootstrapScript,
    Contract,
    KindFamily,
    LifeScript,
    MachineScript,
    NodeScript,
)
from .setup import (
    CoreVersion,
    add_providers,
    cluster_bodies,
    cluster_resource,
    create_cluster,
    install_definitions,
    is_usable,
)
from .workload import SIMULATED_LABEL, TERMINATE_AFTER, Workload

__all__ = [
    "SIMULATED",
    "SIMULATED_EARLIER",
    "SIMULATED_LABEL",
    "TERMINATE_AFTER",
    "BootstrapScript",
    "Contract",
    "CoreVersion",
    "KindFamily",
    "LifeScript",
    "MachineScript",
    "NodeScript",
    "Workload",
    "add_providers",
    "cluster_bodies",
    "cluster_resource",
    "create_cluster",
    "install_definitions",
    "is_usable",
]
