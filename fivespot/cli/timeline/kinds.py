"""The provider of each kind of schedule: one that comes with fivespot, or one that the command line names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from fivespot.cli.loading import load_providers
from fivespot.cli.timeline.schedules import Schedule
from fivespot.providers.registry import SHIPPED, shipped_provider
from fivespot.providers.sdk import Provider
from fivespot.runtime.errors import ConfigError

__all__ = ["Kinds"]


class Kinds:
    """Kind -> provider.

    :param texts: ``MODULE:OBJECT`` of providers of one's own; they outrank those that come with fivespot.
    :raises ConfigError: one cannot be loaded.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._own = {provider.kind: provider for provider in load_providers(texts)}

    def provider(self, schedule: Schedule) -> Provider[Any]:
        """Whose schedule it is.

        :raises ConfigError: nobody's that is known here.
        """
        kind = schedule.kind
        if kind in self._own:
            return self._own[kind]
        if kind in SHIPPED:
            return shipped_provider(kind)
        known = sorted({*SHIPPED, *self._own})
        near = difflib.get_close_matches(kind, known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"{schedule}: the kind is not known here; {hint}known: {', '.join(known)}; name the provider of another "
            "kind with --provider MODULE:OBJECT"
        )
