"""The ScheduledMachine controller: observe -> decide -> act -> report.

Reading order: :mod:`.snapshot` (what is known), :mod:`.decide` (what follows), :mod:`.plan` (what is to be done),
:mod:`.status` (what is said), :mod:`.reconciler` (one run), :mod:`.controller` (where runs come from).
"""

from .controller import build
from .settings import MachineSettings
from .timings import Timings

__all__ = ["MachineSettings", "Timings", "build"]
