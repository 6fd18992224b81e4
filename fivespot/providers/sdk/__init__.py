"""The kit for writing a schedule provider: a spec, a pure decision, and everything else is done.

A provider reads its own objects and writes their ``status``; it never sees a machine.
"""

from .definition import Provider
from .running import run
from .status import INVALID_SPEC, broken_status, decided_status
from .verdict import Note, SpecError, Verdict
from .wiring import build_controller

__all__ = [
    "INVALID_SPEC",
    "Note",
    "Provider",
    "SpecError",
    "Verdict",
    "broken_status",
    "build_controller",
    "decided_status",
    "run",
]
