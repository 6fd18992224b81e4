"""Discovery of served kinds, and the lifetime of its cache."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fivespot.runtime.client import Client, Discovery
from fivespot.runtime.errors import ForbiddenError, KindNotServedError, ProtocolError
from fivespot.runtime.objects import GroupKind, Resource
from support.faulty_servers import FakeTransport, FixedRandom, ManualClock, Step, answer, status_body

GROUP = "x.example"
MACHINE = GroupKind(GROUP, "Machine")


def group(*versions: str) -> Step:
    entries = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in versions]
    return answer({"kind": "APIGroup", "name": GROUP, "versions": entries, "preferredVersion": entries[0]})


def version(*kinds: tuple[str, str, bool]) -> Step:
    resources: list[dict[str, Any]] = []
    for name, kind, namespaced in kinds:
        resources += [
            {"name": name, "kind": kind, "namespaced": namespaced, "verbs": []},
            {"name": f"{name}/status", "kind": kind, "namespaced": namespaced, "verbs": []},
        ]
    return answer({"kind": "APIResourceList", "resources": resources})


NOT_FOUND = answer("404 page not found\n", 404)


def make(*steps: Step) -> tuple[Discovery, FakeTransport, ManualClock]:
    transport, clock = FakeTransport(*steps), ManualClock()
    return Discovery(Client(transport, clock=clock, rng=FixedRandom())), transport, clock


async def test_plural_and_scope_come_from_the_server_and_the_order_of_versions_too() -> None:
    discovery, transport, _ = make(
        group("v2", "v1"), version(("boxen", "Machine", False)), version(("machines", "Machine", True))
    )
    assert await discovery.resource(MACHINE) == Resource(GROUP, "v2", "boxen", "Machine", namespaced=False)
    assert await discovery.resource(MACHINE, prefer=["v3", "v1"]) == Resource(GROUP, "v1", "machines", "Machine")
    assert [request.path for request in transport.requests] == [
        "/apis/x.example",
        "/apis/x.example/v2",
        "/apis/x.example/v1",
    ]


async def test_a_kind_may_be_served_at_a_later_version_only() -> None:
    discovery, _, _ = make(group("v2", "v1"), version(), version(("machines", "Machine", True)))
    assert (await discovery.resource(MACHINE)).version == "v1"


async def test_the_core_group_has_paths_of_its_own() -> None:
    discovery, transport, _ = make(answer({"versions": ["v1"]}), version(("pods", "Pod", True)))
    resource = await discovery.resource(GroupKind("", "Pod"))
    assert resource.collection_path("a") == "/api/v1/namespaces/a/pods"
    assert [request.path for request in transport.requests] == ["/api", "/api/v1"]


@pytest.mark.parametrize("step", [NOT_FOUND, answer(status_body(404, "NotFound"), 404)])
async def test_a_group_that_is_not_served_is_told_apart_from_other_errors(step: Step) -> None:
    discovery, _, _ = make(step, answer(status_body(403, "Forbidden"), 403), answer("<html>"))
    with pytest.raises(KindNotServedError, match=r"does not serve the group x\.example"):
        await discovery.resource(MACHINE)
    with pytest.raises(ForbiddenError):
        await discovery.group(GROUP)
    with pytest.raises(ProtocolError, match=r"discovery of x\.example"):
        await discovery.group(GROUP)


async def test_a_version_that_goes_between_two_looks_is_left_out() -> None:
    discovery, _, _ = make(group("v2", "v1"), NOT_FOUND, version(("machines", "Machine", True)))
    assert (await discovery.group(GROUP)).versions == ("v1",)


async def test_a_missing_kind_is_looked_for_again_but_not_at_once() -> None:
    served = version(("machines", "Machine", True))
    discovery, transport, clock = make(group("v1"), version(), group("v1"), served)
    for _ in range(3):
        with pytest.raises(KindNotServedError, match=r"Machine\.x\.example: the server serves x\.example/v1"):
            await discovery.resource(MACHINE)
    assert len(transport.requests) == 2
    clock.advance(10)
    assert (await discovery.resource(MACHINE)).plural == "machines"


async def test_facts_are_kept_until_they_are_invalidated() -> None:
    served = version(("machines", "Machine", True))
    discovery, transport, clock = make(group("v1"), served, group("v2"), served, group("v3"), served)
    assert (await discovery.resource(MACHINE)).version == "v1"
    clock.advance(100_000)
    discovery.invalidate("other.example")
    assert (await discovery.resource(MACHINE)).version == "v1"
    discovery.invalidate(GROUP)
    assert (await discovery.resource(MACHINE)).version == "v2"
    discovery.invalidate()
    assert (await discovery.resource(MACHINE)).version == "v3"
    assert len(transport.requests) == 6


async def test_many_that_ask_at_once_cost_one_look() -> None:
    discovery, transport, _ = make(group("v1"), version(("machines", "Machine", True)))
    found = await asyncio.gather(*(discovery.resource(MACHINE) for _ in range(50)))
    assert len(set(found)) == 1
    assert len(transport.requests) == 2


async def test_an_answer_older_than_an_invalidation_is_not_kept() -> None:
    served = version(("machines", "Machine", True))
    discovery, transport, _ = make(group("v1"), served, group("v2"), served)
    original = transport.request

    async def invalidated_meanwhile(request: Any) -> Any:
        discovery.invalidate(GROUP)
        return await original(request)

    transport.request = invalidated_meanwhile  # type: ignore[method-assign]
    await discovery.group(GROUP)
    transport.request = original  # type: ignore[method-assign]
    assert (await discovery.group(GROUP)).versions == ("v2",)
