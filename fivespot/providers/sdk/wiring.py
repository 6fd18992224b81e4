"""Turns a provider into a controller that a manager can run."""

from __future__ import annotations

from typing import Any, Final

from fivespot.runtime.manager import ManagerContext
from fivespot.runtime.objects import Change, ChangeType
from fivespot.runtime.reconcile import Controller
from fivespot.runtime.workqueue import Backoff

from .definition import Provider
from .reconciler import ProviderReconciler

__all__ = ["build_controller"]

RETRIES: Final = Backoff(base=0.1, cap=30.0)
"""Between tries after passing errors. The cap is how late a boundary may be after an API server came back."""


def build_controller(provider: Provider[Any], context: ManagerContext) -> Controller:
    """The controller of one kind of schedule. Its CRD may be installed later; it is waited for."""
    informer = context.cache.informer(provider.resource)
    controller = Controller(
        provider.name,
        ProviderReconciler(provider, informer, context),
        clock=context.clock,
        chance=context.chance,
        workers=16,
        backoff=RETRIES,
        metrics=context.metrics.controller(provider.name),
        queue_metrics=context.metrics.queue(provider.name),
    )
    controller.watches(informer, predicate=_needs_a_run)
    return controller


def _needs_a_run(change: Change) -> bool:
    """Everything but the echo of our own status write; a status that someone else changed is put right."""
    return not (change.own and change.type is ChangeType.MODIFIED)
