"""Answers of live requests, and what is remembered of them."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from fivespot.api import names
from fivespot.controllers.scheduledmachine.live_lookup import LiveLookup, Unanswered
from fivespot.controllers.scheduledmachine.plan import Question
from fivespot.controllers.scheduledmachine.snapshot import Answers
from fivespot.runtime import Key, NotFoundError, Object, Resource
from fivespot.runtime.errors import NotServedError
from fivespot.runtime.objects import KindState
from unit.controllers.build import NAME, NAMESPACE, UID, UP, machine_ref, snapshot, stored_status

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
OLD = KindState(
    group="infrastructure.cluster.x-k8s.io", kind="Old", plural="olds", crd_name="olds", namespaced=True,
    established=True, deleting=False, served=("v1",), storage="v1", labels={}, uid="", version=0,
)  # fmt: skip


class Server:
    def __init__(self, *, error: Exception | None = None, left: int = 0) -> None:
        self.error = error
        self.left = left

    async def get(self, *_: Any, **__: Any) -> Object:
        assert self.error is not None
        raise self.error

    async def list(self, *_: Any, **__: Any) -> list[Object]:
        metadata: dict[str, Any] = {"name": NAME, "namespace": NAMESPACE, "uid": "old", "resourceVersion": "1"}
        metadata |= {"annotations": {names.ANNOTATION_UID: UID}}
        return [Object.parse(json.dumps({"metadata": metadata}).encode())] * self.left

    def in_group(self, group: str) -> tuple[KindState, ...]:
        return (OLD,) if group == OLD.group else ()


def lookup(server: Server) -> LiveLookup:
    return LiveLookup(cast("Any", server), cast("Any", server))


@pytest.mark.contract("B1.6")
async def test_only_the_word_of_the_server_about_this_machine_says_that_it_is_gone() -> None:
    s = snapshot(UP, stored=stored_status(machineRef=machine_ref()))
    swapped = NotServedError(404, "", "404 page not found", request="get machines")
    found = await lookup(Server(error=swapped)).answer(Question.MACHINE_GONE, s, MACHINES)
    assert isinstance(found, Unanswered), "while a definition is swapped nothing is lost"
    gone = NotFoundError(404, "NotFound", "not found", request="get machines")
    answer = await lookup(Server(error=gone)).answer(Question.MACHINE_GONE, s, MACHINES)
    assert isinstance(answer, Answers)
    assert answer.gone == {"m-1"}


@pytest.mark.contract("B2.3")
@pytest.mark.parametrize("left", [0, 1])
async def test_a_search_that_found_something_is_made_again_when_the_run_is_cut_short(left: int) -> None:
    server = lookup(Server(left=left))
    answer = await server.answer(Question.LEFTOVERS, snapshot(UP), MACHINES)
    assert isinstance(answer, Answers)
    assert len(answer.found) == left
    assert server.nothing_left(Key(NAMESPACE, NAME), UID) is (left == 0)
