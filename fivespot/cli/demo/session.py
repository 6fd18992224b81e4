"""A run of the demo: server, controllers, operator and view on one event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import click

from fivespot.apiserver import HttpListener, kubeconfig, write_kubeconfig
from fivespot.cli.timeline.period import local, start_of
from fivespot.runtime import ApiError, ConfigError, SystemClock, configure_logging, merge_patch
from fivespot.runtime.manager.entrypoint import stop_on_signals
from fivespot.schedule import Zone, load_zone
from fivespot.testing.cluster import EmbeddedCluster, RunningManager
from fivespot.testing.system import EmbeddedSystem
from fivespot.testing.virtual_time import PacedLoop

from .board import WATCHED, Board
from .feed import Feed, Lines
from .keys import on_keys
from .sample import NAMESPACE, STAND_INS, START_OF_DAY, ZONE, acts, bodies

if TYPE_CHECKING:
    from fivespot.runtime import Cache, Informer

    from .views import BoardView

__all__ = ["FAREWELL", "DemoOptions", "run_demo"]

FAREWELL: Final = (
    "stopped; nothing is left behind\n"
    "next: preview a schedule with `fivespot timeline -f FILE`; install on a cluster: README, Quick start"
)

_STRIDE: Final = 60.0
"""Real seconds between two periodic checks."""
_FRAME: Final = 0.25
"""Real seconds between two frames."""
_LEAD: Final = 2.0
"""Real seconds before an event that a skip stops at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Options of the demo.

    :param view: whether to use the full-screen view; otherwise lines are written.
    :param seconds: real time after which it ends; None for no limit.
    :param kubeconfig: file for the kubeconfig; None for a temporary one.
    :param log: file for the controllers' logs; None discards them.
    """

    view: bool
    speed: float
    seconds: float | None
    port: int
    kubeconfig: Path | None
    log: Path | None


def run_demo(options: DemoOptions) -> None:
    """Run until a signal arrives or the time is over.

    :raises ConfigError: a file, the port or the terminal cannot be used.
    """
    with _logs(options.log), asyncio.Runner(loop_factory=partial(PacedLoop, options.speed)) as runner:
        runner.run(_main(options))


async def _main(options: DemoOptions) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    # The kubeconfig is removed also when the terminal is closed.
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop.set)
    zone = load_zone(ZONE)
    midnight = start_of(zone, _monday(local(zone, SystemClock().now()).date()))
    cluster = EmbeddedCluster(start=midnight + START_OF_DAY, stride=_STRIDE * options.speed)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        config = await _serve(stack, cluster, options)
        system = await stack.enter_async_context(EmbeddedSystem(cluster, more_families=(STAND_INS,)))
        await system.add_cluster(NAMESPACE)
        manager = await stack.enter_async_context(system.manager())
        show = _Show(options, cluster, zone, config, stop)
        stack.callback(show.farewell)
        for informer in show.informers(manager.manager.context.cache):
            stack.callback(informer.release)
        for resource, body in bodies():
            await cluster.client.create(resource, body)
        await _play(options, cluster, midnight, show, manager, stop)


def _monday(today: date) -> date:
    """The last Monday before today: near the real date, and not ahead of it."""
    return today - timedelta(days=today.weekday() or 7)


async def _serve(stack: AsyncExitStack, cluster: EmbeddedCluster, options: DemoOptions) -> Path:
    """Open the port for kubectl and write the kubeconfig, which is removed when the stack is closed.

    :raises ConfigError: the port is taken, or the file exists or cannot be written.
    """
    path = options.kubeconfig
    if path is not None and path.exists():
        raise ConfigError(f"--kubeconfig {path}: the file exists and is not overwritten")
    if path is not None and not path.parent.is_dir():
        # A directory created for it would be left behind.
        raise ConfigError(f"--kubeconfig {path}: there is no such directory")
    front = HttpListener(cluster.server, port=options.port, speed=options.speed)
    try:
        await stack.enter_async_context(front)
    except OSError as error:
        raise ConfigError(f"--port {options.port}: {error.strerror or error}") from error
    try:
        if path is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fivespot-demo-"))) / "kubeconfig"
        write_kubeconfig(path, kubeconfig(front.url))
    except OSError as error:
        raise ConfigError(f"--kubeconfig {path or tempfile.gettempdir()}: {error.strerror or error}") from error
    stack.callback(path.unlink, missing_ok=True)
    return path


async def _play(
    options: DemoOptions,
    cluster: EmbeddedCluster,
    midnight: datetime,
    show: _Show,
    manager: RunningManager,
    stop: asyncio.Event,
) -> None:
    async def over(seconds: float) -> None:
        await asyncio.sleep(seconds * options.speed)
        stop.set()

    async def ended() -> None:
        # Its context manager raises the error.
        await manager.wait()
        stop.set()

    def skip() -> None:
        now = cluster.clock.now()
        due = [midnight + act.after for act in acts(midnight)] + show.changes()
        ahead = min((instant for instant in due if instant > now + lead), default=now + timedelta(hours=1))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PacedLoop)
        loop.skip((ahead - lead - now).total_seconds())
        show.feed.note("skipped to the next event")

    lead = timedelta(seconds=_LEAD * options.speed)
    with show, on_keys({" ": skip, "q": stop.set}, enabled=options.view):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_operate(cluster, midnight, show.feed)), group.create_task(ended())]
            tasks.append(group.create_task(show.draw(_FRAME * options.speed)))
            if options.seconds is not None:
                tasks.append(group.create_task(over(options.seconds)))
            await stop.wait()
            for task in tasks:
                task.cancel()


async def _operate(cluster: EmbeddedCluster, midnight: datetime, feed: Feed) -> None:
    """Perform the operator's actions at their times."""
    for act in acts(midnight):
        await asyncio.sleep(max(0.0, (midnight + act.after - cluster.clock.now()).total_seconds()))
        feed.act(act.command)
        try:
            found = await cluster.client.get(act.resource, act.key)
            if act.change is not None:
                await cluster.client.patch(act.resource, act.key, merge_patch(act.change, found.head))
            else:
                await cluster.client.delete(act.resource, act.key, uid=found.head.uid)
        except ApiError as error:
            # The user may have deleted the object with kubectl.
            feed.note(str(error))


