"""Parts for whoever runs the manager against a control plane: tests, benchmarks, the demonstration."""

from .manager import MANAGER_USER, MANIFESTS, SERVICE_ACCOUNT, SYSTEM_NAMESPACE, ManagerProcess, install

__all__ = ["MANAGER_USER", "MANIFESTS", "SERVICE_ACCOUNT", "SYSTEM_NAMESPACE", "ManagerProcess", "install"]
