"""CapitalMarketsSchedule: active while a market is open, by a calendar of sessions, holidays and special dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fivespot.runtime.manager import ManagerContext
    from fivespot.runtime.reconcile import Controller

__all__ = ["build"]


def build(context: ManagerContext) -> Controller:
    """The controller of CapitalMarketsSchedules."""
    # Imported here: the definition of the kind is read by tools that run no controller.
    from fivespot.providers.sdk import build_controller  # noqa: PLC0415

    from .provider import PROVIDER  # noqa: PLC0415

    return build_controller(PROVIDER, context)
