"""The verbs: what goes out, what comes back, who is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from fivespot.runtime import errors
from fivespot.runtime.client import Client, Propagation, Repeat, RetryPolicy, WatchEnd, WatchEnded, WriteResult
from fivespot.runtime.objects import (
    Key,
    Object,
    Patch,
    Resource,
    Selector,
    Write,
    current_writer,
    finalizer_patch,
    json_patch,
    merge_patch,
)
from support.faulty_servers import FakeStream, FakeTransport, FixedRandom, ManualClock, Step, answer, status_body

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
WEB = Key("prod", "web")


def machine(version: int = 7, **metadata: Any) -> dict[str, Any]:
    base = {"name": "web", "namespace": "prod", "uid": "u1", "resourceVersion": str(version)}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {**base, **metadata}}


class Recorder:
    """A write observer that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.writes: list[Write] = []
        self.known = 0

    def known_version(self, resource: Resource, key: Key | None) -> int:
        return self.known

    def rewound(self, version: int) -> None:
        self.told.append(("rewound", version))

    def wrote(self, resource: Resource, obj: Object, write: Write) -> None:
        self.writes.append(write)
        self.told.append(("wrote", resource.kind, obj.key, obj.head.version))

    def removed(self, resource: Resource, key: Key, uid: str, write: Write) -> None:
        self.writes.append(write)
        self.told.append(("removed", resource.kind, key, uid))


class Setup:
    """A client on a script, with an observer and a count of requests."""

    def __init__(self, *steps: Step, retry: RetryPolicy | None = None) -> None:
        self.transport = FakeTransport(*steps)
        self.observed: list[tuple[str, int]] = []
        self.client = Client(
            self.transport,
            field_manager="tests",
            clock=ManualClock(),
            rng=FixedRandom(),
            retry=retry or RetryPolicy(),
            observe_request=lambda method, status: self.observed.append((method, status)),
        )
        self.writes = Recorder()
        self.client.add_observer(self.writes)

    @property
    def sent(self) -> tuple[str, str, dict[str, str], Any]:
        """Method, path, query and body of the last request."""
        request = self.transport.requests[-1]
        return request.method, request.path, dict(request.query), json.loads(request.body) if request.body else None


# -- reading ---------------------------------------------------------------------------------------------------------


async def test_get_asks_for_one_object() -> None:
    setup = Setup(answer(machine()))
    obj = await setup.client.get(MACHINES, WEB)
    assert (obj.key, obj.head.version) == (WEB, 7)
    assert setup.sent == ("GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines/web", {}, None)
    assert setup.transport.requests[0].headers["Accept"] == "application/json"
    assert setup.observed == [("GET", 200)]
    assert setup.writes.told == []


async def test_metadata_alone_can_be_asked_for() -> None:
    setup = Setup(answer(machine()), answer({"metadata": {}, "items": []}), FakeStream())
    await setup.client.get(MACHINES, WEB, metadata_only=True)
    await setup.client.list(MACHINES, metadata_only=True)
    await setup.client.watch(MACHINES, version="1", server_timeout=60, metadata_only=True)
    accepted = [request.headers["Accept"].split(",")[0] for request in setup.transport.requests]
    assert accepted == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ]


@pytest.mark.parametrize("body", ["<html>", {"kind": "List"}, {"metadata": {"name": "web"}}])
async def test_an_answer_that_is_no_object_is_a_protocol_error(body: Any) -> None:
    with pytest.raises(errors.ProtocolError, match=r"get machines\.cluster\.x-k8s\.io prod/web"):
        await Setup(answer(body)).client.get(MACHINES, WEB)


def page(*names: str, token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "9", "continue": token}, "items": [machine(name=name) for name in names]}


async def test_a_list_reads_all_pages_even_past_an_empty_one() -> None:
    """kube-rs#1524: only the first page was read."""
    setup = Setup(answer(page("a", "b", token="t1")), answer(page(token="t2")), answer(page("c")))
    objects = await setup.client.list(MACHINES, "prod", selector=Selector.labels({"a": "b"}), limit=2)
    assert [obj.key.name for obj in objects] == ["a", "b", "c"]
    assert [dict(request.query) for request in setup.transport.requests] == [
        {"labelSelector": "a=b", "limit": "2"},
        {"labelSelector": "a=b", "limit": "2", "continue": "t1"},
        {"labelSelector": "a=b", "limit": "2", "continue": "t2"},
    ]


