"""The verbs of the Kubernetes API over a transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from fivespot.runtime.clock import Clock, Random
from fivespot.runtime.objects import Key, Object, Patch, Resource
from fivespot.runtime.telemetry import NULL_TRACER, Tracer

from .reader import REQUEST_LIMITS, WATCH_LIMITS, Reader
from .requests import accepting, delete_request, encode_body, names
from .responses import Propagation, WriteObserver, decode_object, decode_status, is_kind, is_removed
from .retry import Repeat, RetryPolicy
from .sender import Sender, succeeded
from .transport import Limits, Request, Response, Transport

__all__ = ["Client"]

_APPLY: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"


class Client(Reader):
    """A typed client for any resource; safe to share between all tasks of a loop.

    Every call ends within its limits times the attempts of the retry policy. A request is repeated only as
    :class:`~fivespot.runtime.client.Repeat` says: a create never once its bytes were sent.

    All calls raise :class:`~fivespot.runtime.errors.ApiError` (a subclass per status) when the server refuses,
    :class:`~fivespot.runtime.errors.TransportError` when no answer came, and
    :class:`~fivespot.runtime.errors.ProtocolError` when the answer cannot be understood.

    Guaranteed: no deletion without the uid it is meant for, no create sent twice, and observers told before the caller.

    Not guaranteed: that a write which raised :class:`~fivespot.runtime.errors.TransportError` (other than ConnectError)
    was not carried out, or not later; so make writes safe to arrive late (fixed names, uid, resourceVersion).

    :param transport: carries the requests; closed by :meth:`close`.
    :param field_manager: who changed a field, as ``managedFields`` records it (at most 128 characters).
    :param observe_request: called with the HTTP method and status (0: none came) of every answer.
    :param tracer: gets a span for every request, and for the opening of every watch.
    :param server: the URL of the server, for spans alone.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str = "fivespot",
        clock: Clock,
        rng: Random,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        request_limits: Limits = REQUEST_LIMITS,
        watch_limits: Limits = WATCH_LIMITS,
        observe_request: Callable[[str, int], None] | None = None,
        tracer: Tracer = NULL_TRACER,
        server: str = "",
    ) -> None:
        sender = Sender(
            transport,
            clock=clock,
            rng=rng,
            retry=retry,
            observe_request=observe_request,
            tracer=tracer,
            server=server,
        )
        super().__init__(sender, request_limits, watch_limits)
        self.clock = clock
        self._field_manager = field_manager
        self._observers: list[WriteObserver] = []

    def add_observer(self, observer: WriteObserver) -> None:
        """Have an observer told of every write from now on; adding it twice is harmless."""
        if observer not in self._observers:
            self._observers.append(observer)

    def remove_observer(self, observer: WriteObserver) -> None:
        """Stop telling an observer; unknown ones are ignored."""
        if observer in self._observers:
            self._observers.remove(observer)

    async def close(self) -> None:
        """Close the transport and with it every open watch."""
        await self._sender.transport.close()

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Any request by path: for discovery, reviews and what else is no object. Observers are not told.

        :param path: may carry a query of its own.
        """
        parts = urlsplit(path)
        response = await self._call(
            method,
            parts.path,
            f"{method} {parts.path}",
            query={**dict(parse_qsl(parts.query, keep_blank_values=True)), **(query or {})},
            headers={**accepting(content_type=_JSON if body is not None else ""), **(headers or {})},
            body=body,
            repeat=Repeat.ALWAYS if method in {"GET", "HEAD"} else Repeat.UNSENT,
        )
        return response.body

    # -- writing -------------------------------------------------------------------------------------------------

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any] | bytes,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Create an object.

        :param namespace: where; without it ``metadata.namespace`` says so.
        :param strict: have unknown and duplicate fields refused (400) instead of dropped with a warning.
        :raises AlreadyExistsError: the name is taken.
        :raises ValueError: a namespaced object without a namespace, or a body without metadata.
        """
        raw, key = encode_body(body)
        where = (namespace or key.namespace) if resource.namespaced else ""
        what = f"create {resource.qualified} {Key(where, key.name)}"
        if resource.namespaced and not where:
            raise ValueError(f"{what}: no namespace given")
        response = await self._call(
            "POST",
            resource.collection_path(where or None),
            what,
            query={**self._write_query(dry_run), **({"fieldValidation": "Strict"} if strict else {})},
            headers=accepting(content_type=_JSON),
            body=raw,
            repeat=Repeat.UNSENT,
        )
        return self._written(resource, response, what, dry_run)

    async def replace(
        self,
        resource: Resource,
        body: Mapping[str, Any] | bytes,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object; ``metadata.resourceVersion`` in the body keeps it from undoing the changes of others.

        :raises ConflictError: the object has moved on.
        :raises ValueError: the body has no name or namespace.
        """
        raw, key = encode_body(body)
        return await self._update("PUT", resource, key, raw, _JSON, subresource, dry_run, Repeat.ALWAYS)

    async def patch(
        self, resource: Resource, key: Key, patch: Patch, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Change an object by a JSON patch or a merge patch.

        :raises ConflictError: the resourceVersion or uid in a merge patch does not hold.
        :raises InvalidError: a ``test`` of a JSON patch failed, or the result is not valid.
        """
        return await self._update(
            "PATCH", resource, key, patch.body, patch.content_type, subresource, dry_run, Repeat.REFUSED
        )

    async def apply(
        self,
        resource: Resource,
        key: Key,
        body: Mapping[str, Any] | bytes,
        *,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: create the object or make the given fields so, owned by this client's field manager.

        :param force: take over fields that other managers own.
        :raises ConflictError: another manager owns a field and ``force`` is not set.
        """
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        query = {"force": "true"} if force else {}
        return await self._update("PATCH", resource, key, raw, _APPLY, subresource, dry_run, Repeat.ALWAYS, query)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str,
        version: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
        dry_run: bool = False,
    ) -> Object | None:
        """Delete the object of that uid, and no other that has its name by the time the request arrives.

        :param version: delete only if the object is still at this resourceVersion.
        :returns: the object while finalizers or a grace period keep it; None when it is gone, also when it was gone
            before.
        :raises ConflictError: another object has the name, or the version does not hold.
        :raises NotFoundError: the resource is not served, so nothing is known of the object.
        :raises ValueError: no uid.
        """
        request = delete_request(
            resource,
            key,
            self._request_limits,
            uid=uid,
            version=version,
            propagation=propagation,
            dry_run=dry_run,
        )

        def answers(response: Response) -> bool:
            return succeeded(response) or (response.status == 404 and names(response.body, key.name))

        response = await self._sender.send(request, Repeat.ALWAYS, answers=answers)
        remains: Object | None = None
        if decode_status(response.body) is None:
            obj = decode_object(response.body, request.what, dry_run=dry_run)
            if obj.head.deleting and not is_removed(obj):
                remains = obj
        if not dry_run:
            self._tell(resource, key, uid, remains)
        return remains

    # -- plumbing ------------------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        repeat: Repeat,
    ) -> Response:
        request = Request(method, path, self._request_limits, query, headers, body, what)
        return await self._sender.send(request, repeat)

    async def _update(
        self,
        method: str,
        resource: Resource,
        key: Key,
        body: bytes,
        content_type: str,
        subresource: str,
        dry_run: bool,
        repeat: Repeat,
        query: Mapping[str, str] | None = None,
    ) -> Object:
        verb = "replace" if method == "PUT" else "apply" if content_type == _APPLY else "patch"
        what = f"{verb} {resource.qualified} {key}" + (f" {subresource}" if subresource else "")
        response = await self._call(
            method,
            resource.object_path(key, subresource),
            what,
            query={**self._write_query(dry_run), **(query or {})},
            headers=accepting(content_type=content_type),
            body=body,
            repeat=repeat,
        )
        return self._written(resource, response, what, dry_run, subresource)

    def _write_query(self, dry_run: bool) -> dict[str, str]:
        query = {"fieldManager": self._field_manager}
        if dry_run:
            query["dryRun"] = "All"
        return query

    def _written(
        self, resource: Resource, response: Response, what: str, dry_run: bool, subresource: str = ""
    ) -> Object:
        obj = decode_object(response.body, what, dry_run=dry_run)
        if not dry_run and (subresource in {"", "status"} or is_kind(obj, resource)):
            self._tell(resource, obj.key, obj.head.uid, None if is_removed(obj) else obj)
        return obj

    def _tell(self, resource: Resource, key: Key, uid: str, state: Object | None) -> None:
        for observer in self._observers:
            if state is None:
                observer.removed(resource, key, uid)
            else:
                observer.wrote(resource, state)
