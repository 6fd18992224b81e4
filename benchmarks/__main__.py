"""Run one benchmark of this folder (``./dev bench NAME [...]``); list them without a name.

``--against PATH [--rounds N]`` runs the benchmark of another checkout by turns with this one and compares.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from ._compare import compare

_FOLDER = Path(__file__).parent


def main() -> int:
    """Run the named benchmark with the rest of the command line."""
    names = sorted(path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.stderr.write(f"benchmarks: {', '.join(names)}\n")
        return 2
    name = sys.argv.pop(1)
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--against", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    given, rest = options.parse_known_args(sys.argv[1:])
    if given.against is not None:
        compare(name, given.against, given.rounds, rest)
        return 0
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