async def test_an_expired_continue_token_starts_the_whole_list_again() -> None:
    expired = answer(status_body(410, "Expired"), 410)
    setup = Setup(answer(page("a", token="t1")), expired, answer(page("b", token="t2")), answer(page("c")))
    assert [obj.key.name for obj in await setup.client.list(MACHINES)] == ["b", "c"]
    setup = Setup(expired, expired, expired)
    with pytest.raises(errors.GoneError):
        await setup.client.list(MACHINES)


async def test_a_list_that_never_moves_on_ends_in_an_error() -> None:
    setup = Setup(answer(page("a", token="t")), answer(page("a", token="t")))
    with pytest.raises(errors.ProtocolError, match="same continue token"):
        await setup.client.list(MACHINES)


async def test_a_page_is_asked_for_once_and_its_version_only_without_a_token() -> None:
    throttled = answer("slow down", 429, retry_after="1")
    setup = Setup(answer(page("a", token="t")), throttled)
    first = await setup.client.page(MACHINES, None, version="0", match="NotOlderThan", limit=5)
    assert (first.version, first.continue_token, len(first.items)) == ("9", "t", 1)
    assert setup.sent[2] == {"limit": "5", "resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"}
    with pytest.raises(errors.ThrottledError):
        await setup.client.page(MACHINES, None, version="0", match="NotOlderThan", limit=5, continue_token="t")
    assert setup.sent[2] == {"limit": "5", "continue": "t"}


# -- watching --------------------------------------------------------------------------------------------------------


async def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    setup = Setup(FakeStream(), FakeStream())
    await setup.client.watch(MACHINES, "prod", version="5", server_timeout=299.6)
    assert setup.sent[1:3] == (
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines",
        {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "300", "resourceVersion": "5"},
    )
    await setup.client.watch(MACHINES, version="", server_timeout=60, initial_events=True)
    assert setup.sent[2] == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "60",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    limits = setup.transport.requests[-1].limits
    assert limits.total is None
    assert limits.read > 0


