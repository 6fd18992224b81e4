"""The server in memory in place of a control plane, for the tests that are written for the real one.

:class:`EmbeddedPlane` runs in the test's own thread and in virtual time, with managers in the same process.
:class:`ServedPlane` listens on a port in real time, for clients and managers that are processes of their own. What
neither has is a :class:`RealOnly` that names it.
"""

from .manager import EmbeddedManager, manager_in_process
from .plane import EmbeddedPlane
from .refused import RealOnly
from .served import ServedPlane
from .standing_in import on_virtual_time

__all__ = ["EmbeddedManager", "EmbeddedPlane", "RealOnly", "ServedPlane", "manager_in_process", "on_virtual_time"]
