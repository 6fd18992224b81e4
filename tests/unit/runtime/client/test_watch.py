"""Events and ends of a watch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fivespot.runtime.client import Watch, WatchEnd, WatchEnded
from fivespot.runtime.errors import (
    BrokenStreamError,
    DeadlineError,
    GoneError,
    ProtocolError,
    ServerTimeoutError,
    TransportError,
)
from fivespot.runtime.objects import decode_head
from support.faulty_servers import FakeStream, status_body


def event(type_: str, body: Any) -> bytes:
    return json.dumps({"type": type_, "object": body}).encode()


POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web", "resourceVersion": "8"}}


async def test_events_come_in_order_with_their_objects_untouched() -> None:
    stream = FakeStream(
        [event("ADDED", POD), event("MODIFIED", POD), event("BOOKMARK", {"kind": "Pod"}), event("DELETED", POD)]
    )
    watch = Watch(stream, "watch pods")
    events = [await watch.next() for _ in range(4)]
    assert [e.type for e in events] == ["ADDED", "MODIFIED", "BOOKMARK", "DELETED"]
    assert json.loads(bytes(events[0].object)) == POD


@pytest.mark.parametrize("value", [b"[" * 20_000 + b"]" * 20_000, b"1" * 5_000, b"nul"])
@pytest.mark.parametrize(
    "form", [b'{"type":"ADDED","object":{%b,"spec":%b}}', b'{"object":{%b,"spec":%b} , "type": "ADDED"}\n']
)
async def test_an_object_that_cannot_be_decoded_is_an_event_as_any_other(form: bytes, value: bytes) -> None:
    meta = b'"metadata":{"name":"web","namespace":"prod","uid":"u","resourceVersion":"8"}'
    watch = Watch(FakeStream([form % (meta, value), event("DELETED", POD)]), "watch pods")
    first = await watch.next()
    assert (first.type, first.object) == ("ADDED", b'{%b,"spec":%b}' % (meta, value))
    assert (first.head().name, first.head().version) == ("web", 8)
    assert (await watch.next()).type == "DELETED"


HEADED = {"kind": "Pod", "metadata": {"name": "web", "namespace": "prod", "uid": "u", "resourceVersion": "8"}}


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":%s}',
        b'{"type": "ADDED", "object": %s}',
        b'{"type":"ADDED","object":%s }',
        b'{"object":%s,"type":"ADDED"}',
        b'{"type":"ADDED","object":%s,"sequence":7}',
        b'{"note":"}","type":"ADDED","object":%s}',
    ],
)
@pytest.mark.parametrize("extra", [{}, {"spec": {"note": '}},{"type":"'}}, {"kind": None}], ids=str)
async def test_an_event_is_the_same_however_it_is_written(line: bytes, extra: dict[str, Any]) -> None:
    body = HEADED | extra
    watch = Watch(FakeStream([line % json.dumps(body, separators=(",", ":")).encode()]), "watch pods")
    event = await watch.next()
    assert (event.type, json.loads(event.object)) == ("ADDED", body)
    assert event.head() == decode_head(json.dumps(body).encode())


async def test_an_object_without_usable_metadata_is_an_event_that_cannot_be_read_as_one() -> None:
    watch = Watch(FakeStream([event("ADDED", {"metadata": {"labels": [1]}})]), "watch pods")
    found = await watch.next()
    with pytest.raises(ProtocolError, match="metadata"):
        found.head()


@pytest.mark.parametrize(
    ("line", "reason", "status"),
    [
        (b"", WatchEnd.CLEAN, None),
        (BrokenStreamError("cut"), WatchEnd.BROKEN, None),
        (TransportError("reset"), WatchEnd.BROKEN, None),
        (DeadlineError("silence"), WatchEnd.IDLE, None),
        (event("ERROR", status_body(410, "Expired")), WatchEnd.EXPIRED, 410),
        (event("ERROR", status_body(410, "Gone")), WatchEnd.EXPIRED, 410),
        (json.dumps(status_body(410, "Expired")).encode(), WatchEnd.EXPIRED, 410),
        (event("ADDED", status_body(410, "Expired")), WatchEnd.EXPIRED, 410),
        (event("ERROR", status_body(429, "TooManyRequests", retryAfterSeconds=3)), WatchEnd.THROTTLED, 429),
        (event("ERROR", status_body(504, "Timeout")), WatchEnd.REFUSED, 504),
        (event("ERROR", {"kind": "Status"}), WatchEnd.REFUSED, 500),
        (event("ERROR", {"kind": "Pod"}), WatchEnd.GARBAGE, None),
        (event("ERROR", None), WatchEnd.GARBAGE, None),
        (event("DELETED", None), WatchEnd.GARBAGE, None),
        (event("DELETED", [1]), WatchEnd.GARBAGE, None),
        (event("DELETED", "web"), WatchEnd.GARBAGE, None),
        (event("SURPRISE", POD), WatchEnd.GARBAGE, None),
        (b'{"type":"DELETED"}', WatchEnd.GARBAGE, None),
        (b'{"type":"ADDED","object":{"metadata":{"na', WatchEnd.GARBAGE, None),
        (b"429 too many requests", WatchEnd.GARBAGE, None),
        (b"<html>", WatchEnd.GARBAGE, None),
        (b'{"kind":"Status","status":"Success"}', WatchEnd.GARBAGE, None),
        (b"\xff\xfe", WatchEnd.GARBAGE, None),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_every_end_has_a_reason(line: bytes | TransportError, reason: WatchEnd, status: int | None) -> None:
    """kube-rs#1615, python-base#231, python-base#227, kr8s#476, kubernetes#76624: no end looks like another."""
    stream = FakeStream([event("ADDED", POD), line])
    watch = Watch(stream, "watch pods")
    await watch.next()
    with pytest.raises(WatchEnded) as first:
        await watch.next()
    assert first.value.reason is reason
    assert (first.value.error.status if first.value.error else None) == status
    assert "watch pods" in str(first.value)
    assert stream.closed == 1
    with pytest.raises(WatchEnded) as again:
        await watch.next()
    assert again.value is first.value


