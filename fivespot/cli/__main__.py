"""Entry point of ``python -m fivespot.cli``, the same as the command ``fivespot``."""

from fivespot.cli import main

main()
