"""A controller as a user of the library writes it. Only its types are checked: nothing here may be Any by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import assert_type

from fivespot.runtime import (
    DONE,
    Cache,
    Change,
    ChangeType,
    Client,
    Clock,
    Connection,
    Controller,
    ElectionSettings,
    EventRecorder,
    GroupKind,
    Head,
    Informer,
    InformerSource,
    Key,
    KindAbsent,
    KindUnknown,
    Manager,
    ManagerContext,
    ManagerSettings,
    Metrics,
    NotFoundError,
    Object,
    Projection,
    Reconciler,
    Resource,
    Result,
    Selector,
    ServingSettings,
    SystemClock,
    Transport,
    all_of,
    by_label,
    configure_logging,
    connect,
    merge_patch,
    not_written_by,
    open_manager,
    owner_of,
    run,
)
from fivespot.runtime.backoff import Backoff
from fivespot.runtime.client import ByteStream, Limits, Request, Response, RetryPolicy
from fivespot.runtime.clock import ThreadOffload, system_random
from fivespot.runtime.manager import ControllerFactory, ElectionTimings
from fivespot.runtime.objects import EVERYTHING, FULL, Exists, In, KindState
from fivespot.runtime.reconcile import Predicate
from fivespot.runtime.workqueue import WorkQueue

PODS = Resource("", "v1", "pods", "Pod")
JOBS = GroupKind("batch", "Job")


class FixedClock:
    """A clock of the user's own."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def boottime(self) -> float:
        return self.monotonic()

    def now(self) -> datetime:
        return datetime(2027, 1, 1, tzinfo=UTC)


class RecordingTransport:
    """A transport of the user's own: what tests put in place of the network."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        return Response(200, {"content-type": "application/json"}, self.answer)

    async def stream(self, request: Request) -> ByteStream:
        raise NotImplementedError(request.description)

    async def close(self) -> None:
        self.asked.append("close")


class Janitor:
    """Deletes pods that have finished."""

    def __init__(self, client: Client, pods: Informer, clock: Clock) -> None:
        self.client, self.pods, self.clock = client, pods, clock

    async def reconcile(self, key: Key) -> Result:
        pod = self.pods.get(key)
        assert_type(pod, Object | None)
        if pod is None:
            return DONE
        head: Head = pod.head
        assert_type(head.labels, dict[str, str])
        assert_type(self.clock.now() + timedelta(seconds=1), datetime)
        try:
            left = await self.client.delete(PODS, key, uid=head.uid, version=head.version)
        except NotFoundError as error:
            assert_type(error.status, int)
            return DONE
        assert_type(left, Object | None)
        patched = await self.client.patch(PODS, key, merge_patch({"metadata": {"labels": {"swept": "yes"}}}, head))
        assert_type(patched.decode()["metadata"] is not None, bool)
        return Result(requeue_after=60.0)


def finished(change: Change) -> bool:
    return change.type is not ChangeType.DELETED and change.body.get("status", {}).get("phase") == "Succeeded"


def siblings(change: Change) -> Iterable[Key]:
    return [Key(change.head.namespace, owner.name) for owner in change.head.owners]


def build(context: ManagerContext) -> Controller:
    assert_type(context.cache, Cache)
    assert_type(context.metrics, Metrics)
    assert_type(context.events, EventRecorder)
    pods = context.cache.informer(PODS, namespace="jobs", selector=EVERYTHING, projection=FULL)
    assert_type(pods, Informer)
    reconciler: Reconciler = Janitor(context.client, pods, context.clock)
    controller = context.controller("janitor", reconciler, workers=2, backoff=Backoff(cap=30.0))
    only: Predicate = all_of(finished, not_written_by(controller.name))
    assert_type(controller.watches(pods, predicate=only), InformerSource)
    controller.watches(pods, owner_of(JOBS), gate=False)
    controller.watches(pods, by_label("job"))
    controller.watches(pods, siblings)
    assert_type(controller.queue, WorkQueue[Key])
    kind = context.cache.kinds.lookup(JOBS)
    assert_type(kind, KindState | KindAbsent | KindUnknown)
    context.metrics.counter("janitor_swept_total", "Pods that were deleted.").child().inc()
    return controller


FACTORY: ControllerFactory = build
LABELS_ONLY = Projection("labels", lambda raw: b"{}")
MINE = Selector(In("team", "a"), Exists("job"))


async def by_hand(answer: bytes) -> list[Object]:
    """The parts, put together without a manager."""
    transport: Transport = RecordingTransport(answer)
    client = Client(
        transport,
        clock=FixedClock(),
        rng=system_random(1),
        retry=RetryPolicy(attempts=1),
        request_limits=Limits(connect=1.0, read=1.0, total=2.0),
    )
    async with Cache(client, clock=FixedClock(), rng=system_random(1)) as cache:
        informer = cache.informer(PODS, selector=MINE, projection=LABELS_ONLY)
        await informer.wait_synced()
        return informer.list("jobs")


async def connected() -> None:
    connection = await connect(user_agent="janitor", clock=SystemClock(), rng=system_random(), offload=ThreadOffload())
    assert_type(connection, Connection)
    async with connection:
        assert_type(await connection.client.get(PODS, Key("jobs", "one")), Object)
    async with open_manager("janitor") as manager:
        assert_type(manager, Manager)
        manager.add(FACTORY)
        await manager.run(asyncio.Event())


def main() -> None:
    configure_logging("text")
    election = ElectionSettings("jobs", "janitor", "me", "example.com/works-on", timings=ElectionTimings())
    settings = ManagerSettings(grace=10.0, serving=ServingSettings(metrics_port=0), election=election)
    run(lambda manager: manager.add(build), name="janitor", settings=settings)
