"""Parts for whoever runs the manager against a control plane: tests and benchmarks."""

from .manager import MANAGER_USER, MANIFESTS, SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess, install, install_for

__all__ = [
    "MANAGER_USER",
    "MANIFESTS",
    "SERVICE_ACCOUNT",
    "SYSTEM_NAMESPACE",
    "ManagerProcess",
    "install",
    "install_for",
]
