"""The kit for writing a schedule provider: a spec, a pure decision, and everything else is done::

    from fivespot.providers.sdk import ApiModel, Provider, Verdict

    class ToggleSpec(ApiModel):
        on: bool

    TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(spec.on))

A provider reads its own objects, and what it declares, and writes the ``status`` of its own; it never sees a machine.
``fivespot manager --provider my_package:TOGGLE`` runs it and ``fivespot crds --provider my_package:TOGGLE`` writes its
definition; :func:`run` makes it a program of its own.
"""

from fivespot.api import ApiModel
from fivespot.contract import Resolution, Resolved, Unreadable, Unresolved
from fivespot.runtime.crd import Column

from .controller import build_controller
from .definition import Provider
from .dependencies import SCHEDULES, UNREADABLE_PATIENCE, Context
from .entrypoint import run
from .hysteresis import Dwell, dwell, hysteresis
from .overrides import OVERRIDDEN, Folded, Override, Remembered, fold
from .rbac import rbac_manifests, rbac_rules
from .status import DECISION_FAILED, INVALID_SPEC, broken_status, decided_status
from .verdict import EventNote, NoVerdict, SpecError, Verdict

__all__ = [
    "DECISION_FAILED",
    "INVALID_SPEC",
    "OVERRIDDEN",
    "SCHEDULES",
    "UNREADABLE_PATIENCE",
    "ApiModel",
    "Column",
    "Context",
    "Dwell",
    "EventNote",
    "Folded",
    "NoVerdict",
    "Override",
    "Provider",
    "Remembered",
    "Resolution",
    "Resolved",
    "SpecError",
    "Unreadable",
    "Unresolved",
    "Verdict",
    "broken_status",
    "build_controller",
    "decided_status",
    "dwell",
    "fold",
    "hysteresis",
    "rbac_manifests",
    "rbac_rules",
    "run",
]