@pytest.mark.parametrize(
    ("step", "reason", "status"),
    [
        (FakeStream(status=410, rest=json.dumps(status_body(410, "Expired")).encode()), WatchEnd.EXPIRED, 410),
        (FakeStream(status=404, rest=b"404 page not found"), WatchEnd.REFUSED, 404),
        (FakeStream(status=403, rest=b""), WatchEnd.REFUSED, 403),
        (FakeStream(status=422, rest=json.dumps(status_body(422, "Invalid")).encode()), WatchEnd.REFUSED, 422),
        (FakeStream(status=429, headers={"retry-after": "7"}, rest=b"wait"), WatchEnd.THROTTLED, 429),
        (FakeStream(status=503, rest=errors.BrokenStreamError("cut")), WatchEnd.REFUSED, 503),
        (errors.ConnectError("refused"), WatchEnd.BROKEN, None),
        (errors.DeadlineError("slow"), WatchEnd.IDLE, None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
async def test_a_watch_that_cannot_be_opened_has_a_typed_end(step: Step, reason: WatchEnd, status: int | None) -> None:
    setup = Setup(step)
    with pytest.raises(WatchEnded) as ended:
        await setup.client.watch(MACHINES, version="1", server_timeout=60)
    error = ended.value.error
    assert (ended.value.reason, error.status if error else None) == (reason, status)
    assert setup.observed == [("GET", status or 0)]
    if isinstance(step, FakeStream):
        assert step.closed == 1
    if status == 429:
        assert error is not None
        assert error.retry_after == 7.0


# -- writing ---------------------------------------------------------------------------------------------------------


async def test_create_posts_to_the_namespace_of_the_object() -> None:
    setup = Setup(answer(machine(), 201))
    obj = await setup.client.create(MACHINES, machine(), strict=True)
    assert obj.head.uid == "u1"
    method, path, query, body = setup.sent
    assert (method, path) == ("POST", "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines")
    assert query == {"fieldManager": "tests", "fieldValidation": "Strict"}
    assert body == machine()
    assert setup.writes.told == [("wrote", "Machine", WEB, 7)]


async def test_create_takes_bytes_and_cluster_scoped_objects() -> None:
    node = {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}}
    setup = Setup(answer(node, 201))
    await setup.client.create(NODES, b'{"metadata":{"name":"n1"}}', namespace="ignored")
    assert setup.sent[1] == "/api/v1/nodes"
    assert setup.writes.told == [("wrote", "Node", Key("", "n1"), 1)]


async def test_what_cannot_be_sent_is_refused_before_it_is() -> None:
    setup = Setup()
    with pytest.raises(ValueError, match="no namespace given"):
        await setup.client.create(MACHINES, {"metadata": {"name": "web"}})
    with pytest.raises(ValueError, match="needs metadata"):
        await setup.client.create(MACHINES, b"[]")
    with pytest.raises(ValueError, match="needs a full name"):
        await setup.client.replace(MACHINES, {"metadata": {"name": "web"}})
    with pytest.raises(ValueError, match="no uid given"):
        await setup.client.delete(MACHINES, WEB, uid="")
    assert setup.transport.requests == []


async def test_replace_puts_the_object_or_a_subresource() -> None:
    setup = Setup(answer(machine(8)))
    await setup.client.replace(MACHINES, machine(), subresource="status")
    assert setup.sent[:3] == (
        "PUT",
        "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines/web/status",
        {"fieldManager": "tests"},
    )
    assert setup.writes.told == [("wrote", "Machine", WEB, 8)]


async def test_patches_carry_their_content_type() -> None:
    setup = Setup(answer(machine(8)), answer(machine(9)), answer(machine(10)))
    await setup.client.patch(MACHINES, WEB, merge_patch({"spec": {"a": 1}}))
    await setup.client.patch(MACHINES, WEB, json_patch([{"op": "remove", "path": "/spec"}]), subresource="status")
    await setup.client.apply(MACHINES, WEB, machine(), force=True)
    sent = [(r.method, r.headers["Content-Type"], dict(r.query)) for r in setup.transport.requests]
    assert sent == [
        ("PATCH", "application/merge-patch+json", {"fieldManager": "tests"}),
        ("PATCH", "application/json-patch+json", {"fieldManager": "tests"}),
        ("PATCH", "application/apply-patch+yaml", {"fieldManager": "tests", "force": "true"}),
    ]
    assert [told[3] for told in setup.writes.told] == [8, 9, 10]


@pytest.mark.parametrize(
    ("metadata", "gone"),
    [
        ({}, False),
        ({"deletionTimestamp": "2026-01-05T12:00:00Z", "finalizers": ["a/b"]}, False),
        ({"deletionTimestamp": "2026-01-05T12:00:00Z", "deletionGracePeriodSeconds": 30}, False),
        ({"deletionTimestamp": "2026-01-05T12:00:00Z", "deletionGracePeriodSeconds": 0}, True),
        ({"deletionTimestamp": "2026-01-05T12:00:00Z"}, True),
    ],
)
async def test_an_update_that_takes_the_last_finalizer_removes_the_object(metadata: dict[str, Any], gone: bool) -> None:
    """The answer carries the version before, as if nothing had happened."""
    setup = Setup(answer(machine(7, **metadata)), answer(machine(7, **metadata)))
    await setup.client.patch(MACHINES, WEB, merge_patch({}))
    await setup.client.replace(MACHINES, machine())
    told = ("removed", "Machine", WEB, "u1") if gone else ("wrote", "Machine", WEB, 7)
    assert setup.writes.told == [told, told]


async def test_a_subresource_of_another_kind_does_not_pass_for_the_object() -> None:
    scale = {**machine(8), "kind": "Scale"}
    setup = Setup(answer(scale))
    await setup.client.patch(MACHINES, WEB, merge_patch({}), subresource="scale")
    assert setup.writes.told == []


async def test_dry_runs_are_marked_and_nobody_is_told() -> None:
    unstored = {"metadata": {"name": "web", "namespace": "prod"}}
    success = {"kind": "Status", "status": "Success"}
    setup = Setup(answer(unstored, 201), *[answer(machine())] * 3, answer(success), answer(machine()))
    client = setup.client
    await client.create(MACHINES, machine(), dry_run=True)
    await client.replace(MACHINES, machine(), dry_run=True)
    await client.patch(MACHINES, WEB, merge_patch({}), dry_run=True)
    await client.apply(MACHINES, WEB, machine(), dry_run=True)
    await client.delete(MACHINES, WEB, uid="u1", dry_run=True)
    await client.delete(MACHINES, WEB, uid="u1", dry_run=True)
    assert [request.query.get("dryRun") for request in setup.transport.requests] == ["All"] * 4 + [None] * 2
    assert [json.loads(request.body or b"")["dryRun"] for request in setup.transport.requests[4:]] == [["All"]] * 2
    assert setup.writes.told == []


async def test_delete_names_the_object_by_uid() -> None:
    setup = Setup(answer({"kind": "Status", "status": "Success", "details": {"name": "web", "uid": "u1"}}))
    assert await setup.client.delete(MACHINES, WEB, uid="u1", version=7, propagation=Propagation.FOREGROUND) is None
    method, path, query, body = setup.sent
    assert (method, path, query) == ("DELETE", "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines/web", {})
    assert body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
    }
    assert setup.writes.told == [("removed", "Machine", WEB, "u1")]


async def test_a_delete_that_finalizers_hold_up_returns_the_object() -> None:
    deleting = machine(8, deletionTimestamp="2026-01-05T12:00:00Z", finalizers=["a/b"])
    setup = Setup(answer(deleting))
    obj = await setup.client.delete(MACHINES, WEB, uid="u1")
    assert obj is not None
    assert obj.head.deleting
    assert setup.writes.told == [("wrote", "Machine", WEB, 8)]


async def test_a_delete_answered_with_the_object_as_it_was_means_that_it_is_gone() -> None:
    """Some kinds answer with the deleted object instead of a Status."""
    setup = Setup(answer(machine(8)))
    assert await setup.client.delete(MACHINES, WEB, uid="u1") is None
    assert setup.writes.told == [("removed", "Machine", WEB, "u1")]


async def test_deleting_a_missing_object_succeeds_and_an_unserved_resource_is_an_error() -> None:
    setup = Setup(answer(status_body(404, "NotFound", name="web", kind="machines"), 404))
    assert await setup.client.delete(MACHINES, WEB, uid="u1") is None
    assert setup.writes.told == [("removed", "Machine", WEB, "u1")]
    other = status_body(404, "NotFound", name="other")
    for body in ("404 page not found", status_body(404, "NotFound"), other):
        setup = Setup(answer(body, 404))
        with pytest.raises(errors.NotServedError):
            await setup.client.delete(MACHINES, WEB, uid="u1")
        assert setup.writes.told == []


async def test_a_delete_never_hits_another_object_of_the_name() -> None:
    setup = Setup(answer(status_body(409, "Conflict", name="web"), 409))
    with pytest.raises(errors.ConflictError):
        await setup.client.delete(MACHINES, WEB, uid="u1")
    assert setup.writes.told == []


async def test_observers_are_told_before_the_caller_and_can_leave() -> None:
    setup = Setup(answer(machine(8)), answer(machine(9)))
    setup.client.add_observer(setup.writes)
    await setup.client.patch(MACHINES, WEB, merge_patch({}))
    assert len(setup.writes.told) == 1
    setup.client.remove_observer(setup.writes)
    setup.client.remove_observer(setup.writes)
    await setup.client.patch(MACHINES, WEB, merge_patch({}))
    assert len(setup.writes.told) == 1


@pytest.mark.parametrize("body", ["404 page not found", status_body(404, "NotFound"), {"kind": "Table"}])
async def test_a_404_that_does_not_name_the_object_never_says_that_it_is_gone(body: Any) -> None:
    setup = Setup(*[answer(body, 404)] * 6)
    client = setup.client
    for call in (
        client.get(MACHINES, WEB),
        client.replace(MACHINES, machine()),
        client.patch(MACHINES, WEB, merge_patch({})),
        client.apply(MACHINES, WEB, machine()),
        client.create(MACHINES, machine()),
        client.list(MACHINES),
    ):
        with pytest.raises(errors.NotServedError):
            await call


async def test_creating_in_a_namespace_that_does_not_exist_is_not_found() -> None:
    missing = answer(status_body(404, "NotFound", name="prod", kind="namespaces"), 404)
    setup = Setup(missing, missing)
    with pytest.raises(errors.NotFoundError):
        await setup.client.create(MACHINES, machine())
    with pytest.raises(errors.NotFoundError):
        await setup.client.apply(MACHINES, WEB, machine())


# -- helpers for controllers -----------------------------------------------------------------------------------------


def with_status(**status: Any) -> Object:
    return Object.parse(json.dumps({**machine(), "status": status}).encode())


async def test_a_status_is_patched_with_uid_and_version() -> None:
    setup = Setup(answer(machine(8)))
    await setup.client.patch_status(MACHINES, with_status(ready=False), {"ready": True, "phase": None})
    method, path, query, body = setup.sent
    assert (method, query) == ("PATCH", {"fieldManager": "tests"})
    assert path.endswith("/machines/web/status")
    identity = {"uid": "u1", "resourceVersion": "7"}
    assert body == {"metadata": identity, "status": {"ready": True, "phase": None}}
    assert setup.transport.requests[-1].headers["Content-Type"] == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("status", "sent"),
    [
        ({"ready": True}, False),
        ({"node": {"name": "n"}, "gone": None, "list": [1, 2]}, False),
        ({"ready": False}, True),
        ({"ready": None}, True),
        ({"node": {"name": "n", "uid": "x"}}, True),
        ({"node": {"cpu": None}}, True),
        ({"list": [1]}, True),
        ({"new": {}}, True),
        ({"ready": {"a": 1}}, True),
    ],
)
async def test_a_status_that_holds_already_is_not_written(status: dict[str, Any], sent: bool) -> None:
    obj = with_status(ready=True, node={"name": "n", "cpu": 4}, list=[1, 2])
    setup = Setup(answer(machine(8)))
    answered = await setup.client.patch_status(MACHINES, obj, status)
    assert len(setup.transport.requests) == sent
    assert (answered is obj) is not sent


