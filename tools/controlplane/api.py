"""A small synchronous Kubernetes client that shares no code with the product.

Tests and the control plane itself set up and look at objects through it, so that a mistake in the product's client
cannot hide itself. Safe to use from several threads.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlencode, urlsplit

Json = dict[str, Any]
# Named here because a method called `list` hides the type inside the class.
Objects = list[Json]
PatchKind = Literal["merge", "json", "apply"]

_CONTENT_TYPE: Mapping[str, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_TIMEOUT_SECONDS = 30.0
_THROTTLED_SECONDS = 0.5
_DISCOVERY_SECONDS = 5.0
"""A server serves the objects of a new kind some milliseconds before it lists the kind, more under load."""

_IDLE_SECONDS = 20.0
"""The server closes idle connections after a while; a POST on such a one may have arrived and must not be repeated."""


class ApiError(Exception):
    """The server answered with an error status; ``body`` is its Status object, or ``{"message": text}``."""

    def __init__(self, status: int, what: str, body: Json) -> None:
        super().__init__(f"{what}: {status} {body.get('reason', '')} {body.get('message', '')}".strip())
        self.status = status
        self.body = body


class Api:
    """Requests to one server as one user (a bearer token)."""

    def __init__(self, url: str, *, ca_file: Path | None, token: str, user_agent: str = "fivespot-tests") -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._host, self._port = address.hostname, address.port
        self._ssl = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": user_agent, "Accept": "application/json"}
        self._idle: list[tuple[float, http.client.HTTPSConnection]] = []
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections; the client may be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    # -- verbs ---------------------------------------------------------------------------------------------------

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Json:
        """One object.

        Raises:
            ApiError: 404 and all other errors.
        """
        return self.request("GET", self._path(api_version, kind, namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Json | None:
        """One object, or None when there is none (or its kind is not served)."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version: str, kind: str, namespace: str | None = None, selector: str | None = None) -> Objects:
        """All objects of a kind, in one namespace or in all; each with ``apiVersion`` and ``kind`` as if read alone."""
        query = {"labelSelector": selector} if selector else None
        answer = self.request("GET", self._path(api_version, kind, namespace, None), query=query)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def create(self, body: Json, *, strict: bool = True, dry_run: bool = False) -> Json:
        """Creates an object; ``strict`` has unknown fields refused instead of pruned."""
        metadata = body["metadata"]
        path = self._path(body["apiVersion"], body["kind"], metadata.get("namespace"), None)
        query = {"fieldValidation": "Strict" if strict else "Ignore", **({"dryRun": "All"} if dry_run else {})}
        return self.request("POST", path, body, query=query)

    def create_many(self, bodies: Iterable[Json], *, workers: int = 8) -> Objects:
        """Creates objects in parallel and returns them in the same order."""
        with ThreadPoolExecutor(max_workers=workers) as pool:
            return list(pool.map(self.create, bodies))

    def replace(self, body: Json, *, subresource: str | None = None) -> Json:
        """PUT of a whole object, guarded by its resourceVersion when it has one."""
        metadata = body["metadata"]
        path = self._path(body["apiVersion"], body["kind"], metadata.get("namespace"), metadata["name"], subresource)
        return self.request("PUT", path, body)

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None,
        patch: Json | Sequence[Json],
        *,
        how: PatchKind = "merge",
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> Json:
        """A merge patch, a JSON patch or a server-side apply (which needs ``field_manager``)."""
        query = {"fieldManager": field_manager} if field_manager else None
        path = self._path(api_version, kind, namespace, name, subresource)
        return self.request("PATCH", path, patch, content_type=_CONTENT_TYPE[how], query=query)

    def patch_status(self, api_version: str, kind: str, name: str, namespace: str | None, status: Json) -> Json:
        """A merge patch of the status subresource: what a controller of that kind would write."""
        return self.patch(api_version, kind, name, namespace, {"status": status}, subresource="status")

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
        version: str | None = None,
        missing_ok: bool = False,
    ) -> None:
        """Asks for deletion, of just that version if one is given; it may go on after this returns (finalizers)."""
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if version is not None:
            body["preconditions"] = {"resourceVersion": version}
        try:
            self.request("DELETE", self._path(api_version, kind, namespace, name), body)
        except ApiError as error:
            if error.status != 404 or not missing_ok:
                raise

    # -- plumbing ------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """One request to any path; the decoded answer (``{"text": ...}`` when it is not JSON).

        Raises:
            ApiError: the status is 400 or above.
            OSError: the server cannot be reached, or the connection broke.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({"Content-Type": content_type} if payload is not None else {})}
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            status, raw = self._exchange(method, target, payload, headers)
            if status != 429 or time.monotonic() > deadline:
                break
            # Nothing was done: for example, the cache of a kind is being filled, and the request is to be repeated.
            time.sleep(_THROTTLED_SECONDS)
        try:
            answer = json.loads(raw)
        except ValueError:
            answer = {"text": raw.decode(errors="replace"), "message": raw.decode(errors="replace").strip()}
        if status >= 400:
            raise ApiError(status, f"{method} {target}", answer if isinstance(answer, dict) else {"message": answer})
        return answer if isinstance(answer, dict) else {"value": answer}

    def _exchange(
        self, method: str, target: str, payload: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        connection = self._take()
        reused = connection is not None
        if connection is None:
            connection = self._connect()
        try:
            try:
                connection.request(method, target, payload, dict(headers))
                response = connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # Closed by the server while idle. A POST may have arrived, so only a fresh start is safe to repeat.
                if not reused or method == "POST":
                    raise
                connection.close()
                self.close()
                connection = self._connect()
                connection.request(method, target, payload, dict(headers))
                response = connection.getresponse()
            raw = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append((time.monotonic(), connection))
        return response.status, raw

    def _take(self) -> http.client.HTTPSConnection | None:
        """A connection that was in use a moment ago, if there is one."""
        with self._lock:
            used, connection = self._idle.pop() if self._idle else (0.0, None)
        if connection is None or time.monotonic() - used < _IDLE_SECONDS:
            return connection
        connection.close()
        # The last one used is the freshest: the others are older still.
        self.close()
        return None

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT_SECONDS, context=self._ssl)

    def _path(
        self, api_version: str, kind: str, namespace: str | None, name: str | None, subresource: str | None = None
    ) -> str:
        plural, namespaced = self._resource(api_version, kind)
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        parts = [base, *(("namespaces", namespace) if namespaced and namespace else ()), plural, name, subresource]
        return "/".join(part for part in parts if part)

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        deadline = time.monotonic() + _DISCOVERY_SECONDS
        while (known := self._paths.get((api_version, kind))) is None:
            try:
                self._discover(api_version)
                if (api_version, kind) not in self._paths:
                    raise ApiError(404, f"discovery of {api_version} {kind}", {"message": "no such kind"})
            except ApiError as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        return known

    def _discover(self, api_version: str) -> None:
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for item in self.request("GET", base)["resources"]:
            if "/" not in item["name"]:
                self._paths[api_version, item["kind"]] = (item["name"], item["namespaced"])
