"""The server: requests in, responses out, without a socket."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from .body import BODY_LIMIT
from .builtin_kinds import built_in_kinds
from .clock import IdGenerator, ServerClock, WallClock
from .cluster import Cluster
from .crds import DefinitionStrategy
from .discovery import DiscoveryDocuments
from .json_codec import decode_json, encode_json
from .lifecycle import Lifecycle
from .managed_fields import Owner
from .messages import ApiRequest, ApiResponse, json_response, text_response
from .negotiation import check_json
from .openapi import OpenApi
from .options import WriteOptions
from .resources import Resources
from .reviews import Reviews
from .status import StatusError, too_large
from .watch import BOOKMARK_SECONDS
from .write import Writer

__all__ = ["VERSION", "ApiServer", "Handler", "Middleware"]

VERSION: Final = "v1.37.2"
"""The release of Kubernetes whose behaviour this server has."""
_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_OWN_SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
}
"""The Service by which pods reach the API server, which every cluster has."""
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_CHECKS: Final = ("ping", "log", "etcd", "poststarthook/crd-informer-synced")
_ONE_CHECK: Final = tuple(f"{each}/" for each in _HEALTH)

Handler = Callable[[ApiRequest], Awaitable[ApiResponse]]
Middleware = Callable[[ApiRequest, Handler], Awaitable[ApiResponse]]
"""A function before the server: it may answer itself, wait, or change request and response."""

_log = logging.getLogger(__name__)


class ApiServer:
    """A Kubernetes API server in memory; an async context manager.

    Inside its scope the controllers for definitions, namespaces and garbage collection run, on the running loop and the
    injected clock, so that a virtual-time loop and a seed repeat a run exactly.

    :param clock: source of time; by default the system clock.
    :param seed: makes uids and generated names repeatable.
    :param window: changes kept for each resource; watches that are further behind get 410.
    :param token: the bearer token that requests need; "" for anonymous access.
    :param bookmarks: seconds between bookmarks.
    :param middleware: called for every request.
    """

    def __init__(
        self,
        *,
        clock: ServerClock | None = None,
        seed: int | None = None,
        window: int = 10_000,
        token: str = "",
        bookmarks: float = BOOKMARK_SECONDS,
        middleware: Middleware | None = None,
    ) -> None:
        self.cluster = Cluster(clock or WallClock(), IdGenerator(seed), window, bookmarks)
        self.middleware = middleware
        self._token = token
        self._lifecycle = Lifecycle(self.cluster)
        self._resources = Resources(self.cluster)
        self._discovery = DiscoveryDocuments(self.cluster.registry)
        self._openapi = OpenApi(self.cluster.registry)
        self._reviews = Reviews(token)
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        for kind in built_in_kinds(DefinitionStrategy()):
            self.cluster.registry.add(kind)

    async def __aenter__(self) -> Self:
        self._make_namespaces()
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._task = self._group.create_task(self._lifecycle.run(), name="apiserver lifecycle")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        assert self._task is not None
        self.cluster.store.close()
        self._task.cancel()
        await self._group.__aexit__(kind, error, trace)

    def _make_namespaces(self) -> None:
        kind = self.cluster.registry.find("", "namespaces")
        assert kind is not None
        writer = Writer(self.cluster)
        owner = Owner("kube-apiserver", "Update", "v1")
        options = WriteOptions(dry_run=False, manager=owner.manager, validation="Ignore", force=False)
        for name in _NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            if self.cluster.find(kind, "", name) is None:
                writer.create(kind, kind.versions["v1"], "", body, options, owner)
        services = self.cluster.registry.find("", "services")
        assert services is not None
        if self.cluster.find(services, "default", _OWN_SERVICE["metadata"]["name"]) is None:
            body = decode_json(encode_json(_OWN_SERVICE))
            writer.create(services, services.versions["v1"], "default", body, options, owner)

    def compact(self, version: int | None = None) -> None:
        """Compact the history up to a version (by default all of it), as etcd does.

        Older watches and continue tokens get 410.
        """
        self.cluster.store.compact(version)

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Answer a request; the caller closes a stream in the response."""
        if self.middleware is not None:
            return await self.middleware(request, self._answer)
        return await self._answer(request)

    async def _answer(self, request: ApiRequest) -> ApiResponse:
        try:
            return await self._dispatch(request)
        except StatusError as fault:
            return fault.response()
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            words = f"Internal error occurred: {type(error).__name__}"
            return StatusError(500, "InternalError", words, {"causes": [{"message": type(error).__name__}]}).response()

    async def _dispatch(self, request: ApiRequest) -> ApiResponse:
        if len(request.body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
        path = request.path
        if path in _HEALTH and any(name == "verbose" for name, _ in request.query):
            lines = [*(f"[+]{check} ok" for check in _CHECKS), f"{path[1:]} check passed"]
            return text_response(200, "\n".join(lines) + "\n")
        if path in _HEALTH or path.startswith(_ONE_CHECK):
            return text_response(200, "ok")
        if self._token and not self._known(request.header("authorization")):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        check_json(request.header("accept")) if path.startswith(("/api/", "/apis/")) else None
        if path == "/version":
            return json_response(200, _version())
        if path == "/":
            return json_response(200, msgspec.json.encode({"paths": self._paths()}))
        found = self._openapi.answer(path) if path.startswith("/openapi") else self._reviews.answer(request)
        if found is None and request.method == "GET" and path.startswith(("/api", "/apis")):
            found = self._discovery.answer(path, request.header("accept"))
        return found if found is not None else await self._resources.answer(request)

    def _known(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token.encode())

    def _paths(self) -> list[str]:
        paths = ["/api", "/apis", "/openapi/v3", "/version", *_HEALTH]
        for group, versions in self.cluster.registry.groups().items():
            base = f"/apis/{group}" if group else "/api"
            paths += [base, *(f"{base}/{version}" for version in versions)]
        return sorted(set(paths))


def _version() -> bytes:
    major, minor, _ = VERSION.removeprefix("v").split(".")
    return msgspec.json.encode({
        "major": major,
        "minor": minor,
        "gitVersion": VERSION,
        "gitCommit": "embedded",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "embedded",
    })  # fmt: skip
