"""A Lease on a server that can be slow, cut off or lose answers, as one process sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fivespot.runtime.errors import api_error
from fivespot.runtime.objects import Key, Object, Resource

Fault = Callable[[str], Awaitable[None]]


async def no_fault(when: str) -> None:
    """Nothing goes wrong."""


@dataclass
class LeaseServer:
    """Holds at most one Lease and checks resourceVersions, as the API server does."""

    body: dict[str, Any] | None = None
    version: int = 0
    writes: list[dict[str, Any]] = field(default_factory=list)

    def client(self, fault: Fault = no_fault) -> LeaseView:
        return LeaseView(self, fault)

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity", ""))

    @property
    def spec(self) -> dict[str, Any]:
        return self.body["spec"] if self.body is not None else {}

    def store(self, body: dict[str, Any]) -> Object:
        self.version += 1
        copy = json.loads(json.dumps(body))
        copy["metadata"] |= {"uid": "lease-uid", "resourceVersion": str(self.version)}
        self.body = copy
        self.writes.append(copy)
        return self.object()

    def object(self) -> Object:
        return Object.parse(msgspec.json.encode(self.body))


@dataclass
class LeaseView:
    """One process's way to the server. ``fault`` is awaited before and after each request acts: it may sleep or raise;
    "before" means that the request never arrived, "after" that its answer was lost."""

    server: LeaseServer
    fault: Fault
    requests: list[str] = field(default_factory=list)

    async def get(self, resource: Resource, key: Key) -> Object:
        await self._before("get")
        if self.server.body is None:
            raise api_error(404, "NotFound", "not found", request=f"get lease {key}")
        answer = self.server.object()
        await self.fault("after get")
        return answer

    async def create(self, resource: Resource, body: dict[str, Any], *, namespace: str | None = None) -> Object:
        await self._before("create")
        if self.server.body is not None:
            raise api_error(409, "AlreadyExists", "exists", request="create lease")
        answer = self.server.store(body)
        await self.fault("after create")
        return answer

    async def replace(self, resource: Resource, body: dict[str, Any]) -> Object:
        await self._before("replace")
        if self.server.body is None:
            raise api_error(404, "NotFound", "not found", request="update lease")
        if body["metadata"]["resourceVersion"] != str(self.server.version):
            raise api_error(409, "Conflict", "modified", request="update lease")
        answer = self.server.store(body)
        await self.fault("after replace")
        return answer

    async def _before(self, verb: str) -> None:
        self.requests.append(verb)
        await self.fault(f"before {verb}")


async def hang(when: str) -> None:
    """A request that never ends by itself."""
    await asyncio.Event().wait()


async def hang_deaf(when: str) -> None:
    """A request that does not even end when it is cancelled, for two minutes."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 120
    while (left := end - loop.time()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
