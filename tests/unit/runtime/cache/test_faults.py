"""Informers against servers that fail in the ways that the field has met, under virtual time."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
import structlog

from fivespot.runtime.cache import Informer, InformerStatus, ReflectorSettings
from fivespot.runtime.client import Request, Response
from fivespot.runtime.errors import BrokenStreamError, ConnectError, TransportError
from fivespot.runtime.objects import FULL, METADATA, Key, Resource, merge_patch

from .fakes import (
    PAGED,
    TEXT_404,
    WIDGETS,
    Recorder,
    Server,
    encode,
    failing,
    make_cache,
    make_client,
    settle,
    status,
)

pytestmark = pytest.mark.looptime

A = Key("ns", "a")
STREAMING = ReflectorSettings()


@pytest.fixture
def server() -> Server:
    server = Server()
    server.put(WIDGETS, "a")
    return server


async def watching(informer: Informer) -> None:
    await informer.wait_synced()
    await settle()


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_half_open_connection_is_noticed_within_the_idle_limit(server: Server) -> None:
    """nolar/kopf#585, kubernetes-client/python#2462: TCP dead, no error, operators deaf for days."""
    async with make_cache(make_client(server, idle=90)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        server.lose()
        server.put(WIDGETS, "b")
        await asyncio.sleep(60)
        assert seen.lines == ["ADDED a"]
        activity = informer.status.last_activity
        assert activity is not None
        assert activity < now() - 50, "how long it has been silent shows meanwhile"
        await asyncio.sleep(31)
        assert seen.lines == ["ADDED a", "ADDED b"]
        assert server.sorts() == ["list", "watch", "watch"], "resumed where it was, without a list"


@pytest.mark.parametrize("shape", ["event", "http", "body"])
async def test_an_expired_version_leads_to_one_list_whatever_the_shape(server: Server, shape: str) -> None:
    """kube-rs#1615, python-base#231: 410 as event, as HTTP status, as a lone Status in a 200."""
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        await asyncio.sleep(40)
        server.lagging = True
        server.delete(WIDGETS, "a")
        server.put(WIDGETS, "b")
        if shape == "event":
            server.compact()
        elif shape == "http":
            server.next_fault("watch", failing(410, "Expired"))
        else:
            server.next_fault("watch", encode(status(410, "Expired")))
        server.lagging = False
        server.cut()
        await asyncio.sleep(2)
        assert seen.lines == ["ADDED a", "DELETED a unknown", "ADDED b"]
        assert server.sorts() == ["list", "watch", "watch", "list", "watch"]
        assert informer.status.relists == 2
        assert informer.status.error_since is None


async def test_a_clean_end_resumes_at_the_version_reached(server: Server) -> None:
    async with make_cache(make_client(server), STREAMING) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        await asyncio.sleep(30)
        server.put(WIDGETS, "b")
        await settle()
        server.cut()
        await settle()
        request = server.last("watch")
        assert request.query["resourceVersion"] == str(server.revision)
        assert "sendInitialEvents" not in request.query
        assert 300 <= int(request.query["timeoutSeconds"]) <= 600


async def test_bookmarks_move_the_version_on(server: Server) -> None:
    for projection in (FULL, METADATA):
        async with make_cache(make_client(server)) as cache:
            informer = cache.informer(WIDGETS, projection=projection)
            await watching(informer)
            server.revision += 500
            server.bookmark()
            await settle()
            assert informer.status.version == server.revision
            server.compact()
            server.cut(BrokenStreamError("reset"))
            await asyncio.sleep(1)
            assert informer.status.relists == 1, "nothing had to be listed again"


async def test_lists_come_in_pages_and_restart_when_a_token_expires(server: Server) -> None:
    """kube-rs#1524, #1525."""
    for number in range(6):
        server.put(WIDGETS, f"w{number}")
    server.next_fault("continue", failing(410, "Expired"))
    async with make_cache(make_client(server), replace(PAGED, page_size=2)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        assert server.sorts()[:6] == ["list", "continue", "list", "continue", "continue", "continue"]
        assert len(informer) == 7
        assert len(seen.told) == 7


async def test_an_empty_page_in_the_middle_is_not_the_end(server: Server) -> None:
    server.next_fault("list", encode({"metadata": {"resourceVersion": "11", "continue": "11-0"}, "items": []}))
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        assert informer.get(A)


async def test_a_token_that_comes_twice_does_not_loop(server: Server) -> None:
    page = encode({"metadata": {"resourceVersion": "11", "continue": "same"}, "items": []})
    server.fault_while(lambda request: "limit" in request.query and now() < 5, page)
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await asyncio.sleep(4)
        assert "same continue token" in str(informer.status.last_error)
        assert len(server.log) < 30
        await watching(informer)


@pytest.mark.parametrize("version", ["", "012", "x7", "-3"])
async def test_a_list_without_a_usable_version_is_refused(server: Server, version: str) -> None:
    server.next_fault("list", encode({"metadata": {"resourceVersion": version}, "items": []}))
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await settle()
        assert not informer.status.synced
        assert "decimal number" in str(informer.status.last_error)
        await watching(informer)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"DELETED","object":null}',
        {"type": "DELETED", "object": {"metadata": {"name": "a"}}},
        {"type": "DELETED", "object": {"metadata": {"name": "a", "uid": "u", "resourceVersion": "007"}}},
        {"type": "MODIFIED", "object": status(500, "InternalError")},
        {"type": "BOOKMARK", "object": {"metadata": {}}},
        b'{"type":"ADDED","object":{"meta',
    ],
)
async def test_what_cannot_be_read_leads_to_a_list_and_never_into_the_store(server: Server, line: object) -> None:
    """kubernetes#76624, kr8s#476: a skipped DELETED would leave its object for ever."""
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        server.lagging = True
        server.delete(WIDGETS, "a")
        server.tell(line)
        await asyncio.sleep(1)
        if isinstance(line, dict) and line["object"].get("kind") == "Status":
            server.lagging = False
            server.catch_up()
            await settle()
        assert [entry.split()[:2] for entry in seen.lines] == [["ADDED", "a"], ["DELETED", "a"]]
        assert all(obj.head.name != "" for obj in informer.list())


