"""Periodic work: do something at an instant, and something else every so often.

ConfigMaps with the label ``example.com/ttl-seconds`` are deleted when they are that old: each key sleeps until its own
instant, so nothing polls. A runnable next to the controller says every minute how many there are. Try it::

    python examples/periodic_work.py --kubeconfig ~/.kube/config &
    kubectl create configmap short-lived
    kubectl label configmap short-lived example.com/ttl-seconds=30
"""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime, timedelta
from functools import partial

import structlog

from fivespot.runtime import (
    DONE,
    METADATA,
    Controller,
    Key,
    Manager,
    ManagerContext,
    Object,
    ObjectRef,
    Resource,
    Result,
    Selector,
    TerminalError,
    run,
)
from fivespot.runtime.objects import Exists, parse_rfc3339

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LABEL = "example.com/ttl-seconds"

log = structlog.get_logger("periodic_work")


def expires(obj: Object) -> datetime:
    """Pure: the instant follows from the object alone, so a restart forgets nothing.

    :raises TerminalError: the label is no number; only a change of the object can help.
    """
    text = obj.head.labels[LABEL]
    if not text.isdecimal() or len(text) > 9:
        raise TerminalError(f"{LABEL} of {obj.key} is {text!r}; it must be a number of seconds")
    return parse_rfc3339(obj.head.creation_timestamp) + timedelta(seconds=int(text))


class Expiry:
    def __init__(self, context: ManagerContext, namespace: str) -> None:
        self.client, self.clock, self.events = context.client, context.clock, context.events
        self.maps = context.cache.informer(
            CONFIG_MAPS, namespace=namespace, selector=Selector(Exists(LABEL)), projection=METADATA
        )

    async def reconcile(self, key: Key) -> Result:
        obj = self.maps.get(key)
        if obj is None or obj.head.deleting:
            return DONE
        left = (expires(obj) - self.clock.now()).total_seconds()
        if left > 0:
            # At most an hour at a time, because the wall clock may be set while the key sleeps.
            return Result(requeue_after=min(left, 3600.0))
        # With uid and version: an object that was replaced or relabelled a moment ago is not deleted.
        await self.client.delete(CONFIG_MAPS, key, uid=obj.head.uid, version=obj.head.version)
        about = ObjectRef.of(CONFIG_MAPS, obj)
        self.events.event(about, type="Normal", reason="Expired", message="its time was over", once="expired")
        return DONE


def build(namespace: str, context: ManagerContext) -> Controller:
    expiry = Expiry(context, namespace)
    controller = context.controller("expiry", expiry)
    controller.watches(expiry.maps)
    return controller


async def report(context: ManagerContext, namespace: str, every: float) -> None:
    """Runs until it is cancelled. The informer is shared with the controller: it costs no second watch."""
    maps = context.cache.informer(
        CONFIG_MAPS, namespace=namespace, selector=Selector(Exists(LABEL)), projection=METADATA
    )
    await maps.wait_synced()
    while True:
        log.info("waiting to expire", objects=len(maps))
        await asyncio.sleep(every)


def main() -> None:
    parser = argparse.ArgumentParser(description="Deletes ConfigMaps when their time is over.")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--report-every", type=float, default=60.0, metavar="SECONDS")
    args = parser.parse_args()

    def setup(manager: Manager) -> None:
        manager.add(partial(build, args.namespace))
        manager.add_runnable("report", partial(report, manager.context, args.namespace, args.report_every))

    run(setup, name="expiry-example", kubeconfig=args.kubeconfig, log_format="text")


if __name__ == "__main__":
    main()
