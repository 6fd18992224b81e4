"""`./dev demo`: a real control plane, the manager, a schedule and a machine, told as it happens."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path

from controlplane import ControlPlane, read_crds
from harness import MANIFESTS, ManagerProcess, install

from .cluster_api import ClusterApi
from .story import Story, Teller

_DURATION = re.compile(r"([0-9]+)(s|m|h)?")
_UNITS = {"s": 1, "m": 60, "h": 3600}


def main() -> int:
    """Run the demonstration; 0 when it ended as planned."""
    arguments = _parse()
    tell = Teller(sys.stdout)
    tell.note("starting a real kube-apiserver, etcd and controller manager (about 10 s)")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="fivespot-demo-") as folder, ControlPlane(audit=False) as plane:
        plane.install_crds(read_crds(MANIFESTS / "crds"))
        install(plane)
        kubeconfig = plane.kubeconfig(arguments.kubeconfig or Path(folder) / "kubeconfig", namespace="demo")
        tell.note(f"in another terminal:  export KUBECONFIG={kubeconfig}")
        tell.note("                      kubectl get sm,tbss,machines   and   kubectl describe sm web")
        with ManagerProcess(plane, "--log-format", "text") as manager, ClusterApi(plane.api):
            try:
                Story(plane.api, tell, seconds=arguments.seconds).run(stop)
            except Exception:
                sys.stderr.write(manager.tail(20) + "\n")
                raise
        tell.note("stopping; nothing is left behind")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description="Start a real control plane and the manager, apply a sample schedule and a machine, and tell what "
        "happens. Cluster API's own controllers are played by a few lines of this demonstration.",
    )
    parser.add_argument("--headless", action="store_true", help="for scripts: end by itself (after 40 s, or --for)")
    parser.add_argument(
        "--for",
        dest="seconds",
        type=_seconds,
        metavar="TIME",
        help="how long to run, such as 40s or 5m; default: Ctrl-C",
    )
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="write the kubeconfig for kubectl here")
    arguments = parser.parse_args()
    if arguments.headless and arguments.seconds is None:
        arguments.seconds = 40.0
    return arguments


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write a whole number and s, m or h, such as 40s")
    return float(int(found[1]) * _UNITS[found[2] or "s"])


if __name__ == "__main__":
    sys.exit(main())
