"""Leader-only work: of several processes one works, and another takes over when it stops, dies or is cut off.

The leader counts up in the ConfigMap ``tally``. Start it twice, and stop the one that counts::

    python examples/leader_only.py --kubeconfig ~/.kube/config --identity one &
    python examples/leader_only.py --kubeconfig ~/.kube/config --identity two &
    kubectl get configmap tally -o yaml --watch

An election alone does not keep a write of yesterday's leader from arriving late. Here every write carries the version
that was read, so that no number is ever counted twice.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
from functools import partial
from typing import Any

import structlog

from fivespot.runtime import (
    AlreadyExistsError,
    ApiError,
    Client,
    ConflictError,
    ElectionSettings,
    Key,
    Manager,
    ManagerSettings,
    Resource,
    TransportError,
    run,
)

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")

log = structlog.get_logger("leader_only")


async def count(client: Client, key: Key, identity: str, every: float) -> None:
    """Runs while this process leads; cancelled when it does not any more."""
    while True:
        try:
            await step(client, key, identity)
        except (ConflictError, AlreadyExistsError):
            log.info("somebody else wrote, looking again")
        except (ApiError, TransportError) as error:
            # Raising would end the process. An API server that is away is no reason to: the election judges that.
            log.warning("cannot count", error=str(error))
        await asyncio.sleep(every)


async def step(client: Client, key: Key, identity: str) -> None:
    def count_up(tally: dict[str, Any]) -> None:
        data = tally.setdefault("data", {})
        data |= {"count": str(int(data.get("count", "0")) + 1), "by": identity}

    await client.create_or_update(CONFIG_MAPS, key, count_up)


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts, in one process of several.")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--identity", default=f"{platform.node()}_{os.getpid()}", help="unique among the processes")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS")
    args = parser.parse_args()

    def setup(manager: Manager) -> None:
        key = Key(args.namespace, "tally")
        work = partial(count, manager.context.client, key, args.identity, args.every)
        manager.add_runnable("count", work, leader_only=True)

    election = ElectionSettings(
        namespace=args.namespace,
        name="leader-only-example",
        identity=args.identity,
        annotation="example.com/works-on",
        members=("tally",),
    )
    run(
        setup,
        name="tally-example",
        kubeconfig=args.kubeconfig,
        settings=ManagerSettings(election=election),
        log_format="text",
    )


if __name__ == "__main__":
    main()
