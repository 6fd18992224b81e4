"""An object that cannot be decoded affects no other object, and is counted, logged and shown by name."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from fivespot.runtime.cache import Informer
from fivespot.runtime.clock import SystemClock
from fivespot.runtime.errors import ForbiddenError, ProtocolError
from fivespot.runtime.manager.debug import informers
from fivespot.runtime.objects import METADATA, Change, Key, Projection, merge_patch
from fivespot.runtime.telemetry import Metrics

from .fakes import PAGED, WIDGETS, Recorder, Server, failing, make_cache, make_client, settle, status

pytestmark = pytest.mark.looptime

DEEP = msgspec.Raw(b'{"x":%b%b}' % (b"[" * 20_000, b"]" * 20_000))
LONG_INTEGER = msgspec.Raw(b'{"x":%b}' % (b"1" * 5_000))
NO_JSON = msgspec.Raw(b'{"x":nul}')
BAD = [DEEP, LONG_INTEGER, NO_JSON]


@pytest.fixture
def server() -> Server:
    made = Server()
    for name in ("a", "bad", "c"):
        made.put(WIDGETS, name, spec={"size": 1})
    return made


def names(informer: Informer) -> list[str]:
    return sorted(obj.key.name for obj in informer.list())


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("streaming", [False, True])
async def test_one_bad_object_of_a_list_hides_no_other(server: Server, bad: msgspec.Raw, streaming: bool) -> None:
    server.put(WIDGETS, "bad", spec=bad)
    settings = PAGED if not streaming else type(PAGED)()
    async with make_cache(make_client(server), settings) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await informer.wait_synced()
        assert names(informer) == ["a", "bad", "c"]
        assert informer.status.undecodable <= 1
        obj = informer.get(Key("ns", "bad"))
        assert obj is not None
        assert obj.head.uid
        with pytest.raises(ProtocolError, match="ns/bad"):
            obj.decode()
        assert len(seen.told) == 3


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_object_in_a_watch_hides_no_other_and_costs_no_list(server: Server, bad: msgspec.Raw) -> None:
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await informer.wait_synced()
        server.put(WIDGETS, "bad", spec=bad)
        server.put(WIDGETS, "new", spec=bad)
        server.put(WIDGETS, "c", spec={"size": 2})
        await settle()
        assert seen.lines[3:] == ["MODIFIED bad", "ADDED new", "MODIFIED c"]
        server.delete(WIDGETS, "bad")
        server.delete(WIDGETS, "new")
        await settle()
        assert names(informer) == ["a", "c"]
        assert informer.status.undecodable == 0
        assert informer.status.relists == 1


async def test_a_bad_object_is_counted_logged_and_shown_until_it_is_corrected(server: Server) -> None:
    server.put(WIDGETS, "bad", spec=DEEP)
    metrics = Metrics(process=False)
    with capture_logs() as logs:
        async with make_cache(make_client(server)) as cache:
            metrics.informers(cache.informers)
            informer = cache.informer(WIDGETS)
            await informer.wait_synced()
            for _ in range(3):
                server.put(WIDGETS, "bad", spec=DEEP)
            await settle()
            line = b'fivespot_informer_undecodable_objects{resource="widgets.example.com"} '
            assert line + b"1.0" in metrics.render()
            assert list(informer.status.undecodable_objects) == [(Key("ns", "bad"), "nested too deeply")]
            shown = informers(cache, SystemClock())[0]
            assert (shown["undecodable"], shown["undecodable_objects"]) == (1, {"ns/bad": "nested too deeply"})
            server.put(WIDGETS, "bad", spec={"size": 1})
            await settle()
            assert line + b"0.0" in metrics.render()
            assert not informer.status.undecodable_objects
    told = [entry for entry in logs if entry["event"] == "cannot decode an object"]
    assert [(entry["object"], entry["error"]) for entry in told] == [("ns/bad", "nested too deeply")]


async def test_an_object_whose_metadata_turns_bad_keeps_its_last_readable_state(server: Server) -> None:
    async with make_cache(make_client(server)) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.add_index("size", lambda change: [str(change.body["spec"]["size"])])
        informer.subscribe(seen)
        await informer.wait_synced()
        await settle()
        body = server.objects[WIDGETS.collection_path()][Key("ns", "bad")]
        body["metadata"] = {**body["metadata"], "labels": ["no", "map"]}
        server.tell({"type": "MODIFIED", "object": body})
        server.put(WIDGETS, "c", spec={"size": 2})
        await settle()
        assert seen.lines[3:] == ["MODIFIED c"]
        assert [key for key, _ in informer.status.undecodable_objects] == [Key("ns", "bad")]
        # A list that shows it does not make it look deleted either.
        server.tell({"type": "ERROR", "object": status(410, "Expired")})
        await asyncio.sleep(60)
        assert informer.status.relists > 1
        assert [key for key, _ in informer.status.undecodable_objects] == [Key("ns", "bad")]
        assert names(informer) == ["a", "bad", "c"]
        assert [key.name for key in informer.keys_by_index("size", "1")] == ["a", "bad"]
        assert seen.lines[4:] == []
        # Gone from the list, it is gone.
        del server.objects[WIDGETS.collection_path()][Key("ns", "bad")]
        server.tell({"type": "ERROR", "object": status(410, "Expired")})
        await asyncio.sleep(60)
        assert seen.lines[4:] == ["DELETED bad unknown"]
        assert informer.status.undecodable == 0


async def test_nobody_needs_the_name_of_what_cannot_be_read(server: Server) -> None:
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await informer.wait_synced()
        await settle()
        server.tell({"type": "MODIFIED", "object": {"metadata": {"name": ["x"]}}})
        server.tell(b'{"type":"ADDED","object":{"metadata":%b}}' % (b"[" * 20_000 + b"]" * 20_000))
        server.put(WIDGETS, "new")
        await settle()
        assert names(informer) == ["a", "bad", "c", "new"]
        assert informer.status.relists == 1
        assert informer.status.undecodable == 1


async def test_a_fields_projection_and_metadata_read_a_deep_object_as_any_other(server: Server) -> None:
    class Shape(msgspec.Struct):
        status: dict[str, int] = {}

    server.put(WIDGETS, "bad", spec=DEEP, status={"a": 1})
    async with make_cache(make_client(server)) as cache:
        slim = cache.informer(WIDGETS, projection=Projection.fields("slim", Shape))
        heads = cache.informer(WIDGETS, projection=METADATA)
        await slim.wait_synced()
        await heads.wait_synced()
        found = slim.get(Key("ns", "bad"))
        assert found is not None
        assert found.raw == b'{"status":{"a":1}}'
        assert (heads.status.undecodable, names(heads)) == (0, ["a", "bad", "c"])


async def test_what_a_projection_of_a_user_raises_reaches_nobody_else(server: Server) -> None:
    def keep(raw: bytes | msgspec.Raw) -> bytes:
        if b'"bad"' in bytes(raw):
            raise KeyError("no such field")
        return bytes(raw)

    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS, projection=Projection("mine", keep))
        await informer.wait_synced()
        assert names(informer) == ["a", "bad", "c"]
        assert (informer.status.faults, informer.status.undecodable) == (1, 1)


@pytest.mark.parametrize("bad", BAD)
async def test_an_own_write_may_be_answered_with_a_bad_object(server: Server, bad: msgspec.Raw) -> None:
    client = make_client(server)
    async with make_cache(client) as cache:
        informer, seen = cache.informer(WIDGETS), Recorder()
        informer.subscribe(seen)
        await informer.wait_synced()
        server.lagging = True
        server.put(WIDGETS, "bad", spec=bad)
        answer = await client.patch(WIDGETS, Key("ns", "bad"), merge_patch({"status": {"ready": True}}))
        found = informer.get(Key("ns", "bad"))
        assert found is not None
        assert found.head.version == answer.head.version
        assert seen.lines[3:] == ["MODIFIED bad own"]


async def test_many_bad_objects_are_counted_and_some_are_named(server: Server) -> None:
    for number in range(300):
        server.put(WIDGETS, f"bad-{number}", spec=NO_JSON)
    with capture_logs() as logs:
        async with make_cache(make_client(server)) as cache:
            informer = cache.informer(WIDGETS)
            await informer.wait_synced()
            assert informer.status.undecodable == 300
            assert len(informer.status.undecodable_objects) == 20
    assert 20 <= len([entry for entry in logs if entry["event"] == "cannot decode an object"]) <= 30


async def test_the_status_carries_the_error_itself_and_none_of_its_frames(server: Server) -> None:
    server.fault_while(lambda request: request.method == "GET", failing(403, "Forbidden"))
    async with make_cache(make_client(server)) as cache:
        informer = cache.informer(WIDGETS)
        await asyncio.sleep(1)
        error = informer.status.last_error
        assert isinstance(error, ForbiddenError)
        assert error.__traceback__ is None
        assert informers(cache, SystemClock())[0]["last_error"] == str(error)
        server.faults.clear()
        await asyncio.sleep(60)
        assert (informer.status.error_since, informer.status.last_error) == (None, error)


async def test_changes_of_the_initial_state_say_so(server: Server) -> None:
    client = make_client(server)
    async with make_cache(client) as cache:
        informer = cache.informer(WIDGETS)
        told: list[Change] = []
        informer.subscribe(told.append)
        await informer.wait_synced()
        server.put(WIDGETS, "new")
        server.put(WIDGETS, "a", spec={"size": 3})
        await settle()
        assert [(change.key.name, change.initial) for change in told] == [
            ("a", True),
            ("bad", True),
            ("c", True),
            ("new", False),
            ("a", False),
        ]
        # Also for whoever comes later, and not for what a later list finds.
        late: list[Change] = []
        informer.subscribe(late.append)
        assert [change.initial for change in late] == [True] * 4
        server.lose()
        server.put(WIDGETS, "missed")
        server.compact()
        server.cut()
        await asyncio.sleep(600)
        assert [(change.key.name, change.initial) for change in late[4:]] == [("missed", False)]
