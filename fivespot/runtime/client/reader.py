"""The verbs of the Kubernetes API that change nothing."""

from __future__ import annotations

import builtins
from typing import Final

from fivespot.runtime.errors import DeadlineError, GoneError, ProtocolError, TransportError
from fivespot.runtime.objects import EVERYTHING, Key, Object, Resource, Selector

from .requests import get_request, page_request, watch_request
from .responses import Page, decode_object, decode_page
from .retry import Repeat
from .sender import Sender
from .transport import Limits
from .watch import Watch, WatchEnd, WatchEnded, refused_watch

__all__ = ["REQUEST_LIMITS", "WATCH_LIMITS", "Reader"]

REQUEST_LIMITS: Final = Limits(connect=10.0, read=35.0, total=60.0)
"""An answer may take as long as the slowest admission webhook may (30 s); the server itself gives up after 60 s."""
WATCH_LIMITS: Final = Limits(connect=5.0, read=90.0, total=None)
"""Bookmarks come about once a minute, so a watch that is silent for longer has lost its connection. One that cannot
connect is tried again for ever, and soon, lest a try from before the network healed is waited for."""

_FAILURE_BODY_LIMIT: Final = 64 * 1024
_RELISTS: Final = 3


class Reader:
    """Get, list, page and watch: the half of :class:`~fivespot.runtime.client.Client` that changes nothing."""

    def __init__(self, sender: Sender, request_limits: Limits, watch_limits: Limits) -> None:
        self._sender = sender
        self._request_limits = request_limits
        self._watch_limits = watch_limits

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """One object.

        :param metadata_only: ask for the metadata alone.
        :raises NotFoundError: there is none, or the resource is not served (then ``reason`` is "").
        """
        request = get_request(resource, key, self._request_limits, metadata_only=metadata_only)
        response = await self._sender.send(request, Repeat.ALWAYS)
        return decode_object(response.body, request.what)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: Selector = EVERYTHING,
        metadata_only: bool = False,
        limit: int = 500,
    ) -> list[Object]:
        """All objects of a resource, in one namespace or (None) in all, read in pages of ``limit``.

        When a continue token expires in the middle, the whole list is read again.

        :raises GoneError: the tokens expired several times in a row.
        """
        attempt = 1
        while True:
            try:
                return await self._all_pages(resource, namespace, selector, metadata_only, limit)
            except GoneError:
                if attempt == _RELISTS:
                    raise
                attempt += 1

    async def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: Selector = EVERYTHING,
        metadata_only: bool = False,
        limit: int = 500,
        continue_token: str = "",
        version: str | None = None,
        match: str | None = None,
    ) -> Page:
        """One page of a list, asked for once: callers have a back-off of their own.

        :param limit: objects a page; 0 leaves it to the server.
        :param continue_token: from the page before; "" for the first.
        :param version: ``resourceVersion`` of the first page ("0" allows the server's cache), None for the newest.
        :param match: ``resourceVersionMatch`` of the first page.
        :raises GoneError: the continue token is too old.
        """
        request = page_request(
            resource,
            namespace,
            self._request_limits,
            selector=selector,
            metadata_only=metadata_only,
            limit=limit,
            continue_token=continue_token,
            version=version,
            match=match,
        )
        response = await self._sender.once(request)
        return decode_page(response.body, request.what)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: Selector = EVERYTHING,
        metadata_only: bool = False,
        version: str,
        initial_events: bool = False,
        server_timeout: float,
    ) -> Watch:
        """Open a watch; once, never retried. The caller closes it.

        Bookmarks are always asked for.

        :param version: watch from after this version; with ``initial_events`` "" means the newest state.
        :param initial_events: have the server send all objects first, then a bookmark that says so (KEP-3157).
        :param server_timeout: seconds after which the server is to end the watch.
        :raises WatchEnded: it cannot be opened; typed like the end of one that was open.
        """
        request = watch_request(
            resource,
            namespace,
            self._watch_limits,
            selector=selector,
            metadata_only=metadata_only,
            version=version,
            initial_events=initial_events,
            server_timeout=server_timeout,
        )
        try:
            stream = await self._sender.open(request)
        except DeadlineError as error:
            raise WatchEnded(WatchEnd.IDLE, f"{request.what}: {error}") from error
        except TransportError as error:
            raise WatchEnded(WatchEnd.BROKEN, f"{request.what}: {error}") from error
        if stream.status == 200:
            return Watch(stream, request.what)
        try:
            body = await stream.read_rest(_FAILURE_BODY_LIMIT)
        except TransportError:
            # The status alone says enough; its words are lost with the connection.
            body = b""
        finally:
            await stream.close()
        refusal = self._sender.failure(stream.status, stream.headers, body, request.what)
        raise refused_watch(refusal) from refusal

    async def _all_pages(
        self, resource: Resource, namespace: str | None, selector: Selector, metadata_only: bool, limit: int
    ) -> builtins.list[Object]:
        objects: builtins.list[Object] = []
        token = ""
        while True:
            request = page_request(
                resource,
                namespace,
                self._request_limits,
                selector=selector,
                metadata_only=metadata_only,
                limit=limit,
                continue_token=token,
            )
            response = await self._sender.send(request, Repeat.ALWAYS)
            page = decode_page(response.body, request.what)
            objects.extend(Object.parse(bytes(memoryview(item))) for item in page.items)
            if not page.continue_token:
                return objects
            if page.continue_token == token:
                raise ProtocolError(f"{request.what}: the same continue token came twice")
            token = page.continue_token