async def test_errors_of_an_end_keep_their_type_and_wait() -> None:
    expired = Watch(FakeStream([event("ERROR", status_body(410, "Expired", "too old"))]), "w")
    with pytest.raises(WatchEnded, match="too old") as ended:
        await expired.next()
    assert isinstance(ended.value.error, GoneError)
    late = Watch(FakeStream([event("ERROR", status_body(504, "Timeout", retryAfterSeconds=1))]), "w")
    with pytest.raises(WatchEnded) as ended:
        await late.next()
    assert isinstance(ended.value.error, ServerTimeoutError)
    assert ended.value.error.retry_after == 1.0


async def test_an_object_that_only_speaks_of_a_status_is_no_error() -> None:
    body = {"kind": "Note", "metadata": {"name": "Status"}, "text": "Status"}
    watch = Watch(FakeStream([event("ADDED", body)]), "w")
    assert json.loads(bytes((await watch.next()).object)) == body


async def test_a_loop_over_a_watch_ends_with_its_reason() -> None:
    watch = Watch(FakeStream([event("ADDED", POD)]), "w")
    seen: list[str] = []

    async def read() -> None:
        async for item in watch:
            seen.append(item.type)  # noqa: PERF401 - the loop form is what is tested

    with pytest.raises(WatchEnded) as ended:
        await read()
    assert (seen, ended.value.reason) == (["ADDED"], WatchEnd.CLEAN)


async def test_leaving_the_block_lets_go_of_the_connection() -> None:
    stream = FakeStream([event("ADDED", POD)])
    async with Watch(stream, "w") as watch:
        pass
    assert stream.closed >= 1
    with pytest.raises(WatchEnded):
        await watch.next()
