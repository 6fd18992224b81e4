"""The schedule kinds that come with fivespot. Imported one by one, when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fivespot.providers.sdk import Provider

__all__ = ["SHIPPED", "shipped_provider", "shipped_providers"]

SHIPPED: Final = {
    "CapitalMarketsSchedule": "fivespot.providers.capitalmarkets.provider",
    "ManualSchedule": "fivespot.providers.manual.provider",
    "TimeBasedSpotSchedule": "fivespot.providers.timebased.provider",
}
"""Kind -> the module whose ``PROVIDER`` it is."""


def shipped_provider(kind: str) -> Provider[Any]:
    """The provider of a shipped kind. :raises KeyError: there is none."""
    provider: Provider[Any] = import_module(SHIPPED[kind]).PROVIDER
    return provider


def shipped_providers() -> list[Provider[Any]]:
    """All providers that come with fivespot, by kind."""
    return [shipped_provider(kind) for kind in sorted(SHIPPED)]
