"""A real Kubernetes control plane for tests, built from Go modules on a machine that has none."""

from .api import Api, ApiError
from .audit import AuditLog, select, tally
from .build import BuildFailed, build
from .clusterapi import build_cluster_api
from .clusterctl import ClusterctlFailed, build_clusterctl, clusterctl
from .core_manager import FAST_GATES, CoreManager
from .crds import cluster_api_crds, read_crds, stand_in_crds
from .goprogram import CONTROLLER_RUNTIME, build_go_program
from .gotool import GoUnavailable
from .ports import free_ports
from .process import ControlPlaneFailed
from .server import ControlPlane, KubectlFailed
from .versions import cluster_api_version, kubernetes_version

__all__ = [
    "CONTROLLER_RUNTIME",
    "FAST_GATES",
    "Api",
    "ApiError",
    "AuditLog",
    "BuildFailed",
    "ClusterctlFailed",
    "ControlPlane",
    "ControlPlaneFailed",
    "CoreManager",
    "GoUnavailable",
    "KubectlFailed",
    "build",
    "build_cluster_api",
    "build_clusterctl",
    "build_go_program",
    "cluster_api_crds",
    "cluster_api_version",
    "clusterctl",
    "free_ports",
    "kubernetes_version",
    "read_crds",
    "select",
    "stand_in_crds",
    "tally",
]
