"""The two servers that the conformance tests run on, behind one plain HTTP client that shares no code with either."""

from __future__ import annotations

import asyncio
import http.client
import json
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from controlplane import ControlPlane
from fivespot.apiserver import ApiServer, HttpListener, kubeconfig, write_kubeconfig

Json = dict[str, Any]

CONTENT = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES = "/api/v1/namespaces"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_IDLE_SECONDS = 20.0
"""Servers close idle connections after a while, and a request that meets such an end may have arrived."""


@dataclass
class Answer:
    """The response to a request."""

    status: int
    headers: list[tuple[str, str]]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> set[tuple[str, str]]:
        """(reason, field) of each cause."""
        found = (self.body.get("details") or {}).get("causes", [])
        return {(cause.get("reason", ""), cause.get("field", "")) for cause in found}

    @property
    def warnings(self) -> list[str]:
        return sorted(value for name, value in self.headers if name.lower() == "warning")

    def ok(self) -> Json:
        """The object, of a request that must have succeeded."""
        assert self.status in {200, 201}, f"{self.status} {self.raw[:1500]!r}"
        return self.body  # type: ignore[no-any-return]


class Events:
    """An open watch, read in the test's own thread."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        self._response = response
        self._connection = connection
        self.status = response.status

    def next(self, seconds: float = 30.0) -> Json | None:
        """The next event; None at the end of the stream. TimeoutError when nothing comes."""
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)
        line = self._response.readline()
        return json.loads(line) if line.strip() else None

    def next_line(self) -> bytes:
        """The next event as it was sent."""
        return self._response.readline()

    def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        found: list[tuple[str, str]] = []
        for _ in range(count):
            event = self.next()
            assert event is not None, f"the watch ended after {found}"
            found.append((event["type"], event["object"].get("metadata", {}).get("name", "")))
        return found

    def close(self) -> None:
        self._connection.close()


class Target:
    """One server."""

    def __init__(
        self, name: str, url: str, token: str, ca_file: Path | None, config: Path, kubectl: Path | str
    ) -> None:
        self.name = name
        self._address = urlsplit(url)
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file else None
        self.config = config
        self._kubectl = kubectl
        self._kept = threading.local()

    @property
    def embedded(self) -> bool:
        return self.name == "embedded"

    # -- requests ------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; a body that is neither bytes nor text is sent as JSON."""
        connection = self._connection()
        target = path + (f"?{urlencode(query)}" if query else "")
        try:
            connection.request(method, target, _payload(body), self._headers(body, content, accept, headers))
            response = connection.getresponse()
        except (http.client.HTTPException, ConnectionError):
            connection.close()
            raise
        return Answer(response.status, response.getheaders(), response.read())

    def get(self, path: str, **options: Any) -> Answer:
        return self.request("GET", path, **options)

    def create(self, path: str, body: Any, **query: str) -> Answer:
        return self.request("POST", path, body, query=query)

    def put(self, path: str, body: Any, **query: str) -> Answer:
        return self.request("PUT", path, body, query=query)

    def patch(self, path: str, body: Any, how: str = "merge", **query: str) -> Answer:
        return self.request("PATCH", path, body, content=CONTENT[how], query=query)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.request(
            "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
        )

    @contextmanager
    def watch(self, path: str, *, accept: str = "application/json", **query: str) -> Iterator[Events]:
        """An open watch."""
        connection = self._connect()
        query = {"watch": "1", "timeoutSeconds": "30", **query}
        connection.request("GET", f"{path}?{urlencode(query)}", None, self._headers(None, "", accept, None))
        events = Events(connection.getresponse(), connection)
        try:
            yield events
        finally:
            events.close()

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False, seconds: float = 60) -> str:
        """The real kubectl; returns what it wrote (its errors when it is meant to fail)."""
        done = subprocess.run(
            [self._kubectl, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env={"KUBECONFIG": str(self.config), "HOME": str(self.config.parent), "PATH": "/usr/bin:/bin"},
        )
        assert (done.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stderr if fails else done.stdout

    def _headers(self, body: Any, content: str, accept: str, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": "conformance/1.0", **(extra or {})}
        if self._token:
            headers.setdefault("Authorization", f"Bearer {self._token}")
        if body is not None and content:
            headers["Content-Type"] = content
        return headers

    def _connection(self) -> http.client.HTTPConnection:
        now = time.monotonic()
        if now - getattr(self._kept, "used", now) > _IDLE_SECONDS:
            # The next request opens it again.
            self._kept.connection.close()
        self._kept.used = now
        if not hasattr(self._kept, "connection"):
            self._kept.connection = self._connect()
        return self._kept.connection  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connection of this thread."""
        if hasattr(self._kept, "connection"):
            self._kept.connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=30)
        return http.client.HTTPSConnection(host, port, timeout=30, context=self._tls)

    # -- things to work with -------------------------------------------------------------------------------------

    def namespace(self) -> str:
        """A new namespace."""
        name = f"conformance-{secrets.token_hex(4)}"
        self.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).ok()
        return name

    def leave(self, namespace: str) -> None:
        """Be done with a namespace.

        The real one stays until its server goes: the namespace controller needs seconds for each, and whoever waits
        for a namespace on the same server would stand in line behind hundreds.
        """
        if self.embedded:
            self.delete(f"{NAMESPACES}/{namespace}")

    def define(self, schema: Json, **options: Any) -> Defined:
        """A new kind, established and served."""
        group = f"g{secrets.token_hex(4)}.example.com"
        body = definition(group, schema, **options)
        self.create(DEFINITIONS, body).ok()
        self.eventually(lambda: established(self.get(f"{DEFINITIONS}/widgets.{group}").body))
        defined = Defined(self, group, body)
        # The first create on a real server may still meet a handler that is being built.
        self.eventually(lambda: self.get(defined.everywhere).status == 200)
        # It lists a kind some time after it serves it, by other controllers: one for each version, and one for groups.
        self.eventually(lambda: group in self.groups() and defined.served == self.versions(group))
        return defined

    def groups(self) -> dict[str, Json]:
        """The groups of plain discovery."""
        return {each["name"]: each for each in self.get("/apis").ok()["groups"]}

    def versions(self, group: str) -> set[str]:
        """The versions of a group by discovery, as far as their resources are listed too."""
        found = self.get(f"/apis/{group}")
        named = [each["version"] for each in found.ok()["versions"]] if found.status == 200 else []
        return {version for version in named if self.get(f"/apis/{group}/{version}").status == 200}

    @staticmethod
    def eventually(check: Callable[[], Any], seconds: float = 45.0) -> Any:
        """Wait until a check returns something true, and return that."""
        end = time.monotonic() + seconds
        while True:
            found = check()
            if found:
                return found
            assert time.monotonic() < end, f"not within {seconds} s"
            time.sleep(0.02)


@dataclass
class Defined:
    """A kind made for one test: Widget."""

    target: Target
    group: str
    definition: Json

    @property
    def name(self) -> str:
        return f"widgets.{self.group}"

    @property
    def everywhere(self) -> str:
        version = next(each["name"] for each in self.definition["spec"]["versions"] if each["served"])
        return f"/apis/{self.group}/{version}/widgets"

    @property
    def served(self) -> set[str]:
        """The versions that are served."""
        return {each["name"] for each in self.definition["spec"]["versions"] if each["served"]}

    def path(self, namespace: str, version: str = "v1") -> str:
        return f"/apis/{self.group}/{version}/namespaces/{namespace}/widgets"

    def body(self, name: str, spec: Any = None, version: str = "v1", **extra: Any) -> Json:
        metadata = {"name": name, **extra.pop("metadata", {})}
        made = {"apiVersion": f"{self.group}/{version}", "kind": "Widget", "metadata": metadata, **extra}
        return made if spec is None else {**made, "spec": spec}

    def remove(self) -> None:
        self.target.delete(f"{DEFINITIONS}/{self.name}")


def definition(
    group: str, schema: Json, *, versions: Sequence[Json] = (), names: Json | None = None, **extra: Any
) -> Json:
    """A CustomResourceDefinition of Widgets whose spec has a schema."""
    whole = {"type": "object", "properties": {"spec": schema, "status": _STATUS}}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}, **extra}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", **(names or {})},
            "versions": [first, *versions],
        },
    }


_STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def established(body: Json) -> bool:
    """Whether a definition says that it is served."""
    conditions = (body.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def config_map(name: str, data: Json | None = None, **metadata: Any) -> Json:
    """A ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return body if data is None else {**body, "data": data}


def _payload(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


class EmbeddedServer:
    """The embedded server on loopback, in a thread with a loop of its own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.config = folder / "embedded.kubeconfig"
        self.url = ""
        self._options = options
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="embedded API server")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with ApiServer(**self._options) as self.server, HttpListener(self.server) as front:
            self.url = front.url
            write_kubeconfig(self.config, kubeconfig(front.url, token="anyone"))
            self._ready.set()
            await self._stop.wait()

    def compact(self) -> None:
        """Forget the history, on the server's own loop."""
        assert self._loop is not None
        done = threading.Event()

        def forget() -> None:
            self.server.compact()
            done.set()

        self._loop.call_soon_threadsafe(forget)
        assert done.wait(5)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        assert self.url, "the embedded server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        assert not self._thread.is_alive(), "the embedded server did not stop"


def embedded_target(server: EmbeddedServer, kubectl: Path | str) -> Target:
    """The embedded server as a target."""
    return Target("embedded", server.url, "", None, server.config, kubectl)


def real_target(plane: ControlPlane) -> Target:
    """The real server as a target."""
    return Target("real", plane.url, plane.token, plane.ca_file, plane.admin_kubeconfig, plane.binaries.kubectl)
