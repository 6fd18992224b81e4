"""Doors on the server in memory at which requests of the manager wait: the twin of :class:`support.gate.Gate`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from fivespot.apiserver import ApiRequest, ApiResponse, Handler
from fivespot.testing.faults import RequestInfo
from harness.wait import eventually

from .plane import EmbeddedControlPlane

__all__ = ["EmbeddedGate"]

Json = dict[str, Any]

_OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}


class EmbeddedGate:
    """As the gate of the real server, with the same arguments; the fault script holds what an admission webhook does
    there."""

    def __init__(
        self,
        plane: EmbeddedControlPlane,
        namespace: str,
        resources: Sequence[tuple[str, str]],
        operations: Sequence[str],
        *,
        is_open: bool = False,
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._resources = frozenset(resources)
        self._operations = frozenset(operations)
        self._open = asyncio.Event()
        if is_open:
            self._open.set()
        self._scope = ExitStack()
        self.seen: list[Json] = []

    def __enter__(self) -> Self:
        put = self._plane.request_faults.put(self, manager_only=True, namespace=self._namespace, applies=self._concerns)
        self._scope.enter_context(put)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._scope.close()

    def held(self, count: int = 1, timeout: float = 15) -> Json:
        eventually(lambda: len(self.seen) >= count, timeout, what=f"{count} requests at the gate")
        return self.seen[count - 1]

    def release(self) -> None:
        self._open.set()

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        """As a fault: note one request, and go on when the gate is open."""
        self.seen.append(await _shown(request, handler))
        await self._open.wait()
        return await handler(request)

    def _concerns(self, seen: RequestInfo) -> bool:
        return (seen.group, seen.resource) in self._resources and _OPERATIONS.get(seen.verb) in self._operations


async def _shown(request: ApiRequest, handler: Handler) -> Json:
    """The request as the real server shows it to an admission webhook, as far as tests look at it."""
    seen = RequestInfo.of(request)
    shown: Json = {"operation": _OPERATIONS[seen.verb], "name": seen.name, "resource": {"resource": seen.resource}}
    if seen.verb != "create":
        shown["oldObject"] = _body(await handler(ApiRequest("GET", request.path)))
    if seen.verb != "delete":
        tried = _body(await handler(replace(request, query=[*request.query, ("dryRun", "All")])))
        shown |= {"object": tried, "name": tried["metadata"]["name"]}
    return shown


def _body(answer: ApiResponse) -> Json:
    assert isinstance(answer.body, bytes)
    found: Json = json.loads(answer.body)
    return found
