"""Run proofs and write their pages (``./dev prove``)."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from proofs.proof import PAGES, Budget, page
from proofs.registry import PROOFS

DESCRIPTION = """\
Run checks that take longer than ./dev test, and write each result to docs/proofs/NAME.md with its seed and commit.

  ./dev prove                          every proof with its default budget
  ./dev prove simulation --for 3600    an hour of random days

Exit code: 0 everything passed, 1 there were failures, 2 wrong arguments.
"""


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {proof.name:12} {proof.claim} ({proof.seconds:g} s)" for proof in PROOFS)
    parser = argparse.ArgumentParser(
        "./dev prove",
        description=DESCRIPTION,
        epilog=f"proofs:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="proofs to run (all)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="where random choices start (1)")
    parser.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="time for each proof")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (one per CPU)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    known = {proof.name: proof for proof in PROOFS}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no proof is named {', '.join(unknown)}; there are {', '.join(known)}")
    failed = False
    for name in arguments.names or known:
        proof = known[name]
        budget = Budget(arguments.seed, proof.seconds, arguments.jobs)
        if arguments.seconds is not None:
            budget = replace(budget, seconds=arguments.seconds)
        sys.stderr.write(f"{name}: {budget.seconds:g} s\n")
        result = proof.run(budget)
        PAGES.mkdir(exist_ok=True)
        (PAGES / f"{name}.md").write_text(page(proof, budget, result))
        failed = failed or bool(result.failures)
        for line in result.failures or ["passed"]:
            sys.stdout.write(f"{name}: {line}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