async def test_a_connection_cut_in_the_middle_of_a_line_loses_nothing(server: Server) -> None:
    """kubernetes-client/python#972."""
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        server.cut(BrokenStreamError("in the middle of a line"))
        server.put(WIDGETS, "b")
        await asyncio.sleep(1)
        assert seen.lines == ["ADDED a", "ADDED b"]
        assert server.sorts() == ["list", "watch", "watch"]


async def test_a_throttled_watch_waits_as_long_as_asked(server: Server) -> None:
    """kube-rs#717: Retry-After 7 means no request earlier, for 60 informers not all at one time."""
    server.fault_while(lambda request: "watch" in request.query and now() < 6, failing(429, **{"retry-after": "7"}))
    client = make_client(server)
    async with make_cache(client) as cache:
        for number in range(60):
            cache.informer(WIDGETS, namespace=f"ns{number}")
        await asyncio.sleep(30)
    first, second = server.times("watch")[:60], server.times("watch")[60:]
    assert max(first) < 1
    assert len(second) >= 60
    assert min(second) >= 7
    assert max(second[:60]) - min(second[:60]) > 2


async def test_a_failing_list_backs_off_and_says_so(server: Server) -> None:
    server.fault_while(lambda request: now() < 100, failing(403, "Forbidden"))
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        statuses: list[InformerStatus] = []
        informer.on_status(statuses.append)
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(99)
        assert informer.status.state == "backing off"
        assert "403" in str(informer.status.last_error)
        assert len(server.log) < 20
        assert len(logs) == 1, "one line, not one an attempt"
        await watching(informer)
        assert informer.status.error_since is None
        assert [(one.synced, one.error_since is not None) for one in statuses] == [
            (False, True), (False, False), (True, False),
        ]  # fmt: skip


async def test_a_synced_informer_that_loses_its_server_stays_synced_and_tells(server: Server) -> None:
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        fault = server.fault_while(lambda request: True, ConnectError("refused"))
        server.cut(BrokenStreamError("gone"))
        await asyncio.sleep(600)
        assert informer.synced
        assert informer.get(A)
        since = informer.status.error_since
        assert since is not None
        assert now() - since > 590
        server.faults.remove(fault)
        server.put(WIDGETS, "b")
        await asyncio.sleep(3.1)
        assert informer.status.error_since is None
        assert "refused" in str(informer.status.last_error)
        assert seen.lines == ["ADDED a", "ADDED b"]