async def test_a_status_is_patched_by_head_alone_whatever_it_was() -> None:
    setup = Setup(answer(machine(8)))
    await setup.client.patch_status(MACHINES, with_status(ready=True).head, {"ready": True})
    assert setup.sent[3]["metadata"] == {"uid": "u1", "resourceVersion": "7"}


async def test_every_write_can_name_its_own_field_manager() -> None:
    setup = Setup(*[answer(machine(8))] * 6)
    client = setup.client
    await client.create(MACHINES, machine(), field_manager="other")
    await client.replace(MACHINES, machine(), field_manager="other")
    await client.patch(MACHINES, WEB, merge_patch({}), field_manager="other")
    await client.apply(MACHINES, WEB, machine(), field_manager="other")
    await client.patch_status(MACHINES, with_status(), {"a": 1}, field_manager="other")
    assert [request.query["fieldManager"] for request in setup.transport.requests] == ["other"] * 5


def label(body: dict[str, Any]) -> None:
    body["metadata"].setdefault("labels", {})["team"] = "blue"


NONE = answer(status_body(404, "NotFound", name="web"), 404)


async def test_create_or_update_creates_what_does_not_exist() -> None:
    setup = Setup(NONE, answer(machine(1), 201))
    obj, result = await setup.client.create_or_update(MACHINES, WEB, label, field_manager="other")
    assert (obj.head.version, result) == (1, WriteResult.CREATED)
    method, _, query, body = setup.sent
    assert (method, query) == ("POST", {"fieldManager": "other"})
    assert body == {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "web", "namespace": "prod", "labels": {"team": "blue"}},
    }


