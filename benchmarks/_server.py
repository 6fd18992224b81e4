"""A server that has any number of objects without holding one of them: each is made when it is sent.

It runs in a process of its own (``python -m benchmarks._server SCENE COUNT [CERTIFICATE]`` prints its URL), so that
neither its processor time nor its memory is that of who reads from it. Lists come in pages or as a stream (KEP-3157),
and show objects as they are made; a patch is remembered for the next answer about its object, and told on the watches.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from ._scenes import SCENES, Collection, Make

__all__ = ["serving"]

REPOSITORY = Path(__file__).resolve().parents[1]
VERSION = 1_000_000_000
"""resourceVersion of every list; objects have lower ones, patched ones higher."""

_BLOCK = 64 * 1024

Json = dict[str, Any]


@contextmanager
def serving(scene: str, count: int, certificate: Path | None = None) -> Iterator[str]:
    """The URL of a server with a scene of ``benchmarks._scenes`` of that size, in a process of its own.

    :param certificate: file with certificate and key, for TLS.
    """
    command = [sys.executable, "-m", "benchmarks._server", scene, str(count)]
    command += [str(certificate)] if certificate else []
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


class _Server:
    def __init__(self, collections: dict[str, Collection]) -> None:
        self._collections = collections
        self._watches: defaultdict[str, list[web.StreamResponse]] = defaultdict(list)
        self._patches: dict[tuple[str, str], Json] = {}
        self._version = VERSION

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/version":
            return _json(b'{"major":"1","minor":"37"}')
        if request.method == "POST":
            return self._created(await request.read())
        collection = self._collections.get(path)
        if collection is None:
            return await self._one(request)
        slim = "PartialObjectMetadata" in request.headers.get("Accept", "")
        make = _slimmed(collection.make) if slim else collection.make
        if "watch" in request.query:
            return await self._watch(request, collection, make)
        return _json(_page(request, collection, make))

    def _created(self, body: bytes) -> web.Response:
        made = msgspec.json.decode(body)
        made["metadata"] |= self._stamp()
        made["metadata"].setdefault("uid", f"made-{self._version}")
        return _json(msgspec.json.encode(made), 201)

    def _stamp(self) -> Json:
        self._version += 1
        return {"resourceVersion": str(self._version)}

    async def _one(self, request: web.Request) -> web.StreamResponse:
        """GET of an object, or PATCH of it or of its status."""
        parts = request.path.removesuffix("/status").split("/")
        name = parts.pop()
        if "namespaces" in parts:
            at = parts.index("namespaces")
            del parts[at : at + 2]
        path = "/".join(parts)
        collection = self._collections.get(path)
        if collection is None:
            return _json(b'{"kind":"Status","code":404,"reason":"NotFound","metadata":{}}', 404)
        body = collection.make(collection.number(name))
        if request.method != "PATCH":
            return _json(body)
        patch = _merged(self._patches.get((path, name), {}), msgspec.json.decode(await request.read()), keep_nulls=True)
        patch["metadata"] = patch.get("metadata", {}) | self._stamp()
        self._patches[path, name] = patch
        body = msgspec.json.encode(_merged(msgspec.json.decode(body), patch))
        for watch in self._watches[path]:
            await watch.write(b'{"type":"MODIFIED","object":' + body + b"}\n")
        return _json(body)

    async def _watch(self, request: web.Request, collection: Collection, make: Make) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        answer.enable_chunked_encoding()
        try:
            await answer.prepare(request)
            if "sendInitialEvents" in request.query:
                async for block in _initial(collection, make):
                    await answer.write(block)
        except ConnectionError:
            # Who asked has seen enough.
            return answer
        watches = self._watches[request.path]
        watches.append(answer)
        try:
            await asyncio.Event().wait()
        finally:
            watches.remove(answer)
        return answer


async def _initial(collection: Collection, make: Make) -> AsyncIterator[bytes]:
    lines: list[bytes] = []
    size = 0
    for number in range(collection.count):
        lines.append(b'{"type":"ADDED","object":' + make(number) + b"}\n")
        size += len(lines[-1])
        if size >= _BLOCK:
            yield b"".join(lines)
            lines.clear()
            size = 0
    annotations = {"k8s.io/initial-events-end": "true"}
    end = {"kind": "Any", "metadata": {"resourceVersion": str(VERSION), "annotations": annotations}}
    lines.append(msgspec.json.encode({"type": "BOOKMARK", "object": end}) + b"\n")
    yield b"".join(lines)


def _page(request: web.Request, collection: Collection, make: Make) -> bytes:
    start = int(request.query.get("continue", "0"))
    stop = min(collection.count, start + int(request.query.get("limit", collection.count)))
    following = b'"continue":"%d",' % stop if stop < collection.count else b""
    head = b'{"kind":"List","apiVersion":"v1","metadata":{%s"resourceVersion":"%d"},"items":[' % (following, VERSION)
    return head + b",".join(make(number) for number in range(start, stop)) + b"]}"


def _slimmed(make: Make) -> Make:
    """The metadata alone."""

    def slim(number: int) -> bytes:
        metadata = msgspec.json.decode(make(number), type=dict[str, msgspec.Raw])["metadata"]
        return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":' + bytes(metadata) + b"}"

    return slim


def _merged(old: Json, change: Json, *, keep_nulls: bool = False) -> Json:
    """RFC 7386; with ``keep_nulls`` two patches become one."""
    merged = dict(old)
    for name, value in change.items():
        if value is None and not keep_nulls:
            merged.pop(name, None)
        elif isinstance(value, dict):
            before = merged.get(name)
            merged[name] = _merged(before if isinstance(before, dict) else {}, value, keep_nulls=keep_nulls)
        else:
            merged[name] = value
    return merged


def _json(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


async def _serve(scene: str, count: int, certificate: str = "") -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _Server(SCENES[scene](count)).handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = None
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
