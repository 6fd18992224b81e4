"""Run random days of the whole system and report those that fail (``./dev simulate``)."""

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

from simulation.runner import DayResult, run_day, start_worker

DESCRIPTION: Final = """\
Run random days of the whole system in virtual time: fivespot's managers, a simulated Cluster API, random edits by
users, managers that are killed, and faults of the API server. A checker inside the server reports every violated
invariant. A day follows from its seed and can be replayed. About a second of CPU time each.

  ./dev simulate --seeds 1000 --from 1 --jobs 2   a thousand days on two cores
  ./dev simulate --for 600                        as many as fit in ten minutes
  ./dev simulate --replay 17                      one day, with its events and the managers' logs

Progress goes to standard error; each failure is one line on standard output, with the command that replays it.
Exit code: 0 all days passed, 1 some failed, 2 wrong arguments, 130 interrupted.
"""
_PROGRESS: Final = 30.0
"""Seconds between lines of progress without a terminal."""


class Progress:
    """A progress report: in place on a terminal, otherwise a line from time to time."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._began = self._shown = time.monotonic()
        self.finished = 0
        self.failed: list[int] = []

    def add(self, day: DayResult, again: str) -> None:
        self.finished += 1
        if day.failure:
            self.failed.append(day.seed)
            self._clear()
            sys.stdout.write(f"seed {day.seed}: {day.failure}  (replay: {again})\n")
            sys.stdout.flush()
        self._show()

    def end(self) -> None:
        self._clear()
        seconds = time.monotonic() - self._began
        failed = f"{len(self.failed)} failed: {', '.join(map(str, self.failed))}" if self.failed else "all passed"
        sys.stderr.write(f"{self.finished} days in {seconds:.0f} s; {failed}\n")

    def _show(self) -> None:
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self._shown < (0.2 if terminal else _PROGRESS):
            return
        self._shown = now
        of = f" of {self._total}" if self._total is not None else ""
        pace = self.finished / max(now - self._began, 1e-3)
        line = f"{self.finished}{of} days, {len(self.failed)} failed, {pace:.1f}/s"
        sys.stderr.write(f"\r{line}\x1b[K" if terminal else f"{line}\n")
        sys.stderr.flush()

    def _clear(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


def run(seeds: Iterator[int], progress: Progress, arguments: argparse.Namespace) -> None:
    """Run days until the seeds or the time run out, or too many fail."""
    end = time.monotonic() + arguments.duration if arguments.duration is not None else float("inf")
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn"), initializer=start_worker) as pool:
        under_way: set[Future[DayResult]] = set()
        # Two per worker, so that no worker waits for the parent.
        waiting = deque(islice(seeds, 2 * arguments.jobs))
        while waiting or under_way:
            under_way |= {pool.submit(run_day, seed, arguments.limit) for seed in waiting}
            waiting.clear()
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                day = future.result()
                progress.add(day, f"./dev simulate --replay {day.seed}")
            if time.monotonic() < end and len(progress.failed) < arguments.failures:
                waiting.extend(islice(seeds, len(done)))


def replay(seed: int, limit: float) -> int:
    """Run one day and print its log."""
    day = run_day(seed, limit)
    log = "\n".join(day.log)
    sys.stdout.write(f"{log}\nseed {seed}: {day.failure or 'passed'}\n")
    return 1 if day.failure else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "./dev simulate", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=_count, metavar="N", help="number of days (100, or no limit with --for)")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="SEED", help="the first seed (1)")
    parser.add_argument("--jobs", type=_count, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--for", dest="duration", type=float, metavar="SECONDS", help="start no day after this time")
    parser.add_argument("--failures", type=_count, default=10, metavar="N", help="stop after this many failures (10)")
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="limit of real time for a day (120)"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one day and print its log")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
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