async def test_create_or_update_sends_what_changed_and_only_for_the_state_that_was_seen() -> None:
    setup = Setup(answer(machine(7, labels={"app": "x"})), answer(machine(8)))
    obj, result = await setup.client.create_or_update(MACHINES, WEB, label)
    assert (obj.head.version, result) == (8, WriteResult.UPDATED)
    change = {"uid": "u1", "resourceVersion": "7", "labels": {"team": "blue"}}
    assert setup.sent[0] == "PATCH"
    assert setup.sent[3] == {"metadata": change}


async def test_create_or_update_writes_nothing_when_nothing_changes() -> None:
    setup = Setup(answer(machine(7, labels={"team": "blue"})))
    obj, result = await setup.client.create_or_update(MACHINES, WEB, label)
    assert (obj.head.version, result) == (7, WriteResult.UNCHANGED)
    assert [request.method for request in setup.transport.requests] == ["GET"]


async def test_create_or_update_reads_from_a_cache_that_is_given() -> None:
    class Cache:
        def get(self, key: Key) -> Object | None:
            return with_status() if key == WEB else None

    setup = Setup(answer(machine(8)))
    assert (await setup.client.create_or_update(MACHINES, WEB, label, cache=Cache()))[1] is WriteResult.UPDATED
    assert [request.method for request in setup.transport.requests] == ["PATCH"]


