"""The lifetime of a process: controllers, leader election, health and endpoints, started and stopped in order."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .context import ControllerFactory, ControllerSettings, ManagerContext
from .plans import PlanBook

if TYPE_CHECKING:
    from .assembling import assemble
    from .election import Election, ElectionSettings
    from .health import Check, Connectivity, Health, Report
    from .lease import ElectionTimings
    from .lifetime import Lifetime, MemberEndedError, leaf_error
    from .manager import Manager, ManagerSettings
    from .readonly import ReadOnlyTransport
    from .running import open_manager, run
    from .serving import Serving, ServingSettings

__all__ = [
    "Check",
    "Connectivity",
    "ControllerFactory",
    "ControllerSettings",
    "Election",
    "ElectionSettings",
    "ElectionTimings",
    "Health",
    "Lifetime",
    "Manager",
    "ManagerContext",
    "ManagerSettings",
    "MemberEndedError",
    "PlanBook",
    "ReadOnlyTransport",
    "Report",
    "Serving",
    "ServingSettings",
    "assemble",
    "leaf_error",
    "open_manager",
    "run",
]

_HOME = {
    "Check": ".health",
    "Connectivity": ".health",
    "Election": ".election",
    "ElectionSettings": ".election",
    "ElectionTimings": ".lease",
    "Health": ".health",
    "Lifetime": ".lifetime",
    "Manager": ".manager",
    "ManagerSettings": ".manager",
    "MemberEndedError": ".lifetime",
    "ReadOnlyTransport": ".readonly",
    "Report": ".health",
    "Serving": ".serving",
    "ServingSettings": ".serving",
    "assemble": ".assembling",
    "leaf_error": ".lifetime",
    "open_manager": ".running",
    "run": ".running",
}


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        # Controllers import the context only; the endpoints' aiohttp is loaded by whoever runs a manager.
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOME[name], __name__), name)
