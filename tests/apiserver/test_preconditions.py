"""Versions, names and identifiers in the body of a write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.targets import Defined, Target, config_map

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
REQUIRED = {("FieldValueInvalid", "metadata.resourceVersion")}


@pytest.fixture(scope="module")
def defined(target: Target) -> Iterator[Defined]:
    made = target.define(NUMBER, subresources={"status": {}})
    yield made
    made.remove()


@pytest.fixture(scope="module")
def widgets(target: Target, defined: Defined) -> str:
    path = defined.path(target.namespace())
    target.create(path, defined.body("a", {"n": 1}, metadata={"finalizers": ["example.com/f"]})).ok()
    return path


@pytest.mark.parametrize("version", ["", "0", "00", None])
@pytest.mark.parametrize("suffix", ["", "/status"])
def test_a_custom_resource_cannot_be_updated_without_a_version(
    target: Target, defined: Defined, widgets: str, version: Any, suffix: str
) -> None:
    body = defined.body("a", {"n": 2}, metadata={"resourceVersion": version})
    answer = target.put(f"{widgets}/a{suffix}", body, dryRun="All")
    assert (answer.status, answer.causes) == (422, REQUIRED)
    answer = target.patch(f"{widgets}/a{suffix}", {"metadata": {"resourceVersion": version}}, dryRun="All")
    assert (answer.status, answer.causes) == (422, REQUIRED)


@pytest.mark.parametrize("version", ["", None])
def test_an_empty_version_cannot_be_applied(target: Target, defined: Defined, widgets: str, version: Any) -> None:
    body = defined.body("a", {"n": 2}, metadata={"resourceVersion": version})
    answer = target.patch(f"{widgets}/a", body, "apply", fieldManager="m", force="true", dryRun="All")
    assert (answer.status, answer.causes) == (422, REQUIRED)


@pytest.mark.parametrize(("version", "status"), [("1", 409), (str(2**64 - 1), 409), (str(2**64), 500), ("x", 500)])
def test_versions_that_are_not_the_current_one(
    target: Target, defined: Defined, widgets: str, version: str, status: int
) -> None:
    body = defined.body("a", {"n": 2}, metadata={"resourceVersion": version})
    assert target.put(f"{widgets}/a", body, dryRun="All").status == status
    patch = {"metadata": {"resourceVersion": version}, "spec": {"n": 3}}
    assert target.patch(f"{widgets}/a", patch, dryRun="All").status == status


@pytest.mark.parametrize(("version", "status"), [("", 201), ("0", 201), ("x", 201), ("1", 500)])
def test_a_new_object_has_no_version(target: Target, maps: str, version: str, status: int) -> None:
    assert target.create(maps, config_map("a", resourceVersion=version)).status == status
    assert target.create(maps, config_map("b", resourceVersion=version), dryRun="All").status == 201


@pytest.mark.parametrize("name", ["", None])
def test_the_body_of_a_change_names_its_object(target: Target, defined: Defined, widgets: str, name: Any) -> None:
    body = defined.body("a", {"n": 2}, metadata={"name": name, "resourceVersion": "1"})
    for suffix in ("", "/status"):
        assert target.put(f"{widgets}/a{suffix}", body).status == 400
        answer = target.patch(f"{widgets}/a{suffix}", {"metadata": {"name": name}})
        assert (answer.status, answer.reason) == (400, "BadRequest")
        assert "was undeterminable: name must be provided" in answer.message
    for path in ("a", "new"):
        assert target.patch(f"{widgets}/{path}", body, "apply", fieldManager="m", force="true").status == 400


def test_the_finalizers_are_not_changed_through_the_status(target: Target, defined: Defined, widgets: str) -> None:
    target.create(widgets, defined.body("held", {"n": 1}, metadata={"finalizers": ["example.com/f"]})).ok()
    target.delete(f"{widgets}/held")
    for finalizers in ([], ["example.com/other"], None):
        patch = {"metadata": {"finalizers": finalizers, "labels": {"l": "1"}}, "status": {"seen": True}}
        changed = target.patch(f"{widgets}/held/status", patch).ok()
        assert changed["metadata"]["finalizers"] == ["example.com/f"]
        assert "labels" not in changed["metadata"]
    assert target.get(f"{widgets}/held").ok()["status"] == {"seen": True}
    target.patch(f"{widgets}/held", {"metadata": {"finalizers": None}}).ok()
    assert target.get(f"{widgets}/held").status == 404


@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": 1},
        {"orphanDependents": "x"},
        {"gracePeriodSeconds": "x"},
        {"preconditions": []},
        {"preconditions": {"uid": 1}},
        {"preconditions": {"resourceVersion": 1}},
        {"dryRun": "All"},
    ],
)
def test_options_of_a_deletion_of_the_wrong_type(target: Target, maps: str, options: Any) -> None:
    target.create(maps, config_map("a")).ok()
    assert target.request("DELETE", f"{maps}/a", options).status == 400
    assert target.request("DELETE", maps, options).status == 400
    assert target.get(f"{maps}/a").status == 200


def test_null_as_the_options_of_a_deletion(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    assert target.request("DELETE", f"{maps}/a", "null").status == 200
    assert target.get(f"{maps}/a").status == 404


def test_a_collection_is_not_deleted_against_a_precondition(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    refused = target.delete(maps, preconditions={"uid": "another"})
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert target.get(f"{maps}/a").status == 200
