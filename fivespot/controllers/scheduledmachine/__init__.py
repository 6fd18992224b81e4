"""The ScheduledMachine controller: observe -> decide -> act -> report.

Reading order: :mod:`.snapshot` (the input of a decision), :mod:`.decide`, :mod:`.plan` (its outcome), :mod:`.status`,
:mod:`.reconciler` (one run), :mod:`.controller` (the sources of runs).
"""

from .controller import build
from .settings import MachineSettings
from .timings import Timings

__all__ = ["MachineSettings", "Timings", "build"]
