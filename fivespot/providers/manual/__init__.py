"""ManualSchedule: active while somebody says so, or while another schedule does and no override says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fivespot.runtime.manager import ManagerContext
    from fivespot.runtime.reconcile import Controller

__all__ = ["build"]


def build(context: ManagerContext) -> Controller:
    """The controller of ManualSchedules."""
    # Imported here: the definition of the kind is read by tools that run no controller.
    from fivespot.providers.sdk import build_controller  # noqa: PLC0415

    from .provider import PROVIDER  # noqa: PLC0415

    return build_controller(PROVIDER, context)
