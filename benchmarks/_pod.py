"""`fivespot manager` as in a pod: with the files of a ServiceAccount instead of a kubeconfig.

``python -m benchmarks._pod FOLDER [ARGUMENT...]`` finds ``token`` and ``ca.crt`` in the folder, and the server in
the variables that kubelet sets. A kubeconfig would load a library of 34 MiB, which no pod does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fivespot.cli import main
from fivespot.runtime.client import connection


def run() -> None:
    """Run the command line in this process."""
    connection.SERVICE_ACCOUNT = Path(sys.argv.pop(1))
    sys.argv[0] = "fivespot"
    main()


if __name__ == "__main__":
    run()
