"""The manager: controllers, leader election, health checks and HTTP endpoints of a process."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .context import ControllerFactory, ControllerSettings, ManagerContext
from .debug import PlanBook

if TYPE_CHECKING:
    from .election import Election, ElectionSettings
    from .endpoints import Serving, ServingSettings
    from .entrypoint import assemble, open_manager, run
    from .health import Check, Connectivity, Health, HealthReport
    from .lease import ElectionTimings
    from .manager import Manager, ManagerSettings
    from .runnable_group import MemberEndedError, RunnableGroup, leaf_error

__all__ = [
    "Check",
    "Connectivity",
    "ControllerFactory",
    "ControllerSettings",
    "Election",
    "ElectionSettings",
    "ElectionTimings",
    "Health",
    "HealthReport",
    "Manager",
    "ManagerContext",
    "ManagerSettings",
    "MemberEndedError",
    "PlanBook",
    "RunnableGroup",
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
    "RunnableGroup": ".runnable_group",
    "Manager": ".manager",
    "ManagerSettings": ".manager",
    "MemberEndedError": ".runnable_group",
    "HealthReport": ".health",
    "Serving": ".endpoints",
    "ServingSettings": ".endpoints",
    "assemble": ".entrypoint",
    "leaf_error": ".runnable_group",
    "open_manager": ".entrypoint",
    "run": ".entrypoint",
}


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        # Controllers import the context only; the endpoints are loaded when a manager runs.
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOME[name], __name__), name)
