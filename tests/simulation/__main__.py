"""``./dev simulate``: plays random days of the whole system, as many as one has time for, and says which fail."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from typing import Final

from simulation.days import Day, begin_worker, play

DESCRIPTION: Final = """\
Play random days of the whole system in virtual time: fivespot's managers, a simulated Cluster API, people who change
their minds, managers that die and a server that misbehaves. A witness inside the server reports every broken promise.
Everything in a day follows from its seed, so a day that failed can be played again. About a second of CPU time each.

  ./dev simulate --seeds 1000 --from 1 --jobs 2   a thousand days on two cores
  ./dev simulate --for 600                        as many as ten minutes allow
  ./dev simulate --replay 17                      one day, with what happened in it and the managers' logs

Progress goes to standard error; each failure is one line on standard output, with the command that plays it again.
Exit code: 0 all days went well, 1 some did not, 2 wrong arguments, 130 interrupted.
"""
_PROGRESS: Final = 30.0
"""Seconds between lines of progress where there is no terminal."""


class Progress:
    """Counts, and says how far it is: in place on a terminal, now and then elsewhere."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._began = self._told = time.monotonic()
        self.played = 0
        self.failed: list[int] = []

    def add(self, day: Day, again: str) -> None:
        self.played += 1
        if day.wrong:
            self.failed.append(day.seed)
            self._clear()
            sys.stdout.write(f"seed {day.seed}: {day.wrong}  (again: {again})\n")
            sys.stdout.flush()
        self._tell()

    def end(self) -> None:
        self._clear()
        seconds = time.monotonic() - self._began
        failed = f"{len(self.failed)} failed: {', '.join(map(str, self.failed))}" if self.failed else "all went well"
        sys.stderr.write(f"{self.played} days in {seconds:.0f} s; {failed}\n")

    def _tell(self) -> None:
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self._told < (0.2 if terminal else _PROGRESS):
            return
        self._told = now
        of = f" of {self._total}" if self._total is not None else ""
        pace = self.played / max(now - self._began, 1e-3)
        line = f"{self.played}{of} days, {len(self.failed)} failed, {pace:.1f}/s"
        sys.stderr.write(f"\r{line}\x1b[K" if terminal else f"{line}\n")
        sys.stderr.flush()

    def _clear(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def run(seeds: Iterator[int], progress: Progress, arguments: argparse.Namespace) -> None:
    """Play days until there are no more seeds, or no more time, or too many failures."""
    end = time.monotonic() + arguments.duration if arguments.duration is not None else float("inf")
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn"), initializer=begin_worker) as pool:
        under_way: set[Future[Day]] = set()
        # Two for each worker, so that none waits for the parent.
        waiting = deque(islice(seeds, 2 * arguments.jobs))
        while waiting or under_way:
            under_way |= {pool.submit(play, seed, arguments.limit) for seed in waiting}
            waiting.clear()
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                day = future.result()
                progress.add(day, f"./dev simulate --replay {day.seed}")
            if time.monotonic() < end and len(progress.failed) < arguments.failures:
                waiting.extend(islice(seeds, len(done)))


def replay(seed: int, limit: float) -> int:
    """Play one day and tell it."""
    day = play(seed, limit)
    story = "\n".join(day.story)
    sys.stdout.write(f"{story}\nseed {seed}: {day.wrong or 'all went well'}\n")
    return 1 if day.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "./dev simulate", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=_count, metavar="N", help="how many days (100, or no end with --for)")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="SEED", help="the first seed (1)")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--for", dest="duration", type=float, metavar="SECONDS", help="begin no day after that time")
    parser.add_argument("--failures", type=_count, default=10, metavar="N", help="stop after so many failures (10)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="real time for a day (120)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="one day again, with its story")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return number


def main(argv: list[str] | None = None) -> int:
    """The command; the exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.replay is not None:
        return replay(arguments.replay, arguments.limit)
    count = arguments.seeds or (None if arguments.duration is not None else 100)
    seeds = iter(range(arguments.first, arguments.first + count) if count is not None else _endless(arguments.first))
    progress = Progress(count)
    try:
        run(seeds, progress, arguments)
    except KeyboardInterrupt:
        progress.end()
        return 130
    progress.end()
    return 1 if progress.failed else 0


def _endless(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


if __name__ == "__main__":
    sys.exit(main())
