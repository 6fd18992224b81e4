"""The client: the verbs of the Kubernetes API over a transport."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import msgspec

from fivespot.runtime.clock import Clock, Random, SystemClock, system_random
from fivespot.runtime.errors import NotFoundError
from fivespot.runtime.objects import Head, Key, Object, Patch, Resource, Write, current_writer, merge_diff, merge_patch
from fivespot.runtime.telemetry import NULL_TRACER, Tracer

from .reader import REQUEST_LIMITS, WATCH_LIMITS, Reader
from .requests import delete_request, demanded_version, encode_body, json_headers
from .responses import Propagation, WriteObserver, decode_object, decode_status, is_kind, is_removed
from .retry import Repeat, RetryPolicy
from .sender import Sender
from .transport import Limits, Request, Transport

__all__ = ["Client", "Getter", "WriteResult"]

_APPLY: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"
_IDENTITY: Final = ("name", "namespace", "uid")


class WriteResult(enum.Enum):
    """Result of :meth:`Client.create_or_update`."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class Getter(Protocol):
    """Reads objects by key; an :class:`~fivespot.runtime.cache.Informer` is one."""

    def get(self, key: Key) -> Object | None: ...


class Client(Reader):
    """A client for any resource; safe to share between all tasks of an event loop.

    Every call ends within its limits times the attempts of the retry policy. A request is repeated only as
    :class:`~fivespot.runtime.client.Repeat` allows: a create never once its bytes were sent.

    All calls raise :class:`~fivespot.runtime.errors.ApiError` (a subclass per status) when the server refuses,
    :class:`~fivespot.runtime.errors.TransportError` when no response arrives, and
    :class:`~fivespot.runtime.errors.ProtocolError` when the response cannot be decoded.

    Guaranteed: no object is deleted but the one with the given uid, no create is sent twice, and observers are called
    before the call returns.

    Not guaranteed: that a write which raised :class:`~fivespot.runtime.errors.TransportError` (other than ConnectError)
    was not carried out, now or later; so make writes safe to arrive late (fixed names, uid, resourceVersion).

    :param transport: carries the requests; closed by :meth:`close`.
    :param field_manager: the name in ``managedFields`` for the client's writes (at most 128 characters), unless a call
        gives another.
    :param observe_request: called with the HTTP method and status (0: no response) of every request.
    :param tracer: records a span for every request, and for the opening of every watch.
    :param server: the URL of the server, for spans only.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str = "fivespot",
        clock: Clock | None = None,
        rng: Random | None = None,
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
        request_limits: Limits = REQUEST_LIMITS,
        watch_limits: Limits = WATCH_LIMITS,
        observe_request: Callable[[str, int], None] | None = None,
        tracer: Tracer = NULL_TRACER,
        server: str = "",
    ) -> None:
        self.clock = clock or SystemClock()
        sender = Sender(
            transport,
            clock=self.clock,
            rng=rng or system_random(),
            retry=retry,
            observe_request=observe_request,
            tracer=tracer,
            server=server,
        )
        super().__init__(sender, request_limits, watch_limits)
        self._field_manager = field_manager
        self._observers: list[WriteObserver] = []

    def add_observer(self, observer: WriteObserver) -> None:
        """Call an observer for every write from now on; adding it twice has no effect."""
        if observer not in self._observers:
            self._observers.append(observer)

    def remove_observer(self, observer: WriteObserver) -> None:
        """Stop calling an observer; unknown ones are ignored."""
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
        """Send any request by path: for discovery, reviews and other endpoints that are not objects.

        Observers are not called.

        :param path: may contain a query of its own.
        """
        parts = urlsplit(path)
        request = Request(
            method,
            parts.path,
            self._request_limits,
            {**dict(parse_qsl(parts.query, keep_blank_values=True)), **(query or {})},
            {**json_headers(content_type=_JSON if body is not None else ""), **(headers or {})},
            body,
            f"{method} {parts.path}",
        )
        repeat = Repeat.ALWAYS if method in {"GET", "HEAD"} else Repeat.UNSENT
        return (await self._sender.send(request, repeat)).body

    # -- writes --------------------------------------------------------------------------------------------------

    async def create(
        self,
        resource: Resource,
        body: Mapping[str, Any] | bytes,
        *,
        namespace: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Create an object.

        :param namespace: defaults to ``metadata.namespace``.
        :param strict: reject unknown and duplicate fields (400) instead of dropping them with a warning.
        :raises AlreadyExistsError: the name is taken.
        :raises NotFoundError: the namespace does not exist.
        :raises ValueError: a namespaced object without a namespace, or a body without metadata.
        """
        raw, key = encode_body(body)
        where = (namespace or key.namespace) if resource.namespaced else ""
        description = f"create {resource.qualified} {Key(where, key.name)}"
        if resource.namespaced and not where:
            raise ValueError(f"{description}: no namespace given")
        query = self._write_query(field_manager, dry_run)
        request = Request(
            "POST",
            resource.collection_path(where or None),
            self._request_limits,
            {**query, "fieldValidation": "Strict"} if strict else query,
            json_headers(content_type=_JSON),
            raw,
            description,
        )
        write = Write(current_writer.get(), demanded=0)
        return await self._send_write(resource, None, request, Repeat.UNSENT, write, dry_run=dry_run)

    async def replace(
        self,
        resource: Resource,
        body: Mapping[str, Any] | bytes,
        *,
        subresource: str = "",
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Replace an object; ``metadata.resourceVersion`` in the body keeps it from undoing the changes of others.

        :raises ConflictError: the object has changed.
        :raises NotFoundError: the object does not exist.
        :raises ValueError: the body has no name or namespace.
        """
        raw, key = encode_body(body)
        request = self._update_request(
            "replace", resource, key, raw, _JSON, subresource, self._write_query(field_manager, dry_run)
        )
        return await self._update(resource, key, request, Repeat.ALWAYS, subresource, dry_run)

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        *,
        subresource: str = "",
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a JSON patch or a merge patch.

        :raises ConflictError: the resourceVersion or uid in a merge patch does not match.
        :raises InvalidError: a ``test`` of a JSON patch failed, or the result is invalid.
        :raises NotFoundError: the object does not exist.
        """
        query = self._write_query(field_manager, dry_run)
        request = self._update_request("patch", resource, key, patch.body, patch.content_type, subresource, query)
        return await self._update(resource, key, request, Repeat.REFUSED, subresource, dry_run)

    async def patch_status(
        self,
        resource: Resource,
        obj: Object | Head,
        status: Mapping[str, Any],
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Set status fields of an object that was read, by a merge patch with its uid and resourceVersion.

        Fields that ``status`` does not name are kept, a value of None removes a field, and a list replaces the whole
        list. When ``obj`` is an :class:`~fivespot.runtime.Object` that has these values already, nothing is sent and it
        is returned.

        :raises ConflictError: the object has changed since it was read, or another object has its name.
        :raises NotFoundError: the object does not exist.
        """
        if isinstance(obj, Object) and _has_values(obj.decode().get("status"), status):
            return obj
        head = obj.head if isinstance(obj, Object) else obj
        return await self.patch(
            resource,
            Key(head.namespace, head.name),
            merge_patch({"status": status}, head),
            subresource="status",
            field_manager=field_manager,
            dry_run=dry_run,
        )

    async def apply(
        self,
        resource: Resource,
        key: Key,
        body: Mapping[str, Any] | bytes,
        *,
        force: bool = False,
        subresource: str = "",
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: create the object, or set the given fields and own them as the field manager.

        :param body: may leave out ``apiVersion``, ``kind`` and the name, which ``resource`` and ``key`` say.
        :param force: take over fields that other managers own.
        :raises ConflictError: another manager owns a field and ``force`` is not set.
        """
        if isinstance(body, bytes):
            raw = body
        else:
            head = {"apiVersion": resource.api_version, "kind": resource.kind}
            raw = msgspec.json.encode({**head, **body, "metadata": {"name": key.name, **body.get("metadata", {})}})
        query = self._write_query(field_manager, dry_run)
        if force:
            query["force"] = "true"
        request = self._update_request("apply", resource, key, raw, _APPLY, subresource, query)
        return await self._update(resource, key, request, Repeat.ALWAYS, subresource, dry_run)

    async def create_or_update(
        self,
        resource: Resource,
        key: Key,
        mutate: Callable[[dict[str, Any]], None],
        *,
        cache: Getter | None = None,
        field_manager: str | None = None,
    ) -> tuple[Object, WriteResult]:
        """Create an object, or update it to what ``mutate`` makes of it; the counterpart of Go's ``CreateOrUpdate``.

        ``mutate`` changes the decoded object in place; for one that does not exist it gets ``apiVersion``, ``kind``,
        name and namespace. The update is a merge patch of the changed fields alone, with uid and resourceVersion.

        Guaranteed: no write when ``mutate`` changes nothing; no update of a state that ``mutate`` has not seen; no
        second try, so ``mutate`` is called once.

        Not guaranteed: that a status is written (see :meth:`patch_status`), or that ``mutate`` sees fields that the
        projection of ``cache`` leaves out.

        :param mutate: must be synchronous and must not change the object's identity.
        :param cache: read the object from this informer; the default is a request to the server.
        :returns: the object as stored, and whether it was created, updated or unchanged.
        :raises AlreadyExistsError: the object was created in the meantime, or the cache has not seen it yet.
        :raises ConflictError: the object has changed since it was read.
        :raises NotFoundError: the object was deleted since it was read, or its namespace does not exist.
        :raises ValueError: ``mutate`` changed the object's identity.
        """
        current = cache.get(key) if cache is not None else await self._find(resource, key)
        if current is None:
            metadata = {"name": key.name, "namespace": key.namespace} if resource.namespaced else {"name": key.name}
            body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            _mutate(body, mutate)
            return await self.create(resource, body, field_manager=field_manager), WriteResult.CREATED
        body = current.decode()
        _mutate(body, mutate)
        change = merge_diff(current.decode(), body)
        if not change:
            return current, WriteResult.UNCHANGED
        patch = merge_patch(change, current.head)
        return await self.patch(resource, key, patch, field_manager=field_manager), WriteResult.UPDATED

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
        """Delete the object with that uid, and no other that has its name by the time the request arrives.

        :param version: delete only if the object is still at this resourceVersion.
        :returns: the object while finalizers or a grace period keep it; None when it is gone, including when it was
            gone before.
        :raises ConflictError: another object has the name, or the version does not match.
        :raises NotServedError: the resource is not served, so nothing is known about the object.
        :raises ValueError: the uid is empty.
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
        remains: Object | None = None
        try:
            response = await self._sender.send(request, Repeat.ALWAYS)
        except NotFoundError:
            pass
        else:
            if decode_status(response.body) is None:
                obj = decode_object(response.body, request.description, dry_run=dry_run)
                if obj.head.deleting and not is_removed(obj):
                    remains = obj
        if not dry_run:
            self._notify(resource, key, uid, remains, Write(current_writer.get(), version))
        return remains

    # -- internals -----------------------------------------------------------------------------------------------

    async def _find(self, resource: Resource, key: Key) -> Object | None:
        try:
            return await self.get(resource, key)
        except NotFoundError:
            return None

    def _write_query(self, field_manager: str | None, dry_run: bool) -> dict[str, str]:
        query = {"fieldManager": field_manager or self._field_manager}
        if dry_run:
            query["dryRun"] = "All"
        return query

    def _update_request(
        self,
        verb: str,
        resource: Resource,
        key: Key,
        body: bytes,
        content_type: str,
        subresource: str,
        query: Mapping[str, str],
    ) -> Request:
        return Request(
            "PUT" if verb == "replace" else "PATCH",
            resource.object_path(key, subresource),
            self._request_limits,
            query,
            json_headers(content_type=content_type),
            body,
            f"{verb} {resource.qualified} {key}" + (f" {subresource}" if subresource else ""),
            # Apply creates a missing object, so its 404 is about the namespace.
            "" if verb == "apply" and not subresource else key.name,
        )

    async def _update(
        self, resource: Resource, key: Key, request: Request, repeat: Repeat, subresource: str, dry_run: bool
    ) -> Object:
        write = Write(current_writer.get(), demanded_version(request))
        return await self._send_write(resource, key, request, repeat, write, subresource=subresource, dry_run=dry_run)

    async def _send_write(
        self,
        resource: Resource,
        key: Key | None,
        request: Request,
        repeat: Repeat,
        write: Write,
        *,
        subresource: str = "",
        dry_run: bool,
    ) -> Object:
        known = max((observer.known_version(resource, key) for observer in self._observers), default=0)
        response = await self._sender.send(request, repeat)
        obj = decode_object(response.body, request.description, dry_run=dry_run)
        if not dry_run and (subresource in {"", "status"} or is_kind(obj, resource)):
            self._notify(resource, obj.key, obj.head.uid, None if is_removed(obj) else obj, write)
            if obj.head.version < known:
                for observer in self._observers:
                    observer.rewound(obj.head.version)
        return obj

    def _notify(self, resource: Resource, key: Key, uid: str, state: Object | None, write: Write) -> None:
        for observer in self._observers:
            if state is None:
                observer.removed(resource, key, uid, write)
            else:
                observer.wrote(resource, state, write)


def _has_values(present: Any, wanted: Any) -> bool:
    """Whether a merge patch of ``wanted`` would leave ``present`` as it is."""
    if not isinstance(wanted, Mapping):
        return bool(present == wanted)
    if not isinstance(present, Mapping):
        return False
    return all(
        name not in present if value is None else name in present and _has_values(present[name], value)
        for name, value in wanted.items()
    )


def _mutate(body: dict[str, Any], mutate: Callable[[dict[str, Any]], None]) -> None:
    before = _identity(body)
    mutate(body)
    if _identity(body) != before:
        raise ValueError(f"mutate changed the identity of {before['kind']} {before['name']}")


def _identity(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = body.get("metadata") or {}
    return {
        "apiVersion": body.get("apiVersion"),
        "kind": body.get("kind"),
        **{name: metadata.get(name) for name in _IDENTITY},
    }
