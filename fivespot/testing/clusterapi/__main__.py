"""``python -m fivespot.testing.clusterapi``: install the simulated kinds and run their providers until Ctrl-C."""

from __future__ import annotations

import argparse
from functools import partial

from fivespot.runtime import Manager, run

from .core import CoreSettings, add_core, install_core_definitions
from .kinds import SIMULATED, SIMULATED_EARLIER
from .setup import add_providers, install_definitions

_FAMILIES = (SIMULATED, SIMULATED_EARLIER)


def main() -> None:
    """Parse the arguments and run the manager."""
    parser = argparse.ArgumentParser(
        prog="python -m fivespot.testing.clusterapi",
        description="Simulates bootstrap, infrastructure and control plane providers of Cluster API, and a kubelet.",
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="of the management cluster, which is the workload cluster too"
    )
    parser.add_argument("--no-definitions", action="store_true", help="do not install the simulated kinds")
    parser.add_argument(
        "--core",
        action="store_true",
        help="also simulate Cluster API's core manager where the real one does not run; needs the definitions of its "
        "kinds (see --core-definitions)",
    )
    parser.add_argument("--core-definitions", action="store_true", help="install the Machine and Cluster definitions")
    parser.add_argument(
        "--drain-interval",
        type=float,
        default=CoreSettings().drain_interval,
        metavar="SECONDS",
        help="interval at which the simulated core checks a drain (default: the real one's, %(default)g)",
    )
    arguments = parser.parse_args()

    def setup(manager: Manager) -> None:
        if not arguments.no_definitions:
            install = partial(install_definitions, manager.context.client, _FAMILIES)
            manager.add_runnable("definitions", install, may_end=True)
        if arguments.core_definitions:
            install = partial(install_core_definitions, manager.context.client)
            manager.add_runnable("core definitions", install, may_end=True)
        add_providers(manager, _FAMILIES)
        if arguments.core:
            add_core(manager, CoreSettings(drain_interval=arguments.drain_interval))

    run(setup, name="simulated-providers", kubeconfig=arguments.kubeconfig, log_format="text")


if __name__ == "__main__":
    main()
