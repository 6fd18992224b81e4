"""Measure the start of an empty program: memory and CPU time of hello world until its first run, with a kubeconfig.

The server is the embedded one, over plain HTTP, in this process. The program is the smallest there is: one controller
that watches one ConfigMap.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from fivespot.apiserver import ApiRequest, ApiServer, HttpListener, kubeconfig, write_kubeconfig

from ._report import Row, parser, report

_MAPS = "/api/v1/namespaces/default/configmaps"
_PROGRAM = """
import os, signal, time
from pathlib import Path
from fivespot.runtime import DONE, Resource, run

class Once:
    async def reconcile(self, key):
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        print(resident, time.process_time(), flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        return DONE

def build(context):
    controller = context.controller("maps", Once())
    controller.watches(context.cache.informer(Resource("", "v1", "configmaps", "ConfigMap")))
    return controller

run(lambda manager: manager.add(build), name="hello")
"""


async def started(rounds: int) -> list[tuple[float, float]]:
    """Return MiB and CPU seconds at the first run, once a round."""
    found = []
    async with ApiServer() as server, HttpListener(server) as front:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        await server.handle(ApiRequest.of("POST", _MAPS, body))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "kubeconfig"
            write_kubeconfig(file, kubeconfig(front.url, token="none"))
            for _ in range(rounds):
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", _PROGRAM),
                    env={**os.environ, "KUBECONFIG": str(file)},
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
                out, _ = await process.communicate()
                resident, seconds = map(float, out.split())
                found.append((resident, seconds))
    return found


def main() -> None:
    options = parser("start", __doc__)
    options.add_argument("--starts", type=int, default=9, metavar="N")
    given = options.parse_args()
    found = asyncio.run(started(given.starts))
    row: Row = {
        "what": "hello world",
        "MiB": round(median(resident for resident, _ in found), 1),
        "CPU s": median(seconds for _, seconds in found),
        "least CPU s": min(seconds for _, seconds in found),
    }
    report(given, f"{given.starts} starts, medians", [row])


if __name__ == "__main__":
    main()
