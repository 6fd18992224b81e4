"""Selection of requests by rules, and the effect of each fault on the runtime's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from fivespot.apiserver import ApiRequest
from fivespot.runtime import (
    DONE,
    Controller,
    Informer,
    Key,
    ManagerContext,
    Object,
    Resource,
    Result,
    TransportError,
    remove_finalizer,
)
from fivespot.runtime.errors import ConnectError, DeadlineError, GoneError, NotServedError, ServerError, ThrottledError
from fivespot.testing.cluster import EmbeddedCluster
from fivespot.testing.faults import (
    Cut,
    Drip,
    Duplicate,
    EndMarker,
    Fail,
    Fault,
    Gone,
    HalfOpen,
    Latency,
    LoseEvents,
    NoBookmarks,
    Refuse,
    RequestInfo,
    Reset,
    Rule,
    Stale,
    StaleList,
    Throttle,
)
from fivespot.testing.faults.answers import Shape

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "ü" * 200, **data}}


@pytest.mark.parametrize(
    ("method", "target", "seen"),
    [
        ("GET", "/api/v1/namespaces/default/configmaps", RequestInfo("list", "configmaps", "", "default")),
        ("GET", "/api/v1/configmaps?watch=true", RequestInfo("watch", "configmaps")),
        ("GET", "/apis/g/v1/namespaces/n/things/a", RequestInfo("get", "things", "g", "n", "a")),
        ("PATCH", "/apis/g/v1/namespaces/n/things/a/status", RequestInfo("patch", "things/status", "g", "n", "a")),
        ("POST", "/apis/g/v1/namespaces/n/things", RequestInfo("create", "things", "g", "n")),
        ("DELETE", "/api/v1/namespaces/n", RequestInfo("delete", "namespaces", "", "", "n")),
        ("GET", "/api/v1/namespaces", RequestInfo("list", "namespaces")),
        ("GET", "/version", RequestInfo("", "/version")),
    ],
)
def test_a_request_is_seen_in_the_words_of_rbac(method: str, target: str, seen: RequestInfo) -> None:
    assert RequestInfo.of(ApiRequest.of(method, target)) == seen


async def refusals(cluster: EmbeddedCluster, *rules: Rule, tries: int) -> list[bool]:
    """The refused requests of several gets."""
    cluster.faults.replace(rules)
    client = cluster.connect().client
    found = []
    for number in range(tries):
        try:
            await client.raw("GET", f"/api/v1/namespaces/default/configmaps/{number}")
        except ServerError:
            found.append(True)
        except Exception:
            found.append(False)
    return found


async def test_the_nth_request_and_the_first_few_and_every_other_one(fivespot_cluster: EmbeddedCluster) -> None:
    fail = Fail(500)
    assert await refusals(fivespot_cluster, Rule(fail, verb="get", nth=2), tries=4) == [False, True, False, False]
    assert await refusals(fivespot_cluster, Rule(fail, times=2), tries=4) == [True, True, False, False]
    assert await refusals(fivespot_cluster, Rule(fail, verb="list"), tries=2) == [False, False]
    assert await refusals(fivespot_cluster, Rule(fail, name="1"), tries=3) == [False, True, False]
    drawn = await refusals(fivespot_cluster, Rule(fail, probability=0.5), tries=200)
    assert 60 < sum(drawn) < 140
    assert len(fivespot_cluster.faults.happened) == 1 + 2 + 0 + 1 + sum(drawn)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fail(500), ServerError),
        (Fail(503, shape="html"), ServerError),
        (Fail(502, shape="text"), ServerError),
        (Fail(404), NotServedError),
        (Fail(404, shape="text"), NotServedError),
        (Throttle(retry_after=7), ThrottledError),
        (Gone(shape="http"), GoneError),
        (Refuse(), ConnectError),
        (Reset(), TransportError),
        (HalfOpen(), DeadlineError),
        (Cut(after=20), TransportError),
        (Latency(100.0), DeadlineError),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, type) else "",
)
async def test_a_request_that_fails_says_how(
    fivespot_cluster: EmbeddedCluster, fault: Fault, error: type[Exception]
) -> None:
    fivespot_cluster.faults.add(Rule(fault))
    with pytest.raises(error):
        await fivespot_cluster.connect().client.raw("GET", "/api/v1/namespaces/default/configmaps")


async def test_a_lost_answer_has_its_effect_all_the_same(fivespot_cluster: EmbeddedCluster) -> None:
    fivespot_cluster.faults.add(Rule(Reset(after=True), verb="create"))
    with pytest.raises(TransportError):
        await fivespot_cluster.connect().client.create(CONFIG_MAPS, config_map("a"))
    assert (await fivespot_cluster.client.get(CONFIG_MAPS, Key("default", "a"))).head.name == "a"


@pytest.mark.parametrize("shape", ["json", "text", "html"])
@pytest.mark.parametrize("verb", ["get", "patch", "delete"])
async def test_a_404_of_whatever_shape_does_not_say_that_an_object_is_gone(
    fivespot_cluster: EmbeddedCluster, verb: str, shape: Shape
) -> None:
    client = fivespot_cluster.connect().client
    obj = await client.create(CONFIG_MAPS, config_map("a"))
    fivespot_cluster.faults.add(Rule(Fail(404, shape=shape), verb=verb, times=1))
    calls: dict[str, Callable[[], Awaitable[Object | None]]] = {
        "get": partial(client.get, CONFIG_MAPS, obj.key),
        "patch": partial(remove_finalizer, client, CONFIG_MAPS, with_finalizer(obj), "example.com/hold"),
        "delete": partial(client.delete, CONFIG_MAPS, obj.key, uid=obj.head.uid),
    }
    with pytest.raises(NotServedError):
        await calls[verb]()
    assert (await client.get(CONFIG_MAPS, obj.key)).head == obj.head


def with_finalizer(obj: Object) -> Object:
    body = obj.decode()
    body["metadata"]["finalizers"] = ["example.com/hold"]
    return Object.parse(json.dumps(body).encode())


class Mirror:
    """Keeps what an informer shows, as a controller would see it."""

    def __init__(self, context: ManagerContext) -> None:
        self.informer: Informer = context.cache.informer(CONFIG_MAPS)
        self.controller: Controller = context.controller("mirror", self)
        self.controller.watches(self.informer)
        self.runs = 0

    async def reconcile(self, key: Key) -> Result:
        self.runs += 1
        return DONE

    def shown(self) -> dict[str, str]:
        return {obj.key.name: obj.decode().get("data", {}).get("step", "") for obj in self.informer.list()}


async def truth(cluster: EmbeddedCluster) -> dict[str, str]:
    found = await cluster.client.list(CONFIG_MAPS)
    return {obj.key.name: obj.decode().get("data", {}).get("step", "") for obj in found}


async def churn(cluster: EmbeddedCluster) -> None:
    """Creates, changes and deletions, a few seconds apart."""
    client = cluster.client
    for step in range(12):
        await client.create(CONFIG_MAPS, config_map(f"c{step}", step="0"))
        if step >= 2:
            await client.raw(
                "PATCH",
                f"/api/v1/namespaces/default/configmaps/c{step - 2}",
                body=b'{"data":{"step":"1"}}',
                headers={"Content-Type": "application/merge-patch+json"},
            )
        if step >= 4:
            await client.raw("DELETE", f"/api/v1/namespaces/default/configmaps/c{step - 4}")
        await asyncio.sleep(3)


Check = Callable[[], Awaitable[bool]]


@pytest.mark.parametrize(
    "rules",
    [
        (Rule(Cut(after=700), verb="watch"),),
        (Rule(Cut(after=611), verb="watch", times=5),),
        (Rule(Gone(), verb="watch", times=3),),
        (Rule(Gone(shape="http"), verb="watch", times=3),),
        (Rule(Gone(shape="body"), verb="watch", times=3),),
        (Rule(Fail(503, shape="html"), verb="watch", times=3), Rule(Fail(500), verb="list", times=2)),
        (Rule(Throttle(retry_after=4), times=4),),
        (Rule(Refuse(), times=6),),
        (Rule(Reset(), times=3),),
        (Rule(HalfOpen(after=5), verb="watch", times=2),),
        (Rule(HalfOpen(), verb="list", times=1), Rule(HalfOpen(), verb="watch", times=1)),
        (Rule(Drip(size=64, seconds=0.05), verb="watch"),),
        (Rule(NoBookmarks(), verb="watch"),),
        (Rule(Duplicate(), verb="watch"),),
        (Rule(Stale(), verb="watch"),),
        (Rule(EndMarker("refused"), verb="watch"),),
        (Rule(EndMarker("absent"), verb="watch"),),
        (Rule(EndMarker("bare"), verb="watch"),),
        (Rule(Latency(2.0), verb="list"), Rule(Latency(3.0, answer=True), verb="watch")),
    ],
    ids=lambda rules: "-".join(type(rule.fault).__name__ for rule in rules),
)
async def test_an_informer_shows_the_truth_in_the_end_whatever_happens(
    fivespot_cluster: EmbeddedCluster, rules: tuple[Rule, ...]
) -> None:
    cluster = fivespot_cluster
    cluster.faults.add(*rules)
    mirrors: list[Mirror] = []

    def build(context: ManagerContext) -> Controller:
        mirrors.append(Mirror(context))
        return mirrors[-1].controller

    async with cluster.manager(build):
        await churn(cluster)
        wanted = await truth(cluster)

        async def same() -> bool:
            shown = mirrors[0].shown()
            assert shown == wanted, shown
            return True

        # The longest wait is a half-open watch, which is noticed after 90 seconds.
        await cluster.until(same, within=300, what="the informer shows the truth")
        assert cluster.faults.happened, "the script was played"


async def test_an_event_that_was_lost_is_made_up_for_by_the_next_list(fivespot_cluster: EmbeddedCluster) -> None:
    cluster = fivespot_cluster
    cluster.faults.add(Rule(LoseEvents("DELETED"), verb="watch", times=1))
    mirrors: list[Mirror] = []

    def build(context: ManagerContext) -> Controller:
        mirrors.append(Mirror(context))
        return mirrors[-1].controller

    async with cluster.manager(build):
        await cluster.client.create(CONFIG_MAPS, config_map("a"))
        await cluster.until(lambda: mirrors[0].shown() == {"a": ""}, what="it is seen")
        await cluster.client.raw("DELETE", "/api/v1/namespaces/default/configmaps/a")
        await asyncio.sleep(5)
        assert mirrors[0].shown() == {"a": ""}, "nobody said so"
        # Whatever makes it list again repairs it: here a version that is too old.
        cluster.faults.replace([Rule(Gone(), verb="watch", times=1)])
        await cluster.until(lambda: mirrors[0].shown() == {}, within=7200, what="the deletion is seen")


def shows(mirror: Mirror, step: str) -> bool:
    return mirror.shown() == {"a": step}


async def test_a_stale_list_never_takes_an_informer_back_in_time(fivespot_cluster: EmbeddedCluster) -> None:
    cluster = fivespot_cluster
    cluster.faults.add(Rule(EndMarker("refused"), verb="watch"), Rule(StaleList(), verb="list"))
    mirrors: list[Mirror] = []

    def build(context: ManagerContext) -> Controller:
        mirrors.append(Mirror(context))
        return mirrors[-1].controller

    async with cluster.manager(build):
        await cluster.client.create(CONFIG_MAPS, config_map("a", step="0"))
        await cluster.until(lambda: mirrors[0].shown() == {"a": "0"}, what="it is seen")
        for step in range(1, 4):
            await cluster.client.raw(
                "PATCH",
                "/api/v1/namespaces/default/configmaps/a",
                body=b'{"data":{"step":"%d"}}' % step,
                headers={"Content-Type": "application/merge-patch+json"},
            )
            await cluster.until(partial(shows, mirrors[0], str(step)), what="it is news")
