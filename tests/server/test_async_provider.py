"""A provider that asks a slow, failing or silent outside world, on the real API server and with its own rights alone.

That the same holds to the second is shown in virtual time; here are real sockets, a real process clock, real RBAC.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import select
from fivespot.providers.sdk import ApiModel, Context, NoVerdict, Provider, Verdict, build_controller, rbac_manifests
from fivespot.runtime import Manager, Resource, open_manager
from support import eventually_async
from support.http_service import Outside, Say, outside
from support.rbac import grant

ACCOUNT, HOME = "price-provider", "default"
USER = f"system:serviceaccount:{HOME}:{ACCOUNT}"
SECRETS = Resource("", "v1", "secrets", "Secret")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PRICES = ("spotschedules.5spot.finos.org/v1alpha1", "MarketPrice")

Json = dict[str, Any]


class PriceSpec(ApiModel):
    """Active while somebody outside says so."""

    url: str
    """Whom to ask."""
    credential: str = ""
    """A Secret with what to show them."""


async def decide(spec: PriceSpec, at: datetime, context: Context) -> Verdict:
    headers = {}
    if spec.credential:
        secret = context.get(SECRETS, spec.credential)
        if secret is None:
            raise NoVerdict("NoCredential", f"there is no Secret {spec.credential}")
        headers["Authorization"] = base64.b64decode(secret["data"]["token"]).decode()
    async with aiohttp.ClientSession() as session, session.get(spec.url, headers=headers) as answer:
        if answer.status != 200:
            raise NoVerdict("OutsideRefuses", f"they answered {answer.status}", ready="Unknown")
        active = (await answer.json())["active"]
    return Verdict(active, reason="Cheap" if active else "Dear")


PRICE = Provider("MarketPrice", spec=PriceSpec, decide=decide, reads=(SECRETS,), timeout=60, poll=60)


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kind and what its provider may do, and no more."""
    api = control_plane.api
    control_plane.install_crds([PRICE.definition()])
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": HOME}}
    made = grant(api, [account, *rbac_manifests(PRICE, name=ACCOUNT, namespace=HOME)])
    yield control_plane.service_account_kubeconfig(HOME, ACCOUNT, tmp_path_factory.mktemp("price") / "kubeconfig")
    for body in made:
        api.delete(body["apiVersion"], body["kind"], body["metadata"]["name"], body["metadata"].get("namespace"))
    api.delete(*CRD, PRICE.resource.qualified)


@asynccontextmanager
async def running(provider: Provider[Any], kubeconfig: Path, namespace: str) -> AsyncIterator[Manager]:
    """The provider's manager, stopped in order at the end."""
    stop = asyncio.Event()
    async with (
        open_manager(ACCOUNT, kubeconfig=str(kubeconfig), namespaces=[namespace]) as manager,
        asyncio.TaskGroup() as group,
    ):
        manager.add(lambda context: build_controller(provider, context))
        group.create_task(manager.run(stop))
        try:
            yield manager
        finally:
            stop.set()


class Prices:
    """The schedules of one namespace, as a person sees them."""

    def __init__(self, api: Api, namespace: str, world: Outside) -> None:
        self.api = api
        self.namespace = namespace
        self.world = world

    def create(self, name: str, say: Say, **spec: str) -> None:
        self.world.says[name] = say
        metadata = {"name": name, "namespace": self.namespace}
        spec = {"url": self.world.url(name), **spec}
        self.api.create({"apiVersion": PRICES[0], "kind": PRICES[1], "metadata": metadata, "spec": spec})

    def edit(self, name: str, **spec: str) -> None:
        self.api.patch(*PRICES, name, self.namespace, {"spec": spec})

    def status(self, name: str) -> Json:
        found: Json = self.api.get(*PRICES, name, self.namespace).get("status", {})
        return found

    def ready(self, name: str) -> tuple[str, str, bool | None]:
        """Status and reason of condition Ready, and what the schedule says."""
        status = self.status(name)
        ready = {condition["type"]: condition for condition in status.get("conditions", ())}["Ready"]
        return ready["status"], ready["reason"], status.get("active")

    def events(self, name: str) -> list[Json]:
        found = self.api.list("events.k8s.io/v1", "Event", self.namespace)
        return [event for event in found if event["regarding"]["name"] == name]

    async def until(self, name: str, status: str, reason: str, active: bool | None) -> None:
        wanted = (status, reason, active)
        await eventually_async(lambda: self.ready(name) == wanted, 30, what=f"{name} is {wanted}")

    async def until_asked(self, name: str, count: int = 1) -> None:
        await eventually_async(lambda: len(self.world.asked[name]) >= count, 30, what=f"{name} is asked {count} times")


