"""A real Kubernetes control plane for tests and demonstrations, built from Go modules on a machine that has none."""

from .api import Api, ApiError
from .audit import AuditLog, select, tally
from .build import BuildFailed, build
from .crds import cluster_api_crds, read_crds, stand_in_crds
from .gotool import GoUnavailable
from .ports import free_ports
from .server import ControlPlane, ControlPlaneFailed, KubectlFailed
from .versions import kubernetes_version

__all__ = [
    "Api",
    "ApiError",
    "AuditLog",
    "BuildFailed",
    "ControlPlane",
    "ControlPlaneFailed",
    "GoUnavailable",
    "KubectlFailed",
    "build",
    "cluster_api_crds",
    "free_ports",
    "kubernetes_version",
    "read_crds",
    "select",
    "stand_in_crds",
    "tally",
]
