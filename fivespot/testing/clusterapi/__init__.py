"""Simulated Cluster API providers: Machines get a Node, run, and go, on one machine and without any cloud.

For those who test what stands on top of Cluster API: its core manager (a real one) sees a bootstrap provider, an
infrastructure provider and a control plane that keep its contract, and a kubelet that runs and ends Pods. What happens
to an object, when, and whether it fails is written in its own spec (see :class:`LifeScript` and what extends it), so
that a test needs no access to the process that runs the providers.

As a program of its own, which also installs the kinds::

    python -m fivespot.testing.clusterapi --kubeconfig FILE

or in a manager of yours::

    async with open_manager("simulated-providers", kubeconfig=...) as manager:
        await install_definitions(manager.context.client)
        add_providers(manager)
        await manager.run(stop)

A Cluster that makes Machines move takes a few objects in the right order: :func:`cluster_bodies` has them, and
:func:`is_usable` says when it is ready. All waiting is on the manager's clock, so it may be a virtual one.
"""

from .kinds import SIMULATED, SIMULATED_EARLIER, Contract, KindFamily
from .kubelet import TERMINATE_AFTER
from .nodes import SIMULATED_LABEL, Workload
from .scaffold import CoreVersion, cluster_bodies, cluster_resource, create_cluster, is_usable
from .script import BootstrapScript, LifeScript, MachineScript, NodeScript
from .setup import add_providers, install_definitions

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
