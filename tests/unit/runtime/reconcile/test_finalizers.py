"""Adding and removing finalizers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fivespot.runtime.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    StaleReadError,
    StatusCause,
)
from fivespot.runtime.objects import Key, Object, Patch, Resource
from fivespot.runtime.reconcile import ensure_finalizer, remove_finalizer

from .fakes import WIDGETS, make_object

OURS, THEIRS = "example.com/ours", "example.org/theirs"
GONE = NotFoundError(404, "NotFound", "no such widget", request="patch widgets ns/a")
TEST_FAILED = InvalidError(422, "Invalid", "the server rejected our request", request="patch widgets ns/a")
MOVED_ON = ConflictError(409, "Conflict", "the object has been modified", request="patch widgets ns/a")
BAD_NAME = InvalidError(
    422, "Invalid", "bad", request="patch", causes=[StatusCause("FieldValueInvalid", "bad", "metadata.finalizers")]
)
FORBIDDEN = ForbiddenError(403, "Forbidden", "no", request="patch")
DELETING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class FakeClient:
    """Answers every patch with one object or error."""

    def __init__(self, answer: Object | ApiError) -> None:
        self.answer = answer
        self.sent: list[tuple[Resource, Key, list[dict[str, Any]]]] = []

    async def patch(self, resource: Resource, key: Key, patch: Patch, /) -> Object:
        assert patch.content_type == "application/json-patch+json"
        self.sent.append((resource, key, json.loads(patch.body)))
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


async def test_a_finalizer_is_added_only_to_the_state_that_was_seen() -> None:
    after = make_object("a", version=2, finalizers=[THEIRS, OURS])
    client = FakeClient(after)
    assert await ensure_finalizer(client, WIDGETS, make_object("a", finalizers=[THEIRS]), OURS) is after
    ((resource, key, operations),) = client.sent
    assert (resource, key) == (WIDGETS, Key("ns", "a"))
    assert operations == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-a"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": OURS},
    ]


@pytest.mark.parametrize("metadata", [{"finalizers": [OURS]}, DELETING, DELETING | {"finalizers": [OURS, THEIRS]}])
async def test_nothing_is_sent_when_it_is_there_or_can_no_longer_be_added(metadata: dict[str, Any]) -> None:
    client = FakeClient(GONE)
    obj = make_object("a", **metadata)
    assert await ensure_finalizer(client, WIDGETS, obj, OURS) is obj
    assert not client.sent


async def test_removing_leaves_those_of_others() -> None:
    left = make_object("a", version=2, finalizers=[THEIRS], **DELETING)
    client = FakeClient(left)
    obj = make_object("a", finalizers=[THEIRS, OURS], **DELETING)
    assert await remove_finalizer(client, WIDGETS, obj, OURS) is left
    assert client.sent[0][2][-1] == {"op": "remove", "path": "/metadata/finalizers/1"}


async def test_removing_what_is_not_there_sends_nothing() -> None:
    client = FakeClient(GONE)
    obj = make_object("a", finalizers=[THEIRS])
    assert await remove_finalizer(client, WIDGETS, obj, OURS) is obj
    assert not client.sent


async def test_removing_the_last_one_of_a_deleting_object_means_it_is_gone() -> None:
    """The answer shows the object once more, with the version it had."""
    obj = make_object("a", finalizers=[OURS], **DELETING)
    assert await remove_finalizer(FakeClient(make_object("a", **DELETING)), WIDGETS, obj, OURS) is None


async def test_removing_the_last_one_of_an_object_that_lives_on_returns_it() -> None:
    after = make_object("a", version=2)
    assert await remove_finalizer(FakeClient(after), WIDGETS, make_object("a", finalizers=[OURS]), OURS) is after


async def test_an_object_that_is_gone_needs_no_removal_and_can_take_no_finalizer() -> None:
    """java-operator-sdk#3530."""
    obj = make_object("a", finalizers=[OURS])
    assert await remove_finalizer(FakeClient(GONE), WIDGETS, obj, OURS) is None
    with pytest.raises(NotFoundError):
        await ensure_finalizer(FakeClient(GONE), WIDGETS, make_object("a"), OURS)


@pytest.mark.parametrize(("error", "raised"), [(TEST_FAILED, StaleReadError), (MOVED_ON, ConflictError)])
async def test_an_object_that_has_changed_has_the_key_run_again(error: ApiError, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        await remove_finalizer(FakeClient(error), WIDGETS, make_object("a", finalizers=[OURS]), OURS)
    with pytest.raises(raised):
        await ensure_finalizer(FakeClient(error), WIDGETS, make_object("a"), OURS)


@pytest.mark.parametrize("error", [BAD_NAME, FORBIDDEN])
async def test_other_refusals_are_raised_as_they_are(error: ApiError) -> None:
    with pytest.raises(type(error)) as caught:
        await ensure_finalizer(FakeClient(error), WIDGETS, make_object("a"), OURS)
    assert caught.value is error
