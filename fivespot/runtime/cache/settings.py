"""The limits of a reflector."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ReflectorSettings"]


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """Limits of a reflector; times in seconds.

    :param page_size: objects per page of a list: 500 of 3 kB take 3 ms to take in.
    :param streaming: try a streaming list (KEP-3157) before a paged one.
    :param stream_quiet: a streaming list that sends nothing for so long will never send its end.
    :param stream_total: nor will one that has not ended after this.
    :param stream_tries: streaming lists that break before paged ones are used instead.
    :param watch_timeout: how long the server is asked to hold a watch; drawn from this range, so that the watches
        of many informers do not end together.
    :param backoff_base: the longest first wait; it doubles with each failure.
    :param backoff_cap: the longest wait after what cost the server work, unless it asks for a longer one.
    :param connect_cap: the longest wait after a connection that was refused, could not be made or broke, or a watch
        that was closed early, which cost the server nothing or little.
    :param retry_after_cap: the longest wait that a server may ask for.
    :param steady_after: a watch that lasted so long makes earlier misses count no more: the server is back.
    :param healthy_after: a watch that ends in a way which only another list can mend makes earlier lists count no more
        after this.
    :param short_watch: a watch that ends cleanly sooner than this is answered with a wait, not with a hot loop.
    :param barren_limit: so many watches in a row that brought neither event nor bookmark lead to a list: a server
        that is behind the version asked for is silent (and one restored from a backup stays behind).
    :param burst_events: events after which other tasks get a turn.
    :param burst_seconds: time after which they get one in any case.
    """

    page_size: int = 500
    streaming: bool = True
    stream_quiet: float = 10.0
    stream_total: float = 120.0
    stream_tries: int = 3
    watch_timeout: tuple[float, float] = (300.0, 600.0)
    backoff_base: float = 0.25
    backoff_cap: float = 30.0
    connect_cap: float = 3.0
    retry_after_cap: float = 300.0
    steady_after: float = 2.0
    healthy_after: float = 30.0
    short_watch: float = 1.0
    barren_limit: int = 3
    burst_events: int = 200
    burst_seconds: float = 0.002