async def test_sixty_informers_are_current_seconds_after_the_last_of_many_restarts_and_do_not_come_back_together(
    server: Server,
) -> None:
    """A server that is away refuses connections, and when it is back it says for a moment that it is not ready."""
    away = starting = False
    server.faults.append(lambda _: ConnectError("refused") if away else failing(503) if starting else None)
    async with make_cache(make_client(server)) as cache:
        informers = [cache.informer(WIDGETS, namespace=f"ns{number}") for number in range(60)]
        await asyncio.gather(*(informer.wait_synced() for informer in informers))
        for number in range(12):
            away = True
            server.cut(BrokenStreamError("reset"))
            await asyncio.sleep(20 if number == 11 else 3)
            away, starting = False, True
            await asyncio.sleep(0.5)
            starting = False
            server.put(WIDGETS, f"w{number}", "ns0")
            back = now()
            await asyncio.sleep(4)
            assert all(informer.status.state == "watching" for informer in informers)
            assert informers[0].get(Key("ns0", f"w{number}"))
    came = sorted(at for at in server.times("watch") if at > back - 0.5)
    assert max(came) <= back + 3.5
    assert max(came) - min(came) > 1
    assert max(sum(1 for other in came if at <= other < at + 0.1) for at in came) < 30


async def test_a_cache_told_to_reconnect_resumes_every_watch_where_it_was(server: Server) -> None:
    """A leader that lost contact does so: dead connections are not waited for until the idle limit."""
    server.put(WIDGETS, "z", "other")
    async with make_cache(make_client(server, idle=90)) as cache:
        cache.reconnect()
        informers = [cache.informer(WIDGETS), cache.informer(WIDGETS, namespace="other")]
        cache.reconnect()
        for informer in informers:
            await watching(informer)
        server.lose()
        server.put(WIDGETS, "b")
        server.put(WIDGETS, "y", "other")
        await asyncio.sleep(5)
        assert informers[0].get(Key("ns", "b")) is None
        cache.reconnect()
        cache.reconnect()
        await asyncio.sleep(0.3)
        assert informers[0].get(Key("ns", "b"))
        assert informers[1].get(Key("other", "y"))
        assert sorted(server.sorts()) == ["list"] * 2 + ["watch"] * 4, "resumed, each once, without a list"
        assert all(informer.status.error_since is None for informer in informers)
    cache.reconnect()


async def test_a_resource_that_is_not_served_is_awaited_quietly_and_tried_when_its_definition_changes(
    server: Server,
) -> None:
    """kubernetes#79610: absent, present, absent, present."""
    stored = server.objects.pop(WIDGETS.collection_path())
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(290)
        assert informer.status.state == "not served"
        assert not informer.status.synced
        assert len(server.log) < 30
        assert [line["log_level"] for line in logs] == ["info"]
        server.objects[WIDGETS.collection_path()] = stored
        cache.kind_changed("widgets.example.com")
        await settle()
        assert informer.synced, "at once, not at the end of the wait"
        server.delete(WIDGETS, "a")
        await settle()
        del server.objects[WIDGETS.collection_path()]
        server.cut()
        await asyncio.sleep(5)
        assert informer.status.state == "not served"
        server.put(WIDGETS, "a")
        cache.kind_changed("widgets.example.com")
        await settle()
        assert seen.lines == ["ADDED a", "DELETED a", "ADDED a"]


@pytest.mark.parametrize("how", ["refused", "no bookmark", "no annotation"])
async def test_without_streaming_lists_pages_are_used_and_the_resource_is_remembered(server: Server, how: str) -> None:
    """kubernetes#129408: a server or proxy that never ends the initial events."""
    if how == "refused":
        server.streaming = False
    else:
        lines = [{"type": "ADDED", "object": server.objects[WIDGETS.collection_path()][A]}]
        if how == "no annotation":
            lines.append({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}})
        old = server.stream

        async def stream(request: Request) -> object:
            if "sendInitialEvents" not in request.query:
                return await old(request)
            bare = replace(request, query={**request.query, "resourceVersion": str(server.revision)})
            bare.query.pop("sendInitialEvents")  # type: ignore[attr-defined]
            opened = await old(bare)
            server.log[-1] = ("stream", now(), request)
            for line in lines:
                opened.send(encode(line))
            return opened

        server.stream = stream  # type: ignore[method-assign, assignment]
    async with make_cache(make_client(server), STREAMING) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        assert now() <= 11
        assert server.sorts() == ["stream", "list", "watch"]
        assert len(informer) == 1
        await cache.informer(WIDGETS, namespace="ns").wait_synced()
        assert server.sorts() == ["stream", "list", "watch", "list", "watch"]