@pytest.mark.parametrize("body", ["404 page not found", status_body(404, "NotFound")])
async def test_create_or_update_creates_nothing_on_a_404_that_says_nothing_about_the_object(body: Any) -> None:
    setup = Setup(answer(body, 404))
    with pytest.raises(errors.NotServedError):
        await setup.client.create_or_update(MACHINES, WEB, label)
    assert len(setup.transport.requests) == 1


@pytest.mark.parametrize("read", [NONE, answer(machine())])
async def test_create_or_update_refuses_to_change_which_object_it_is(read: Any) -> None:
    setup = Setup(read)
    with pytest.raises(ValueError, match="identity of Machine web"):
        await setup.client.create_or_update(MACHINES, WEB, lambda body: body["metadata"].update(name="other"))
    assert [request.method for request in setup.transport.requests] == ["GET"]


# -- repeating -------------------------------------------------------------------------------------------------------

LOST = errors.TransportError("reset")
UNREACHABLE = errors.ConnectError("refused")
THROTTLED = answer("later", 429, retry_after="1")


@pytest.mark.looptime
async def test_a_get_is_repeated_until_it_is_answered() -> None:
    setup = Setup(LOST, UNREACHABLE, THROTTLED, answer(machine()))
    await setup.client.get(MACHINES, WEB)
    assert setup.observed == [("GET", 0), ("GET", 0), ("GET", 429), ("GET", 200)]


@pytest.mark.looptime
@pytest.mark.parametrize("step", [LOST, THROTTLED, answer("x", 503), answer("x", 504, retry_after="1")])
async def test_a_create_is_never_repeated_once_its_bytes_were_sent(step: Step) -> None:
    setup = Setup(step)
    with pytest.raises(errors.FivespotError):
        await setup.client.create(MACHINES, machine())
    assert len(setup.transport.requests) == 1


@pytest.mark.looptime
async def test_a_create_that_never_left_is_sent_again() -> None:
    setup = Setup(UNREACHABLE, UNREACHABLE, answer(machine(), 201))
    await setup.client.create(MACHINES, machine())
    assert len(setup.transport.requests) == 3


@pytest.mark.looptime
async def test_a_delete_whose_answer_was_lost_is_sent_again_and_finds_it_done() -> None:
    setup = Setup(LOST, answer(status_body(404, "NotFound", name="web"), 404))
    assert await setup.client.delete(MACHINES, WEB, uid="u1") is None
    assert setup.writes.told == [("removed", "Machine", WEB, "u1")]


@pytest.mark.looptime
async def test_a_patch_of_unknown_fate_is_left_to_the_caller() -> None:
    setup = Setup(LOST)
    with pytest.raises(errors.TransportError):
        await setup.client.patch(MACHINES, WEB, merge_patch({}))
    setup = Setup(THROTTLED, answer(machine(8)))
    await setup.client.patch(MACHINES, WEB, merge_patch({}))
    assert len(setup.transport.requests) == 2


@pytest.mark.looptime
async def test_giving_up_raises_what_came_last() -> None:
    setup = Setup(LOST, THROTTLED, retry=RetryPolicy(attempts=2))
    with pytest.raises(errors.ThrottledError):
        await setup.client.get(MACHINES, WEB)


def test_each_verb_has_its_own_licence_to_repeat() -> None:
    assert {repeat.value for repeat in Repeat} == {"unsent", "refused", "always"}


# -- the rest --------------------------------------------------------------------------------------------------------


