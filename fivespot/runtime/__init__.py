"""A controller runtime for asyncio: informers, shared caches, work queues, controllers, and a manager that runs them.

It knows Kubernetes and nothing of machines, and imports nothing of the rest of fivespot. ``docs/runtime`` has a
tutorial and says what is guaranteed and what is not; ``examples`` has programs to start from. A whole program::

    from fivespot.runtime import Controller, ManagerContext, Resource, run

    def build(context: ManagerContext) -> Controller:
        maps = context.cache.informer(Resource("", "v1", "configmaps", "ConfigMap"))
        controller = context.controller("maps", MyReconciler(context.client, maps))
        controller.watches(maps)
        return controller

    run(lambda manager: manager.add(build), name="my-program")

Every name of ``__all__`` is public; what modules below hold besides may change at any time. One public module is not
here: :mod:`fivespot.runtime.crd`, which makes definitions from pydantic models.

Nothing is imported before it is used. aiohttp comes with a connection or a manager, kubernetes_asyncio when a
kubeconfig is read, prometheus_client with metrics, pydantic with :mod:`fivespot.runtime.crd` alone, opentelemetry where
traces are asked for. Unless it says otherwise, everything here belongs to one thread, that of the event loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cache import (
        Cache,
        Handler,
        IndexFunction,
        Informer,
        InformerStatus,
        KindAbsent,
        Kinds,
        KindState,
        KindUnknown,
        ReflectorSettings,
        Subscription,
    )
    from .client import (
        NO_RETRY,
        REQUEST_LIMITS,
        WATCH_LIMITS,
        ByteStream,
        Client,
        Connection,
        Discovery,
        DryRunTransport,
        GroupServed,
        HttpTransport,
        Limits,
        Page,
        Propagation,
        Repeat,
        Request,
        Response,
        RetryPolicy,
        Transport,
        Watch,
        WatchEnd,
        WatchEnded,
        WatchEvent,
        WriteObserver,
        connect,
    )
    from .clock import Clock, InlineOffload, LoopClock, Offload, Random, SystemClock, ThreadOffload, system_random
    from .errors import (
        AlreadyExistsError,
        ApiError,
        BadRequestError,
        BrokenStreamError,
        ConfigError,
        ConflictError,
        ConnectError,
        DeadlineError,
        FivespotError,
        ForbiddenError,
        GoneError,
        InvalidError,
        KindNotServedError,
        MethodNotAllowedError,
        NotFoundError,
        NotSyncedError,
        ProtocolError,
        QueueShutDownError,
        ServerError,
        ServerTimeoutError,
        StatusCause,
        StopError,
        TerminalError,
        ThrottledError,
        TransportError,
        UnauthorizedError,
        UnsupportedMediaError,
    )
    from .manager import (
        Check,
        Connectivity,
        ControllerFactory,
        ControllerSettings,
        Election,
        ElectionSettings,
        ElectionTimings,
        Health,
        Manager,
        ManagerContext,
        ManagerSettings,
        MemberEndedError,
        PlanBook,
        RunnableGroup,
        Serving,
        ServingSettings,
        open_manager,
        run,
    )
    from .objects import (
        EVERYTHING,
        FULL,
        METADATA,
        Change,
        ChangeType,
        Condition,
        ConditionStatus,
        GroupKind,
        Head,
        Key,
        Object,
        OwnerReference,
        Patch,
        Projection,
        Resource,
        Selector,
        finalizer_patch,
        find_condition,
        group_of,
        json_patch,
        merge_diff,
        merge_patch,
        rfc3339,
        set_conditions,
        version_of,
    )
    from .reconcile import (
        DONE,
        Controller,
        InformerSource,
        KindSource,
        Mapper,
        Predicate,
        Reconciler,
        Result,
        Source,
        all_of,
        any_of,
        by_label,
        enqueue_self,
        ensure_finalizer,
        generation_or_metadata_changed,
        not_own,
        owner_of,
        reconcile_id,
        remove_finalizer,
    )
    from .telemetry import (
        NULL_TRACER,
        EventLimits,
        EventRecorder,
        LogFormat,
        LogLimiter,
        Metrics,
        ObjectRef,
        OpenTelemetryTracer,
        Span,
        Tracer,
        tracer_from,
    )
    from .telemetry import configure as configure_logging
    from .workqueue import Backoff, EntryState, QueueEntry, WorkQueue

__all__ = [
    "DONE",
    "EVERYTHING",
    "FULL",
    "METADATA",
    "NO_RETRY",
    "NULL_TRACER",
    "REQUEST_LIMITS",
    "WATCH_LIMITS",
    "AlreadyExistsError",
    "ApiError",
    "Backoff",
    "BadRequestError",
    "BrokenStreamError",
    "ByteStream",
    "Cache",
    "Change",
    "ChangeType",
    "Check",
    "Client",
    "Clock",
    "Condition",
    "ConditionStatus",
    "ConfigError",
    "ConflictError",
    "ConnectError",
    "Connection",
    "Connectivity",
    "Controller",
    "ControllerFactory",
    "ControllerSettings",
    "DeadlineError",
    "Discovery",
    "DryRunTransport",
    "Election",
    "ElectionSettings",
    "ElectionTimings",
    "EntryState",
    "EventLimits",
    "EventRecorder",
    "FivespotError",
    "ForbiddenError",
    "GoneError",
    "GroupKind",
    "GroupServed",
    "Handler",
    "Head",
    "Health",
    "HttpTransport",
    "IndexFunction",
    "Informer",
    "InformerSource",
    "InformerStatus",
    "InlineOffload",
    "InvalidError",
    "Key",
    "KindAbsent",
    "KindNotServedError",
    "KindSource",
    "KindState",
    "KindUnknown",
    "Kinds",
    "Limits",
    "LogFormat",
    "LogLimiter",
    "LoopClock",
    "Manager",
    "ManagerContext",
    "ManagerSettings",
    "Mapper",
    "MemberEndedError",
    "MethodNotAllowedError",
    "Metrics",
    "NotFoundError",
    "NotSyncedError",
    "Object",
    "ObjectRef",
    "Offload",
    "OpenTelemetryTracer",
    "OwnerReference",
    "Page",
    "Patch",
    "PlanBook",
    "Predicate",
    "Projection",
    "Propagation",
    "ProtocolError",
    "QueueEntry",
    "QueueShutDownError",
    "Random",
    "Reconciler",
    "ReflectorSettings",
    "Repeat",
    "Request",
    "Resource",
    "Response",
    "Result",
    "RetryPolicy",
    "RunnableGroup",
    "Selector",
    "ServerError",
    "ServerTimeoutError",
    "Serving",
    "ServingSettings",
    "Source",
    "Span",
    "StatusCause",
    "StopError",
    "Subscription",
    "SystemClock",
    "TerminalError",
    "ThreadOffload",
    "ThrottledError",
    "Tracer",
    "Transport",
    "TransportError",
    "UnauthorizedError",
    "UnsupportedMediaError",
    "Watch",
    "WatchEnd",
    "WatchEnded",
    "WatchEvent",
    "WorkQueue",
    "WriteObserver",
    "all_of",
    "any_of",
    "by_label",
    "configure_logging",
    "connect",
    "enqueue_self",
    "ensure_finalizer",
    "finalizer_patch",
    "find_condition",
    "generation_or_metadata_changed",
    "group_of",
    "json_patch",
    "merge_diff",
    "merge_patch",
    "not_own",
    "open_manager",
    "owner_of",
    "reconcile_id",
    "remove_finalizer",
    "rfc3339",
    "run",
    "set_conditions",
    "system_random",
    "tracer_from",
    "version_of",
]

_HOMES = ("clock", "errors", "objects", "workqueue", "client", "cache", "reconcile", "manager", "telemetry")
_RENAMED = {"configure_logging": "configure"}


if not TYPE_CHECKING:  # or type checkers would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        if name in __all__:
            inner = _RENAMED.get(name, name)
            for home in _HOMES:
                # Each is light to import, and resolves its own heavy names as late as this.
                package = import_module(f"{__name__}.{home}")
                if inner in package.__all__:
                    value = globals()[name] = getattr(package, inner)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
