"""The kit for writing a schedule provider: write a spec and a pure decision, the kit does the rest::

    from fivespot.providers.sdk import ApiModel, Provider, Verdict

    class ToggleSpec(ApiModel):
        up: bool

    TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=lambda spec, at: Verdict(spec.up))

A provider reads its own objects and those it declares, and writes the ``status`` of its own; it never sees a machine.
``fivespot manager --provider my_package:TOGGLE`` runs it, ``fivespot crds --provider my_package:TOGGLE`` writes its
definition, and :func:`run` makes it a program of its own.
"""

from fivespot.api import ApiModel
from fivespot.contract import UNREADABLE_PATIENCE, Resolution, Resolved, Unreadable, Unresolved
from fivespot.runtime.crd import Column

from .controller import build_controller
from .definition import Provider
from .dependencies import SCHEDULES, Context
from .entrypoint import run
from .hysteresis import Dwell, dwell, hysteresis
from .overrides import OVERRIDDEN, Override, OverrideOutcome, OverrideRecord, apply_overrides
from .rbac import rbac_manifests, rbac_rules
from .spec_types import Instant
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
    "Instant",
    "NoVerdict",
    "Override",
    "OverrideOutcome",
    "OverrideRecord",
    "Provider",
    "Resolution",
    "Resolved",
    "SpecError",
    "Unreadable",
    "Unresolved",
    "Verdict",
    "apply_overrides",
    "broken_status",
    "build_controller",
    "decided_status",
    "dwell",
    "hysteresis",
    "rbac_manifests",
    "rbac_rules",
    "run",
]