async def test_raw_takes_any_path_and_its_query() -> None:
    setup = Setup(answer("pong"), answer({}))
    assert await setup.client.raw("GET", "/readyz?verbose=1&exclude=", query={"x": "y"}) == b"pong"
    assert setup.sent[:3] == ("GET", "/readyz", {"verbose": "1", "exclude": "", "x": "y"})
    await setup.client.raw("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=b"{}")
    assert setup.transport.requests[-1].headers["Content-Type"] == "application/json"


async def test_every_request_has_explicit_limits() -> None:
    """Bare client timeouts differ between versions of aiohttp (none, 300 s): none may be left to it."""
    setup = Setup(*[answer(machine())] * 5, answer(page()), answer(page()), answer({}), FakeStream())
    client = setup.client
    await client.get(MACHINES, WEB)
    await client.create(MACHINES, machine())
    await client.replace(MACHINES, machine())
    await client.patch(MACHINES, WEB, merge_patch({}))
    await client.delete(MACHINES, WEB, uid="u1")
    await client.list(MACHINES)
    await client.page(MACHINES)
    await client.raw("GET", "/version")
    await client.watch(MACHINES, version="1", server_timeout=60)
    for request in setup.transport.requests[:-1]:
        assert 0 < request.limits.connect < request.limits.read < (request.limits.total or 0) <= 60
    # A watch goes on for as long as something comes; only silence ends it.
    watch = setup.transport.requests[-1].limits
    assert 0 < watch.connect < watch.read <= 90
    assert watch.total is None


async def test_closing_the_client_closes_the_transport() -> None:
    setup = Setup()
    await setup.client.close()
    assert setup.transport.closed


async def test_a_warning_of_the_server_is_logged_once() -> None:
    warned = answer(machine(), warning='299 - "unknown field \\"spec.foo\\""')
    setup = Setup(warned, warned)
    with capture_logs() as logs:
        await setup.client.get(MACHINES, WEB)
        await setup.client.get(MACHINES, WEB)
    assert [entry["warning"] for entry in logs] == ['unknown field "spec.foo"']


# -- what observers learn of a write ---------------------------------------------------------------------------------

HELD = Object.parse(json.dumps(machine(7)).encode()).head


@pytest.mark.parametrize(
    ("patch", "demanded"),
    [
        (merge_patch({"spec": {}}, HELD), 7),
        (merge_patch({"spec": {}}), None),
        (merge_patch({"metadata": {"resourceVersion": "6"}}), 6),
        (finalizer_patch(HELD, "a/b", present=True), 7),
        (json_patch([{"op": "add", "path": "/metadata/resourceVersion", "value": "7"}]), None),
        (json_patch([{"op": "test", "path": "/metadata/uid", "value": "u1"}]), None),
    ],
)
async def test_observers_learn_which_version_a_patch_demanded(patch: Patch, demanded: int | None) -> None:
    setup = Setup(answer(machine(8)))
    await setup.client.patch(MACHINES, Key("prod", "web"), patch)
    assert setup.writes.writes == [Write("", demanded)]


async def test_observers_learn_who_wrote_and_which_version_other_verbs_demanded() -> None:
    setup = Setup(*[answer(machine(8)) for _ in range(5)], answer(status_body(200, "")))
    token = current_writer.set("me")
    try:
        await setup.client.create(MACHINES, machine(0))
        await setup.client.replace(MACHINES, machine(7))
        await setup.client.replace(MACHINES, {"metadata": {"name": "web", "namespace": "prod"}})
        await setup.client.apply(MACHINES, Key("prod", "web"), {"metadata": {}})
        await setup.client.patch_status(MACHINES, HELD, {"a": 1})
        await setup.client.delete(MACHINES, Key("prod", "web"), uid="u1", version=9)
    finally:
        current_writer.reset(token)
    assert [write.demanded for write in setup.writes.writes] == [0, 7, None, None, 7, 9]
    assert {write.writer for write in setup.writes.writes} == {"me"}


@pytest.mark.parametrize(("known", "rewound"), [(0, False), (7, False), (8, False), (9, True)])
async def test_an_answer_below_a_version_known_before_the_write_reveals_a_rewind(known: int, rewound: bool) -> None:
    setup = Setup(answer(machine(8)), answer(machine(8)))
    setup.writes.known = known
    await setup.client.patch(MACHINES, Key("prod", "web"), merge_patch({}), dry_run=True)
    assert setup.writes.told == []
    await setup.client.patch(MACHINES, Key("prod", "web"), merge_patch({}))
    assert (("rewound", 8) in setup.writes.told) is rewound
