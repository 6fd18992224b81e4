"""The ScheduledMachine controller: observe -> decide -> act -> report.

Reading order: :mod:`.model` (what is known), :mod:`.decide` (what follows), :mod:`.plan` (what is to be done),
:mod:`.report` (what is said), :mod:`.controller` (one run), :mod:`.wiring` (where runs come from).
"""

from .timings import Timings
from .wiring import build

__all__ = ["Timings", "build"]