async def test_a_slow_answer_is_awaited_delays_no_other_object_and_is_given_up_at_a_stop(
    api: Api, namespace: str, kubeconfig: Path
) -> None:
    """java-operator-sdk and others run reconcilers on a few threads, which one slow service takes all of."""
    async with outside() as world:
        prices, open_ = Prices(api, namespace, world), asyncio.Event()
        slow = [f"slow-{number}" for number in range(40)]
        async with running(PRICE, kubeconfig, namespace):
            for name in slow:
                prices.create(name, Say(waits=open_))
            for name in slow:
                await prices.until_asked(name)
            prices.create("quick", Say(active=True))
            await prices.until("quick", "True", "Cheap", active=True)
            assert [prices.status(name) for name in slow] == [{}] * len(slow)
            for name in slow[20:]:
                world.says[name] = Say(active=False)
            began = asyncio.get_running_loop().time()
        # All of them were under way.
        assert asyncio.get_running_loop().time() - began < 15
        await eventually_async(lambda: all(world.asked[name][0].left for name in slow), 15, what="all were let go")
        assert [prices.status(name) for name in slow] == [{}] * len(slow)
        async with running(PRICE, kubeconfig, namespace):
            await prices.until_asked(slow[0], 2)
            open_.set()
            for name in slow:
                active = name in slow[:20]
                await prices.until(name, "True", "Cheap" if active else "Dear", active)


async def test_trouble_outside_is_told_the_verdict_stays_and_they_are_asked_less_often(
    control_plane: ControlPlane, api: Api, namespace: str, kubeconfig: Path
) -> None:
    often = replace(PRICE, timeout=1.0, poll=0.25)
    troubles = {
        "silent": (Say(waits=asyncio.Event()), ("False", "DecisionTimedOut")),
        "broken": (Say(breaks=True), ("False", "DecisionFailed")),
        "refusing": (Say(status=503), ("Unknown", "OutsideRefuses")),
    }
    async with outside() as world, running(often, kubeconfig, namespace):
        prices = Prices(api, namespace, world)
        for name in troubles:
            prices.create(name, Say(active=True))
        for name in troubles:
            await prices.until(name, "True", "Cheap", active=True)
            # An interval that is kept without anything having changed.
            await prices.until_asked(name, 3)
        before = {name: prices.status(name)["lastTransitionTime"] for name in troubles}
        for name, (say, _) in troubles.items():
            world.says[name], world.asked[name] = say, []
        for name, (_, ready) in troubles.items():
            await prices.until(name, *ready, active=True)
            await prices.until_asked(name, 3)
            at = [asked.at for asked in world.asked[name]]
            # 1 s and 2 s, less a fifth at most: never as often as while all was well.
            assert (at[1] - at[0] > 0.75, at[2] - at[1] > 1.55) == (True, True), (name, at)
            await eventually_async(lambda name=name: prices.events(name), what=f"an Event of {name}")
        assert {name: prices.status(name)["lastTransitionTime"] for name in troubles} == before
        assert all(asked.left for asked in world.asked["silent"][:2])
        # Another question: what failed before says nothing about it.
        for name in troubles:
            world.says[name] = Say(active=False)
            prices.edit(name, url=f"{world.url(name)}?again")
        for name in troubles:
            await prices.until(name, "True", "Dear", active=False)
            assert prices.status(name)["lastTransitionTime"] >= before[name]
    assert select(control_plane.audit(), user=USER, code=403) == []


async def test_an_answer_to_what_was_asked_before_an_edit_is_not_written(
    control_plane: ControlPlane, api: Api, namespace: str, kubeconfig: Path
) -> None:
    async with outside() as world, running(PRICE, kubeconfig, namespace):
        prices, answer = Prices(api, namespace, world), asyncio.Event()
        mark = control_plane.audit_log.mark()
        prices.create("edited", Say(active=True, waits=answer))
        await prices.until_asked("edited")
        world.says["other"] = Say(active=False)
        prices.edit("edited", url=world.url("other"))
        # Of other objects of this kind the manager hears in the same order: it knows of the edit now.
        prices.create("later", Say(active=True))
        await prices.until("later", "True", "Cheap", active=True)
        answer.set()
        await prices.until("edited", "True", "Dear", active=False)
        assert prices.status("edited")["observedGeneration"] == 2
        writes = select(control_plane.audit(since=mark), user=USER, verbs="patch", resource=PRICE.plural, name="edited")
        assert len(writes) == 1


async def test_a_credential_is_read_from_a_secret_and_a_new_one_is_used_at_once(
    api: Api, namespace: str, kubeconfig: Path
) -> None:
    first, second = "first-secret-word", "second-secret-word"
    async with outside() as world, running(PRICE, kubeconfig, namespace):
        prices = Prices(api, namespace, world)
        prices.create("guarded", Say(active=True, token=first), credential="key")
        await prices.until("guarded", "False", "NoCredential", active=False)
        secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}}
        api.create({**secret, "stringData": {"token": first}})
        await prices.until("guarded", "True", "Cheap", active=True)
        # Nothing but the change itself makes it ask again within a minute.
        world.says["guarded"] = Say(active=False, token=second)
        api.patch("v1", "Secret", "key", namespace, {"stringData": {"token": second}})
        await prices.until("guarded", "True", "Dear", active=False)
        assert [asked.token for asked in world.asked["guarded"]] == [first, second]
        shown = [api.get(*PRICES, "guarded", namespace), *prices.events("guarded")]
        assert "secret-word" not in json.dumps(shown)
