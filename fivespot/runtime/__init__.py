"""A controller runtime for asyncio: informers, shared caches, work queues, controllers, and a manager that runs them.

It knows Kubernetes and nothing of machines, and imports nothing of the rest of fivespot. ``docs/runtime`` has hello
world, a tutorial, and what is guaranteed and what is not; ``examples`` has programs to start from.

``__all__`` lists what most controllers need. Everything else that is public is in the ``__all__`` of a package below:
``client``, ``cache``, ``objects``, ``reconcile``, ``manager``, ``telemetry``, ``workqueue``, or of a module:
``errors``, ``clock``, ``backoff``, ``crd``.

Nothing is imported before it is used: kubernetes_asyncio when a kubeconfig is read, prometheus_client by the first
scrape, pydantic with :mod:`fivespot.runtime.crd` alone, opentelemetry where traces are asked for. Unless it says
otherwise, everything here belongs to one thread, that of the event loop.
"""

# Types and `__all__` share the one list below: star imports alone would tell type checkers more than that.
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cache import *
    from .client import *
    from .clock import *
    from .errors import *
    from .manager import *
    from .objects import *
    from .reconcile import *
    from .telemetry import *

__all__ = [
    "CRDS",
    "DONE",
    "METADATA",
    "NULL_TRACER",
    "AlreadyExistsError",
    "ApiError",
    "Cache",
    "Change",
    "ChangeType",
    "Client",
    "Clock",
    "Condition",
    "ConfigError",
    "ConflictError",
    "Connection",
    "Controller",
    "Discovery",
    "ElectionSettings",
    "EventRecorder",
    "FivespotError",
    "ForbiddenError",
    "GroupKind",
    "Head",
    "Informer",
    "InformerSource",
    "InvalidError",
    "Key",
    "KindAbsent",
    "KindUnknown",
    "Kinds",
    "Manager",
    "ManagerContext",
    "ManagerSettings",
    "Metrics",
    "NotFoundError",
    "Object",
    "ObjectRef",
    "Offload",
    "OwnerReference",
    "Projection",
    "Random",
    "Reconciler",
    "Resource",
    "Result",
    "Selector",
    "ServingSettings",
    "SystemClock",
    "TerminalError",
    "Tracer",
    "Transport",
    "TransportError",
    "all_of",
    "any_of",
    "by_label",
    "configure_logging",
    "connect",
    "ensure_finalizer",
    "find_condition",
    "generation_or_metadata_changed",
    "json_patch",
    "merge_diff",
    "merge_patch",
    "not_written_by",
    "open_manager",
    "owner_of",
    "owner_reference",
    "remove_finalizer",
    "run",
    "set_conditions",
]

_HOMES = ("clock", "errors", "objects", "client", "cache", "reconcile", "manager", "telemetry")


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        if name in __all__:
            for home in _HOMES:
                # Each is light to import, and resolves its own heavy names as late as this.
                package = import_module(f"{__name__}.{home}")
                if name in package.__all__:
                    value = globals()[name] = getattr(package, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
