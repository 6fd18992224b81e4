"""`./dev demo`: a real control plane, the manager, a schedule and a machine, told as it happens."""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from controlplane import ControlPlane, read_crds

from .cluster_api import ClusterApi
from .story import Story, Teller

REPOSITORY = Path(__file__).resolve().parents[2]
MANIFESTS = REPOSITORY / "manifests"
SYSTEM_NAMESPACE = "5spot-system"
SERVICE_ACCOUNT = "5spot-controller"

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
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS))
        kubeconfig = plane.kubeconfig(arguments.kubeconfig or Path(folder) / "kubeconfig", namespace="demo")
        tell.note(f"in another terminal:  export KUBECONFIG={kubeconfig}")
        tell.note("                      kubectl get sm,tbss,machines   and   kubectl describe sm web")
        with _manager(plane, Path(folder)) as log, ClusterApi(plane.api):
            story = Story(plane.api, tell, seconds=arguments.seconds)
            try:
                story.run(stop)
            except Exception:
                sys.stderr.write("\n".join(log.read_text(errors="replace").splitlines()[-20:]) + "\n")
                raise
        tell.note("stopping; nothing is left behind")
    return 0


@contextlib.contextmanager
def _manager(plane: ControlPlane, folder: Path) -> Iterator[Path]:
    """`fivespot manager` under the shipped ServiceAccount; the path of its log."""
    kubeconfig = plane.service_account_kubeconfig(SYSTEM_NAMESPACE, SERVICE_ACCOUNT, folder / "manager-kubeconfig")
    path = folder / "manager.log"
    command = [
        *(sys.executable, "-m", "fivespot.cli", "manager", "--kubeconfig", str(kubeconfig)),
        *("--metrics-port", "0", "--health-port", "0", "--log-format", "text"),
    ]
    with path.open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield path
    finally:
        process.terminate()
        try:
            process.wait(35)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


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