async def test_a_streaming_list_that_trickles_for_ever_is_bounded(server: Server) -> None:
    """A server that ignores sendInitialEvents on a busy resource sends events without end."""
    server.streaming = True
    old = server.stream

    async def stream(request: Request) -> object:
        if "sendInitialEvents" not in request.query:
            return await old(request)
        bare = replace(request, query={"watch": "1", "resourceVersion": "0"})
        opened = await old(bare)
        server.log[-1] = ("stream", now(), request)
        return opened

    server.stream = stream  # type: ignore[method-assign, assignment]
    async with make_cache(make_client(server), STREAMING) as cache:
        informer = cache.informer(WIDGETS)
        for _ in range(130):
            await asyncio.sleep(1)
            server.put(WIDGETS, "a")
        assert informer.synced
        assert 100 < server.times("list")[0] < 125


async def test_a_watch_outlives_a_day_of_hourly_events(server: Server) -> None:
    """tomplus/kubernetes_asyncio#325: no total limit on a stream."""
    async with make_cache(make_client(server, idle=4000)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await watching(informer)
        for _ in range(24):
            await asyncio.sleep(3600)
            server.put(WIDGETS, "a")
        await settle()
        assert len(seen.told) == 25
        assert server.sorts() == ["list", "watch"]


OTHERS = Resource("example.com", "v1", "others", "Other")


def restore(server: Server, *, revision: int, **sizes: int) -> None:
    """Put an earlier state in place, as a restore of etcd from a backup does: watches stay open and are silent."""
    server.history.clear()
    for stored in server.objects.values():
        stored.clear()
    server.revision = revision
    for name, size in sizes.items():
        server.put(WIDGETS, name, spec={"size": size})
    server.put(OTHERS, "other")
    server.lose()


@pytest.mark.parametrize("revision", [2, 900])
@pytest.mark.parametrize("write", ["create", "patch"])
async def test_an_own_write_with_an_older_version_reveals_a_restore_at_once(
    server: Server, write: str, revision: int
) -> None:
    server.revision = 1000
    server.put(WIDGETS, "a", spec={"size": 5})
    server.put(WIDGETS, "later")
    server.put(OTHERS, "lost")
    client = make_client(server)
    async with make_cache(client) as cache:
        informer, others = cache.informer(WIDGETS), cache.informer(OTHERS)
        await watching(informer)
        await watching(others)
        restore(server, revision=revision, a=1)
        if write == "create":
            await client.create(WIDGETS, {"kind": "Widget", "metadata": {"name": "new", "namespace": "ns"}})
        else:
            await client.patch(WIDGETS, Key("ns", "a"), merge_patch({"status": {}}))
        await asyncio.sleep(0.1)
        expected = {"a", "new"} if write == "create" else {"a"}
        assert {obj.key.name for obj in informer.list()} == expected
        found = informer.get(Key("ns", "a"))
        assert found is not None
        assert found.decode()["spec"] == {"size": 1}
        assert [obj.key.name for obj in others.list()] == ["other"], "every informer of the server is concerned"
        assert (informer.status.relists, others.status.relists) == (2, 2)
        assert informer.status.version == server.revision
        # It follows the new history, and no later write is taken for another restore.
        await client.patch(WIDGETS, Key("ns", "a"), merge_patch({"status": {"x": 1}}))
        server.put(WIDGETS, "a", spec={"size": 7})
        await settle()
        assert informer.status.relists == 2
        found = informer.get(Key("ns", "a"))
        assert found is not None
        assert found.decode()["spec"] == {"size": 7}


async def test_a_list_after_a_restore_keeps_nothing_of_the_lost_history(server: Server) -> None:
    """The server has passed the version known here by the time it is listed, so versions alone show nothing."""
    server.revision = 1000
    server.put(WIDGETS, "a", spec={"size": 5})
    client = make_client(server)
    async with make_cache(client) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        restore(server, revision=2, a=1)
        await client.patch(WIDGETS, Key("ns", "a"), merge_patch({"status": {}}))
        server.revision = 2000
        await asyncio.sleep(0.1)
        found = informer.get(Key("ns", "a"))
        assert found is not None
        assert found.decode()["spec"] == {"size": 1}


async def test_an_answer_that_comes_late_is_no_restore(server: Server) -> None:
    client = make_client(server)
    async with make_cache(client) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)

        def overtaken(request: Request) -> Response | None:
            if request.method != "PATCH":
                return None
            body = server.put(WIDGETS, "a", spec={"size": 2})
            server.put(WIDGETS, "a", spec={"size": 3})
            return Response(200, {}, encode(body))

        server.faults.append(overtaken)
        await client.patch(WIDGETS, Key("ns", "a"), merge_patch({"spec": {"size": 2}}))
        await asyncio.sleep(1)
        assert informer.status.relists == 1


