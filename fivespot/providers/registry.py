"""The schedule kinds that come with fivespot, declared once; each is imported when it is first asked for.

Everything that has one entry per kind is derived from :data:`SHIPPED`, or checked against it by
``tests/unit/providers/test_registry.py``: the manager's controllers, definitions and their manifests, roles, reserved
kinds and short names, the samples of the conformance kit, and the pages.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider
    from fivespot.runtime.manager import ControllerFactory

__all__ = ["SHIPPED", "shipped_controller", "shipped_provider", "shipped_providers"]

SHIPPED: Final = {
    "CapitalMarketsSchedule": "fivespot.providers.capitalmarkets.provider",
    "ManualSchedule": "fivespot.providers.manual.provider",
    "TimeBasedSpotSchedule": "fivespot.providers.timebased.provider",
}
"""Kind -> the module that declares it as ``PROVIDER``."""


def shipped_provider(kind: str) -> Provider[Any]:
    """The provider of a shipped kind. :raises KeyError: there is none."""
    provider: Provider[Any] = import_module(SHIPPED[kind]).PROVIDER
    return provider


def shipped_controller(kind: str) -> ControllerFactory:
    """The factory of the controller of a shipped kind, for ``Manager.add``. :raises KeyError: there is none."""
    # Imported here: the definition of the kind is read by tools that run no controller.
    from fivespot.providers.sdk import build_controller  # noqa: PLC0415

    return partial(build_controller, shipped_provider(kind))


def shipped_providers() -> list[Provider[Any]]:
    """All providers that come with fivespot, sorted by kind."""
    return [shipped_provider(kind) for kind in sorted(SHIPPED)]
