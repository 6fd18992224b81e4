"""The latest plan per object, for ``/debug/plans``: what a controller decided, or would do in a dry run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from fivespot.runtime.objects import Key

__all__ = ["PlanBook"]


class PlanBook:
    """A bounded memory of plans.

    A plan is a mapping that JSON can hold and that names no credential: embedded specs are shown by their hash.

    :param size: plans kept; the ones noted longest ago are forgotten first.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._plans: OrderedDict[tuple[str, Key], Mapping[str, Any]] = OrderedDict()

    def note(self, controller: str, key: Key, plan: Mapping[str, Any]) -> None:
        self._plans[controller, key] = plan
        self._plans.move_to_end((controller, key))
        while len(self._plans) > self._size:
            self._plans.popitem(last=False)

    def forget(self, controller: str, key: Key) -> None:
        """The object is gone, or nothing is planned for it any more."""
        self._plans.pop((controller, key), None)

    def snapshot(self) -> list[dict[str, Any]]:
        return [
            {"controller": controller, "object": str(key), "plan": plan}
            for (controller, key), plan in self._plans.items()
        ]
