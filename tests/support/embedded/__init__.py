"""The embedded API server in place of the real control plane.

:class:`EmbeddedControlPlane` runs in the test's own thread and in virtual time, with managers in the same process.
:class:`ServedControlPlane` listens on a port in real time, for clients and managers that are processes. Whatever
neither of them has raises :class:`RealOnly`.
"""

from .manager import EmbeddedManager, manager_in_process
from .module_patches import on_virtual_time
from .plane import EmbeddedControlPlane, RealOnly
from .served import ServedControlPlane

__all__ = [
    "EmbeddedControlPlane",
    "EmbeddedManager",
    "RealOnly",
    "ServedControlPlane",
    "manager_in_process",
    "on_virtual_time",
]
