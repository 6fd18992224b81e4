"""Fault injection for API servers.

::

    Faults(
        Rule(Cut(after=400), verb="watch", resource="machines", nth=1),
        Rule(Throttle(retry_after=7), verb="create", times=3),
        Rule(Latency(5.0), probability=0.1),
    )

A script is a middleware of :class:`fivespot.apiserver.ApiServer`, so it works in process and over HTTP. With a
seed the same requests get the same faults.
"""

from .answers import Fail, Gone, Refuse, Reset, StaleList, Throttle
from .events import Duplicate, EndMarker, LoseEvents, NoBookmarks, Stale
from .script import Fault, Faults, InjectedFault, RequestInfo, Rule
from .streams import Cut, Drip, HalfOpen, Latency

__all__ = [
    "Cut",
    "Drip",
    "Duplicate",
    "EndMarker",
    "Fail",
    "Fault",
    "Faults",
    "Gone",
    "HalfOpen",
    "InjectedFault",
    "Latency",
    "LoseEvents",
    "NoBookmarks",
    "Refuse",
    "RequestInfo",
    "Reset",
    "Rule",
    "Stale",
    "StaleList",
    "Throttle",
]
