"""The words of the reflector's state machine: its states, what can happen to it, and what it can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fivespot.runtime.client import WatchEnd

__all__ = [
    "BackingOff",
    "Begin",
    "Commit",
    "Course",
    "Effect",
    "Empty",
    "FetchPage",
    "Follow",
    "Happening",
    "InitialEnd",
    "ListFailed",
    "Listing",
    "Nudged",
    "OpenWatch",
    "PageRead",
    "Rest",
    "Rested",
    "State",
    "Step",
    "StopAsked",
    "Stopped",
    "StreamStalled",
    "Syncing",
    "WatchOver",
    "Watching",
]


# States


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing was tried yet."""

    label = "empty"


@dataclass(frozen=True, slots=True)
class Listing:
    """A page is being fetched.

    :param token: of the page; "" for the first.
    :param version: of the list; 0 before the first page.
    """

    token: str = ""
    version: int = 0
    label = "listing"


@dataclass(frozen=True, slots=True)
class Syncing:
    """A streaming list: the objects arrive as the first events of the watch."""

    label = "syncing"


@dataclass(frozen=True, slots=True)
class Watching:
    """Events are followed."""

    label = "watching"


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Waiting after a failure.

    :param relist: go on with a list, not with a watch from the version reached.
    :param served: False if the server does not know the resource at all.
    """

    relist: bool
    served: bool = True

    @property
    def label(self) -> str:
        return "backing off" if self.served else "not served"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The end."""

    label = "stopped"


State: TypeAlias = Empty | Listing | Syncing | Watching | BackingOff | Stopped


@dataclass(frozen=True, slots=True)
class Course:
    """What a reflector remembers.

    :param version: the version reached: where the next watch begins.
    :param failures: requests in a row that cost the server work and failed, which the back-off grows with.
    :param misses: connections in a row that brought nothing, and watches that were closed early.
    :param relists: lists in a row that a watch led to and that no lasting watch followed.
    :param barren: watches in a row that were opened and brought nothing.
    :param restarts: lists in a row that were begun again because their continue token was refused.
    :param streaming: whether streaming lists are still tried.
    :param stream_failures: streaming lists in a row that broke.
    """

    state: State = Empty()
    version: int = 0
    failures: int = 0
    misses: int = 0
    relists: int = 0
    barren: int = 0
    restarts: int = 0
    streaming: bool = True
    stream_failures: int = 0


# What happens


@dataclass(frozen=True, slots=True)
class Begin:
    """The reflector is started."""


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page was taken in; ``token`` is "" for the last."""

    version: int
    token: str


@dataclass(frozen=True, slots=True)
class ListFailed:
    """A page could not be had or read."""

    error: Exception


@dataclass(frozen=True, slots=True)
class InitialEnd:
    """The bookmark arrived that ends a streaming list."""

    version: int


@dataclass(frozen=True, slots=True)
class StreamStalled:
    """A streaming list did not end within its limits."""


@dataclass(frozen=True, slots=True)
class WatchOver:
    """A watch ended or could not be opened.

    :param received: events and bookmarks that it brought.
    :param lasted: seconds since it was open; 0 if it never was.
    :param version: the version reached.
    """

    end: WatchEnd
    error: Exception | None
    received: int
    lasted: float
    version: int
    opened: bool = True


@dataclass(frozen=True, slots=True)
class Rested:
    """The wait is over."""


@dataclass(frozen=True, slots=True)
class Nudged:
    """Something outside says that the resource may be served now."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The reflector is no longer wanted."""


Happening: TypeAlias = (
    Begin | PageRead | ListFailed | InitialEnd | StreamStalled | WatchOver | Rested | Nudged | StopAsked
)


# What to do


@dataclass(frozen=True, slots=True)
class FetchPage:
    """Fetch a page; with an empty token what was read of the list before is void."""

    token: str


@dataclass(frozen=True, slots=True)
class Commit:
    """The list is complete: swap it in."""

    version: int


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Open a watch at a version; None asks for a streaming list first."""

    version: int | None


@dataclass(frozen=True, slots=True)
class Follow:
    """Go on with the watch that is open."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait. A wait for a resource that is not served ends early when a change of its definition is seen."""

    seconds: float
    until_served: bool = False


Effect: TypeAlias = FetchPage | Commit | OpenWatch | Follow | Rest
Step: TypeAlias = tuple[Course, tuple[Effect, ...]]