class _Show:
    """The output: on the screen, or line by line."""

    def __init__(
        self, options: DemoOptions, cluster: EmbeddedCluster, zone: Zone, config: Path, stop: asyncio.Event
    ) -> None:
        self._clock, self._zone = cluster.clock, zone
        self._options = options
        self.feed = Feed(self._brief) if options.view else Lines(self._brief, stop.set)
        self._board = Board(self.feed.saw, self._short)
        self._screen = self._view(f"KUBECONFIG={config} kubectl get sm -w") if options.view else None
        self.feed.note(f"API server, simulated Cluster API and manager in one process, at {options.speed:g} times")
        self.feed.note(f"export KUBECONFIG={config}")
        self.feed.note("then, in another terminal: kubectl get sm -w, fivespot why web-1, fivespot override list")

    def _view(self, commands: str) -> BoardView:
        from .views import BoardView  # noqa: PLC0415 - lines do not need the library that draws

        footer = f"space: skip to the next event   Ctrl-C: end   {commands}"
        return BoardView(self._board, self.feed, clock=self._full, local=self._short, footer=footer)

    def informers(self, cache: Cache) -> Iterator[Informer]:
        """Open the informers that update the board; the caller releases them."""
        for resource in WATCHED:
            informer = cache.informer(resource)
            informer.subscribe(partial(self._board.changed, resource))
            yield informer

    def __enter__(self) -> Self:
        if self._screen is not None:
            self._screen.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._screen is not None:
            self._screen.__exit__()

    def changes(self) -> list[datetime]:
        """The instants at which schedules change next."""
        return [row.next for row in self._board.schedules() if row.next is not None]

    async def draw(self, every: float) -> None:
        """Draw until cancelled."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PacedLoop)
        while self._screen is not None:
            if not loop.skipping:
                self._screen.draw()
            await asyncio.sleep(every)

    @staticmethod
    def farewell() -> None:
        """Print the last lines, after everything else has stopped."""
        with suppress(BrokenPipeError):
            click.echo(FAREWELL, err=True)

    def _now(self) -> datetime:
        return local(self._zone, self._clock.now())

    def _brief(self) -> str:
        return f"{self._now():%a %H:%M:%S}"

    def _full(self) -> str:
        return f"fivespot demo   {self._now():%A %Y-%m-%d %H:%M:%S} {ZONE}   time x {self._options.speed:g}"

    def _short(self, instant: datetime) -> str:
        return f"{local(self._zone, instant):%a %H:%M}"


@contextmanager
def _logs(path: Path | None) -> Iterator[None]:
    """Write the controllers' logs to a file: on a terminal they would disturb the view.

    :raises ConfigError: it cannot be written.
    """
    try:
        stream = (path or Path(os.devnull)).open("wb")
    except OSError as error:
        raise ConfigError(f"--log {path}: {error.strerror or error}") from error
    with stream:
        configure_logging("text", stream=stream)
        yield
