"""WATCH: start, events, end."""

from __future__ import annotations

import time

import pytest

from support.targets import Target, config_map

END = "k8s.io/initial-events-end"


def version_of(target: Target, path: str) -> str:
    return str(target.get(path).ok()["metadata"]["resourceVersion"])


def test_changes_after_a_version(target: Target, maps: str) -> None:
    target.create(maps, config_map("before")).ok()
    version = version_of(target, maps)
    with target.watch(maps, resourceVersion=version) as events:
        made = target.create(maps, config_map("a", {"x": "1"})).ok()
        changed = target.patch(f"{maps}/a", {"data": {"x": "2"}}).ok()
        target.delete(f"{maps}/a").ok()
        first, second, third = events.next(), events.next(), events.next()
    assert first == {"type": "ADDED", "object": made}
    assert second == {"type": "MODIFIED", "object": changed}
    assert third is not None
    assert third["type"] == "DELETED"
    # The last state, at the version of the deletion.
    last = third["object"]["metadata"].pop("resourceVersion")
    assert int(last) > int(changed["metadata"].pop("resourceVersion"))
    assert third["object"] == changed


def test_a_watch_without_a_version_begins_with_the_state(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    target.create(maps, config_map("b")).ok()
    for query in ({}, {"resourceVersion": "0"}):
        with target.watch(maps, **query) as events:
            assert sorted(events.take(2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_a_resumed_watch_misses_nothing(target: Target, maps: str) -> None:
    version = version_of(target, maps)
    for number in range(5):
        target.create(maps, config_map(f"c{number}")).ok()
    target.delete(f"{maps}/c2").ok()
    with target.watch(maps, resourceVersion=version) as events:
        seen = events.take(6)
    assert seen == [("ADDED", f"c{number}") for number in range(5)] + [("DELETED", "c2")]


def test_streamed_lists(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    with target.watch(maps, **query) as events:
        assert events.take(1) == [("ADDED", "a")]
        mark = events.next()
        assert mark is not None
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "ConfigMap"
        assert mark["object"]["metadata"]["annotations"] == {END: "true"}
        assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(version_of(target, f"{maps}/a"))
        target.create(maps, config_map("b")).ok()
        assert events.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"sendInitialEvents": "true", "allowWatchBookmarks": "true"}, "resourceVersionMatch"),
        ({"resourceVersionMatch": "NotOlderThan"}, "resourceVersionMatch"),
    ],
)
def test_streamed_lists_need_all_their_parameters(target: Target, maps: str, query: dict[str, str], field: str) -> None:
    refused = target.get(maps, query={"watch": "1", "timeoutSeconds": "1", **query})
    assert (refused.status, refused.causes) == (422, {("FieldValueForbidden", field)})


def test_objects_that_enter_and_leave_a_selection(target: Target, maps: str) -> None:
    version = version_of(target, maps)
    with target.watch(maps, resourceVersion=version, labelSelector="mine=yes") as events:
        target.create(maps, config_map("a", {"x": "1"})).ok()
        target.patch(f"{maps}/a", {"metadata": {"labels": {"mine": "yes"}}}).ok()
        target.patch(f"{maps}/a", {"data": {"x": "2"}}).ok()
        left = target.patch(f"{maps}/a", {"metadata": {"labels": None}, "data": {"x": "3"}}).ok()
        target.patch(f"{maps}/a", {"data": {"x": "4"}}).ok()
        target.create(maps, config_map("b", labels={"mine": "yes"})).ok()
        assert events.take(2) == [("ADDED", "a"), ("MODIFIED", "a")]
        gone = events.next()
        assert gone is not None
        # What is told is the state before, at the version of the change that took it out.
        assert (gone["type"], gone["object"]["data"]) == ("DELETED", {"x": "2"})
        assert gone["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        assert events.take(1) == [("ADDED", "b")]


def test_one_name_is_watched_by_field(target: Target, maps: str) -> None:
    version = version_of(target, maps)
    with target.watch(maps, resourceVersion=version, fieldSelector="metadata.name=b") as events:
        for name in ("a", "b", "c"):
            target.create(maps, config_map(name)).ok()
        target.delete(f"{maps}/b").ok()
        assert events.take(2) == [("ADDED", "b"), ("DELETED", "b")]


def test_all_namespaces_are_watched_at_once(target: Target, maps: str, ns: str) -> None:
    version = version_of(target, maps)
    query = {"resourceVersion": version, "fieldSelector": f"metadata.namespace={ns}"}
    with target.watch("/api/v1/configmaps", **query) as events:
        target.create(maps, config_map("a")).ok()
        assert events.take(1) == [("ADDED", "a")]


def test_a_watch_ends_after_its_time(target: Target, maps: str) -> None:
    version = version_of(target, maps)
    began = time.monotonic()
    with target.watch(maps, resourceVersion=version, timeoutSeconds="1") as events:
        assert events.next() is None
    assert 0.5 < time.monotonic() - began < 8


def test_the_future_is_waited_for_in_silence(target: Target, maps: str) -> None:
    version = str(int(version_of(target, maps)) + 10**9)
    with target.watch(maps, resourceVersion=version, timeoutSeconds="1") as events:
        target.create(maps, config_map("a")).ok()
        assert (events.status, events.next()) == (200, None)


def test_a_version_that_is_none(target: Target, maps: str) -> None:
    assert target.get(maps, query={"watch": "1", "resourceVersion": "abc"}).status == 500
    assert target.get(maps, query={"watch": "1", "timeoutSeconds": "abc"}).status == 400


def test_a_stream_of_metadata_alone(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1"})).ok()
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    with target.watch(maps, accept=accept) as events:
        event = events.next()
    assert event is not None
    assert event["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }
