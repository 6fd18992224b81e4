"""Names that follow from a kind, for providers that do not choose their own."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["metric_prefix", "plural", "short_names"]

_SHIPPED: Final = {"tbss": "TimeBasedSpotSchedule", "cms": "CapitalMarketsSchedule", "ms": "ManualSchedule"}
"""Short names that are taken. Two kinds of one group that claim the same keep the later one from being served at all
(apiextensions.k8s.io, condition NamesAccepted)."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[0-9]+")
_SUFFIX: Final = re.compile(r"(?<=.)(Spot)?Schedule$")


def plural(kind: str) -> str:
    """``WeekSchedule`` -> ``weekschedules``; ``Policy`` -> ``policies``."""
    lower = kind.lower()
    if re.search(r"[^aeiou]y$", lower):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith(("s", "x", "z", "ch", "sh")) else f"{lower}s"


def short_names(kind: str) -> tuple[str, ...]:
    """The initials, such as ``ws``; none where they would be a single letter or another kind's."""
    initials = "".join(re.findall("[A-Z]", kind)).lower()
    return (initials,) if len(initials) > 1 and _SHIPPED.get(initials, kind) == kind else ()


def metric_prefix(kind: str) -> str:
    """``WeekSchedule`` -> ``fivespot_week``."""
    words = _WORD.findall(_SUFFIX.sub("", kind))
    return "_".join(["fivespot", *(word.lower() for word in words)])
