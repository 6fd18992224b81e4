"""Helpers that run the manager against a control plane, for tests and benchmarks."""

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
