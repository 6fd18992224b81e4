"""The read verbs of the Kubernetes API: get, list, watch."""

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
"""A response may take as long as the slowest admission webhook (30 s); the server itself times out after 60 s."""
WATCH_LIMITS: Final = Limits(connect=5.0, read=90.0, total=None)
"""Bookmarks arrive about once a minute, so a watch that is silent for longer has lost its connection. Watches are
reopened for ever, so a short connect limit bounds the delay after the network recovers."""

_FAILURE_BODY_LIMIT: Final = 64 * 1024
_LIST_ATTEMPTS: Final = 3


class Reader:
    """Get, list, page and watch: the read half of :class:`~fivespot.runtime.client.Client`."""

    def __init__(self, sender: Sender, request_limits: Limits, watch_limits: Limits) -> None:
        self._sender = sender
        self._request_limits = request_limits
        self._watch_limits = watch_limits

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Get one object.

        :param metadata_only: request the metadata alone.
        :raises NotFoundError: the object does not exist.
        :raises NotServedError: the resource is not served.
        """
        request = get_request(resource, key, self._request_limits, metadata_only=metadata_only)
        response = await self._sender.send(request, Repeat.ALWAYS)
        return decode_object(response.body, request.description)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        selector: Selector = EVERYTHING,
        metadata_only: bool = False,
        limit: int = 500,
    ) -> list[Object]:
        """List all objects of a resource, in one namespace or (None) in all, in pages of ``limit``.

        When a continue token expires, the whole list is read again.

        :raises GoneError: continue tokens expired several times in a row.
        """
        attempt = 1
        while True:
            try:
                return await self._all_pages(resource, namespace, selector, metadata_only, limit)
            except GoneError:
                if attempt == _LIST_ATTEMPTS:
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
        """Read one page of a list, without retries: callers have their own back-off.

        :param limit: objects per page; 0 leaves it to the server.
        :param continue_token: from the previous page; "" for the first.
        :param version: ``resourceVersion`` of the first page ("0" allows the server's cache), None for the latest.
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
        return decode_page(response.body, request.description)

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
        """Open a watch, without retries. The caller closes it.

        Bookmarks are always requested.

        :param version: start after this version; with ``initial_events``, "" means the latest state.
        :param initial_events: have the server send all objects first, then a bookmark that marks their end (KEP-3157).
        :param server_timeout: seconds after which the server ends the watch.
        :raises WatchEnded: the watch cannot be opened; with the same reasons as the end of an open one.
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
            raise WatchEnded(WatchEnd.IDLE, f"{request.description}: {error}") from error
        except TransportError as error:
            raise WatchEnded(WatchEnd.BROKEN, f"{request.description}: {error}") from error
        if stream.status == 200:
            return Watch(stream, request.description)
        try:
            body = await stream.read_rest(_FAILURE_BODY_LIMIT)
        except TransportError:
            # The status is enough; the message is lost with the connection.
            body = b""
        finally:
            await stream.close()
        refusal = self._sender.failure(stream.status, stream.headers, body, request)
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
            page = decode_page(response.body, request.description)
            objects.extend(Object.parse(bytes(memoryview(item))) for item in page.items)
            if not page.continue_token:
                return objects
            if page.continue_token == token:
                raise ProtocolError(f"{request.description}: the server returned the same continue token twice")
            token = page.continue_token