async def test_a_silent_restored_server_is_listed_after_a_few_silent_watches(server: Server) -> None:
    async with make_cache(make_client(server, idle=90)) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        server.history.clear()
        server.objects[WIDGETS.collection_path()].clear()
        server.revision = 3
        server.put(WIDGETS, "restored")
        server.lose()
        await asyncio.sleep(300)
        assert [obj.key.name for obj in informer.list()] == ["restored"]
        assert informer.status.version == server.revision


async def test_a_long_burst_does_not_starve_other_tasks(server: Server) -> None:
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await watching(informer)
        for _ in range(1000):
            server.put(WIDGETS, "a")
        turns = 0
        while informer.status.version < server.revision:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 4


@pytest.mark.parametrize("seed", range(12))
async def test_after_any_run_of_faults_the_store_is_what_the_server_is(seed: int) -> None:
    rng = random.Random(seed)
    server = Server(streaming=rng.random() < 0.7)
    faulty: list[Response | TransportError | bytes] = [
        failing(500), failing(429, **{"retry-after": "3"}), failing(410, "Expired"), failing(403), TEXT_404,
        ConnectError("refused"), b"", b"{", encode(status(410, "Expired")), b'{"type":"ADDED","object":{}}',
    ]  # fmt: skip
    settings = replace(STREAMING if rng.random() < 0.5 else PAGED, page_size=2, burst_events=3)
    client = make_client(server)
    server.put(WIDGETS, "n0")
    async with make_cache(client, settings, seed=seed) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        for _ in range(150):
            name = f"n{rng.randrange(6)}"
            stored = server.objects[WIDGETS.collection_path()]
            match rng.randrange(9):
                case 0 | 1 | 2:
                    server.put(WIDGETS, name)
                case 3:
                    if Key("ns", name) in stored:
                        server.delete(WIDGETS, name)
                case 4:
                    held = informer.get(Key("ns", name))
                    if held is not None and not server.faults:
                        # A conflict cannot happen here: the fake deletes by name, so only what it has.
                        present = stored.get(Key("ns", name))
                        if present and present["metadata"]["uid"] == held.head.uid:
                            await client.delete(WIDGETS, held.key, uid=held.head.uid)
                            assert informer.get(held.key) is None
                case 5:
                    server.cut(rng.choice([None, BrokenStreamError("cut")]))
                case 6:
                    server.lagging = not server.lagging
                    server.catch_up()
                case 7:
                    answer = rng.choice(faulty)
                    server.fault_while(lambda request: request.method == "GET", answer, times=rng.randrange(1, 4))
                case 8:
                    server.compact()
            await asyncio.sleep(rng.choice([0, 0, 0.1, 1.0, 5.0]))
        server.faults.clear()
        server.lagging = False
        server.catch_up()
        await asyncio.sleep(120)
        expected = {key: body["metadata"]["resourceVersion"] for key, body in stored.items()}
        assert {obj.key: str(obj.head.version) for obj in informer.list()} == expected
        assert seen.mirror == {obj.key: obj for obj in informer.list()}
        assert informer.status.state == "watching"
        assert informer.status.error_since is None
        store = informer._parts[0].store
        server.bookmark()
        await settle()
        assert not store._own
        assert not store._hidden
