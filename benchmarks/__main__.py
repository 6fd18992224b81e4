"""`./dev bench NAME [...]`: runs one benchmark of this folder; without a name it lists them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent


def main() -> int:
    """Run the named benchmark with the rest of the command line."""
    names = sorted(path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.stderr.write(f"benchmarks: {', '.join(names)}\n")
        return 2
    name = sys.argv.pop(1)
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
