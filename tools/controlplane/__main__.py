"""``python -m controlplane``: run a control plane until Ctrl-C, or only build it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

from . import (
    BuildFailed,
    ControlPlane,
    ControlPlaneFailed,
    GoUnavailable,
    build,
    build_cluster_api,
    build_clusterctl,
    build_go_program,
    cluster_api_crds,
    cluster_api_version,
    kubernetes_version,
)
from . import read_crds as read_crds_of
from .build import say_to_stderr
from .credentials import MARK

_OWN_CRDS = Path(__file__).resolve().parents[2] / "manifests" / "crds"


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code (0 done or Ctrl-C, 1 a program ended, 2 could not start)."""
    parser = argparse.ArgumentParser(
        prog="./dev controlplane",
        description="Starts a real Kubernetes control plane on loopback, with the CRDs of fivespot and Cluster API "
        "and stand-in providers, and runs it until Ctrl-C. Nothing is left behind. The first start on a machine "
        "builds it, which takes 11 to 14 minutes on two cores; later ones take about 4 seconds. The environment "
        "variables FIVESPOT_KUBERNETES_VERSION and FIVESPOT_CLUSTER_API_VERSION choose other releases.",
    )
    parser.add_argument("command", nargs="?", choices=["run", "build"], default="run", help="default: run")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="where to write the administrator's kubeconfig")
    parser.add_argument("--keep", action="store_true", help="keep logs and the audit log after the end")
    parser.add_argument("--no-crds", action="store_true", help="start empty")
    parser.add_argument("--cluster-api", action="store_true", help="run Cluster API's own core manager as well")
    options = parser.parse_args(arguments)
    if options.no_crds and options.cluster_api:
        parser.error("--cluster-api needs the definitions that --no-crds leaves out")
    try:
        version = kubernetes_version()
        cluster_api_version()
        if options.command == "build":
            build(version)
            cluster_api_crds()
            build_cluster_api()
            build_clusterctl()
            build_go_program()
            return 0
        return _run(
            version,
            options.kubeconfig,
            keep=options.keep,
            crds=not options.no_crds,
            cluster_api=options.cluster_api,
        )
    except (BuildFailed, ControlPlaneFailed, GoUnavailable, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(version: str, kubeconfig: Path | None, *, keep: bool, crds: bool, cluster_api: bool) -> int:
    began = time.monotonic()
    own = read_crds_of(_OWN_CRDS) if crds else ()
    plane = ControlPlane(version=version, crds=own, install_crds=crds, cluster_api=cluster_api)
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    if kubeconfig and kubeconfig.exists() and not kubeconfig.read_text().startswith(MARK):
        raise ValueError(f"{kubeconfig} exists and was not written by this command; it is left alone")
    plane.start()
    try:
        path = plane.kubeconfig(kubeconfig.absolute()) if kubeconfig else plane.admin_kubeconfig
        say_to_stderr(f"Kubernetes {version} is ready after {time.monotonic() - began:.1f} s; Ctrl-C ends it")
        # stdout: what a shell would evaluate.
        print(f"export KUBECONFIG={path}", flush=True)
        kubectl = plane.binaries.kubectl
        say_to_stderr(f"try: KUBECONFIG={_short(path)} {_short(kubectl)} get crds")
        while not asked.wait(timeout=0.5):
            if (failure := plane.failed()) is not None:
                print(f"error: {failure}", file=sys.stderr)
                keep = True
                return 1
        return 0
    finally:
        plane.stop(keep_logs=keep)
        if kubeconfig:
            kubeconfig.unlink(missing_ok=True)
        if keep:
            say_to_stderr(f"logs are in {plane.folder}")


def _short(path: Path) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - compared as text
    return str(path).replace(home, "~", 1) if str(path).startswith(home + os.sep) else str(path)


if __name__ == "__main__":
    sys.exit(main())
