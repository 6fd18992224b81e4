"""Creating, reading, replacing and patching one object."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.targets import NAMESPACES, Target, config_map


def without_system(body: dict[str, Any]) -> dict[str, Any]:
    """An object without fields that differ between runs."""
    metadata = {
        name: value
        for name, value in body["metadata"].items()
        if name not in {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
    }
    return {**body, "metadata": metadata}


def test_a_created_object_gets_what_the_server_fills_in(target: Target, maps: str, ns: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1"}, labels={"l": "1"})).ok()
    assert without_system(made) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": ns, "labels": {"l": "1"}},
        "data": {"x": "1"},
    }
    metadata = made["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert int(metadata["resourceVersion"]) > 0
    (entry,) = metadata["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("conformance", "Update", "v1")
    assert entry["fieldsV1"] == {
        "f:data": {".": {}, "f:x": {}},
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
    }
    assert target.get(f"{maps}/a").ok() == made


def test_names_are_generated(target: Target, maps: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    names = {target.create(maps, body).ok()["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_what_belongs_to_the_server_is_not_taken_from_a_client(target: Target, maps: str) -> None:
    made = target.create(
        maps,
        config_map(
            "a",
            uid="mine",
            creationTimestamp="2020-01-01T00:00:00Z",
            deletionTimestamp="2020-01-01T00:00:00Z",
            selfLink="/there",
        ),
    ).ok()["metadata"]
    assert made["uid"] != "mine"
    assert not made["creationTimestamp"].startswith("2020")
    assert "deletionTimestamp" not in made
    assert "selfLink" not in made


@pytest.mark.parametrize(
    ("body", "status", "reason", "causes"),
    [
        (config_map("Bad_Name"), 422, "Invalid", {("FieldValueInvalid", "metadata.name")}),
        (config_map(""), 422, "Invalid", {("FieldValueRequired", "metadata.name")}),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, 422, "Invalid", {("FieldValueRequired", "metadata.name")}),
        (config_map("a", labels={"k k": "v"}), 422, "Invalid", {("FieldValueInvalid", "metadata.labels")}),
        (config_map("a", labels={"k": "v v"}), 422, "Invalid", {("FieldValueInvalid", "metadata.labels")}),
        (config_map("a", annotations={"k k": ""}), 422, "Invalid", {("FieldValueInvalid", "metadata.annotations")}),
        (config_map("a", finalizers=["plain"]), 422, "Invalid", {("FieldValueInvalid", "metadata.finalizers[0]")}),
        (config_map("a", finalizers=["b d/x"]), 422, "Invalid", {("FieldValueInvalid", "metadata.finalizers")}),
        (config_map("a", {"b d": "x"}), 422, "Invalid", {("FieldValueInvalid", "data[b d]")}),
        (config_map("a", namespace="elsewhere"), 400, "BadRequest", set()),
        (config_map("a", resourceVersion="5"), 500, "", set()),
        ({**config_map("a"), "kind": "Secret"}, 400, "BadRequest", set()),
        ({**config_map("a"), "apiVersion": "v2"}, 400, "BadRequest", set()),
        (config_map("a", {"x": 1}), 400, "BadRequest", set()),
        ({**config_map("a"), "data": ["x"]}, 400, "BadRequest", set()),
        (config_map("a", labels={"x": 1}), 400, "BadRequest", set()),
    ],
)
def test_what_cannot_be_stored_is_refused(
    target: Target, maps: str, body: Any, status: int, reason: str, causes: set[tuple[str, str]]
) -> None:
    refused = target.create(maps, body)
    assert (refused.status, refused.reason, refused.causes) == (status, reason, causes)
    assert target.get(maps).ok()["items"] == []


def test_owners_must_be_complete(target: Target, maps: str) -> None:
    owner = {"apiVersion": "v1", "kind": "", "name": "", "uid": ""}
    refused = target.create(maps, config_map("a", ownerReferences=[owner]))
    fields = {f"metadata.ownerReferences[0].{name}" for name in ("kind", "name", "uid")}
    assert (refused.status, refused.causes) == (422, {("FieldValueRequired", field) for field in fields})


def test_type_may_be_left_out_of_a_built_in_kind(target: Target, maps: str) -> None:
    made = target.create(maps, {"metadata": {"name": "a"}}).ok()
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")


def test_a_taken_name_and_a_missing_namespace(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    taken = target.create(maps, config_map("a"))
    assert (taken.status, taken.reason, taken.message) == (409, "AlreadyExists", 'configmaps "a" already exists')
    assert taken.body["details"] == {"name": "a", "kind": "configmaps"}
    nowhere = target.create(f"{NAMESPACES}/nowhere/configmaps", config_map("a"))
    assert (nowhere.status, nowhere.message) == (404, 'namespaces "nowhere" not found')


def test_what_is_not_there(target: Target, maps: str) -> None:
    missing = target.get(f"{maps}/missing")
    assert (missing.status, missing.reason) == (404, "NotFound")
    assert missing.body["details"] == {"name": "missing", "kind": "configmaps"}
    unknown = target.get(f"{NAMESPACES}/default/nothings")
    assert (unknown.status, unknown.reason, unknown.body["details"]) == (404, "NotFound", {})
    for path in ("/apis/nowhere.example.com/v1/things", "/nothing", "/apis/nowhere.example.com"):
        answer = target.get(path)
        assert (answer.status, answer.raw.strip()) == (404, b"404 page not found")


def test_replacing(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1"}, labels={"l": "1"})).ok()
    version, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    blind = target.put(f"{maps}/a", config_map("a", {"x": "2"})).ok()
    assert (blind["data"], blind["metadata"].get("labels"), blind["metadata"]["uid"]) == ({"x": "2"}, None, uid)
    assert int(blind["metadata"]["resourceVersion"]) > int(version)
    stale = target.put(f"{maps}/a", config_map("a", {"x": "3"}, resourceVersion=version))
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in stale.message
    assert target.put(f"{maps}/a", config_map("a", uid="other")).status == 409
    assert target.put(f"{maps}/a", config_map("b")).status == 400
    assert target.put(f"{maps}/a", config_map("a", namespace="other")).status == 400
    assert target.put(f"{maps}/none", config_map("none")).status == 404
    assert target.put(f"{maps}/a", config_map("a", resourceVersion="abc")).status == 500
    assert target.get(f"{maps}/a").ok()["data"] == {"x": "2"}


def test_a_write_that_changes_nothing_is_no_write(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1"})).ok()
    assert target.put(f"{maps}/a", made).ok() == made
    assert target.patch(f"{maps}/a", {"data": {"x": "1"}}).ok() == made
    assert target.patch(f"{maps}/a", [], "json").ok() == made


def test_merge_patches(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", {"x": "1", "y": "2"})).ok()
    patched = target.patch(f"{maps}/a", {"data": {"x": None, "z": "3"}, "metadata": {"labels": {"n": "1"}}}).ok()
    assert (patched["data"], patched["metadata"]["labels"]) == ({"y": "2", "z": "3"}, {"n": "1"})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"x": "9"}}
    assert target.patch(f"{maps}/a", stale).reason == "Conflict"
    uid = target.patch(f"{maps}/a", {"metadata": {"uid": "zz"}})
    assert (uid.status, uid.causes) == (422, {("FieldValueInvalid", "metadata.uid")})
    assert target.patch(f"{maps}/a", {"metadata": {"name": "b"}}).status == 400
    assert target.patch(f"{maps}/a", {"data": 5}).status == 422
    assert target.patch(f"{maps}/a", [1]).status == 400
    assert target.patch(f"{maps}/none", {}).status == 404
    aged = target.patch(f"{maps}/a", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}).ok()
    assert aged["metadata"] == patched["metadata"]


def test_json_patches(target: Target, maps: str) -> None:
    target.create(maps, config_map("a", {"x": "1"})).ok()
    steps = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "add", "path": "/data/y", "value": "2"}]
    assert target.patch(f"{maps}/a", steps, "json").ok()["data"] == {"x": "1", "y": "2"}
    for broken in (
        [{"op": "test", "path": "/data/x", "value": "no"}],
        [{"op": "remove", "path": "/data/none"}],
        [{"op": "frob", "path": "/data/x"}],
        [{"op": "add", "path": "/data/q/r/s", "value": 1}],
    ):
        refused = target.patch(f"{maps}/a", broken, "json")
        assert (refused.status, refused.reason) == (422, "Invalid"), broken
    assert target.patch(f"{maps}/a", {"op": "test"}, "json").status == 400
    assert target.patch(f"{maps}/a", "{broken", "json").status == 400
    renamed = [{"op": "replace", "path": "/metadata/name", "value": "q"}]
    assert target.patch(f"{maps}/a", renamed, "json").status == 400


def test_strategic_patches_of_built_in_kinds(target: Target, maps: str) -> None:
    target.create(maps, config_map("a", {"x": "1"}, finalizers=["example.com/one"])).ok()
    patch = {"data": {"y": "2"}, "metadata": {"labels": {"n": "1"}, "finalizers": ["example.com/two"]}}
    patched = target.patch(f"{maps}/a", patch, "strategic").ok()
    assert patched["data"] == {"x": "1", "y": "2"}
    assert sorted(patched["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    target.patch(f"{maps}/a", {"metadata": {"finalizers": None}}).ok()


@pytest.mark.parametrize(
    ("named", "order", "expected"),
    [
        (["d"], None, "dabc"),
        (["c", "a"], None, "bca"),
        (["d"], ["a", "d"], "adbc"),
        (["d"], ["c", "d"], "abcd"),
        (["e", "d"], ["e", "b", "d"], "eabdc"),
        (None, ["c", "b"], "acb"),
        (None, ["z", "c", "a"], "bca"),
    ],
)
def test_the_order_of_lists_that_strategic_patches_merge(
    target: Target, maps: str, named: list[str] | None, order: list[str] | None, expected: str
) -> None:
    """As clients compute such patches: with the order of all that they know."""
    full = [f"example.com/{each}" for each in "abc"]
    target.create(maps, config_map("a", finalizers=full)).ok()
    lists = {"finalizers": named, "$setElementOrder/finalizers": order}
    patch = {name: [f"example.com/{each}" for each in letters] for name, letters in lists.items() if letters}
    patched = target.patch(f"{maps}/a", {"metadata": patch}, "strategic").ok()
    assert [each[-1] for each in patched["metadata"]["finalizers"]] == list(expected)
    target.patch(f"{maps}/a", {"metadata": {"finalizers": None}}).ok()


def test_owners_are_merged_in_order(target: Target, maps: str) -> None:
    def owner(uid: str, name: str = "") -> dict[str, str]:
        return {"apiVersion": "v1", "kind": "Pod", "name": name or uid, "uid": uid}

    target.create(maps, config_map("a", ownerReferences=[owner("a"), owner("b")], finalizers=["x.io/f"])).ok()
    patch = {"ownerReferences": [owner("b", name="B"), owner("c")], "$setElementOrder/ownerReferences": [
        {"uid": "b"}, {"uid": "c"},
    ]}  # fmt: skip
    patched = target.patch(f"{maps}/a", {"metadata": patch}, "strategic").ok()
    assert [each["name"] for each in patched["metadata"]["ownerReferences"]] == ["a", "B", "c"]


def test_media_types_of_patches(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    for content in ("application/json", "text/plain"):
        refused = target.request("PATCH", f"{maps}/a", {}, content=content)
        assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")


def test_dry_runs_change_nothing(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("never"), dryRun="All").ok()
    assert "resourceVersion" not in made["metadata"]
    assert target.get(f"{maps}/never").status == 404
    kept = target.create(maps, config_map("kept", {"x": "1"})).ok()
    assert target.patch(f"{maps}/kept", {"data": {"x": "2"}}, dryRun="All").ok()["data"] == {"x": "2"}
    assert target.put(f"{maps}/kept", {**kept, "data": {}}, dryRun="All").status == 200
    assert target.delete(f"{maps}/kept", dryRun=["All"]).status == 200
    assert target.get(f"{maps}/kept").ok() == kept
    refused = target.create(maps, config_map("x"), dryRun="Some")
    assert (refused.status, refused.causes) == (422, {("FieldValueNotSupported", "dryRun")})


def test_unknown_and_duplicate_fields(target: Target, maps: str) -> None:
    answer = target.create(maps, {**config_map("a"), "foo": 1})
    assert answer.status == 201
    assert answer.warnings == ['299 - "unknown field \\"foo\\""']
    assert target.create(maps, {**config_map("b"), "foo": 1}, fieldValidation="Ignore").warnings == []
    strict = target.create(maps, {**config_map("c"), "foo": 1}, fieldValidation="Strict")
    assert (strict.status, strict.reason) == (400, "BadRequest")
    assert 'strict decoding error: unknown field "foo"' in strict.message
    twice = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d","name":"e"}}'
    answer = target.create(maps, twice)
    assert answer.ok()["metadata"]["name"] == "e"
    assert answer.warnings == ['299 - "duplicate field \\"metadata.name\\""']
    assert target.create(maps, twice, fieldValidation="Strict").status == 400
    assert target.create(maps, config_map("f"), fieldValidation="Nonsense").status == 422


def test_yaml_bodies(target: Target, maps: str) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  day: '2026-01-01'\n"
    made = target.request("POST", maps, body, content="application/yaml").ok()
    assert made["data"] == {"day": "2026-01-01"}


def test_secrets_encode_plain_text_and_keep_their_type(target: Target, ns: str) -> None:
    path = f"{NAMESPACES}/{ns}/secrets"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    made = target.create(path, body).ok()
    assert (made["data"], made["type"], "stringData" in made) == ({"a": "Yg=="}, "Opaque", False)
    retyped = target.patch(f"{path}/s", {"type": "other"})
    assert (retyped.status, retyped.causes) == (422, {("FieldValueInvalid", "type")})
    broken = {**body, "metadata": {"name": "t"}, "data": {"a": "not base64!"}}
    assert target.create(path, broken).status == 400


def test_immutable_maps_stay_as_they_are(target: Target, maps: str) -> None:
    target.create(maps, {**config_map("a", {"x": "1"}), "immutable": True}).ok()
    changed = target.patch(f"{maps}/a", {"data": {"x": "2"}})
    assert (changed.status, changed.causes) == (422, {("FieldValueForbidden", "data")})
    freed = target.patch(f"{maps}/a", {"immutable": False})
    assert (freed.status, freed.causes) == (422, {("FieldValueForbidden", "immutable")})


def test_leases(target: Target, ns: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000001Z"}
    made = target.create(path, {**body, "spec": spec}).ok()
    assert made["spec"] == spec
    assert "generation" not in made["metadata"]
    assert target.put(f"{path}/l", {**body, "spec": spec}).status == 422, "a lease is never overwritten blindly"
    bad = target.create(path, {**body, "metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": 0}})
    assert (bad.status, bad.causes) == (422, {("FieldValueInvalid", "spec.leaseDurationSeconds")})
    late = {**body, "metadata": {"name": "n"}, "spec": {"renewTime": "2026-01-01T00:00:00.1Z"}}
    assert target.create(path, late).status == 400


def test_both_kinds_of_event_are_one(target: Target, ns: str) -> None:
    young, old = f"/apis/events.k8s.io/v1/namespaces/{ns}/events", f"{NAMESPACES}/{ns}/events"
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": ns, "apiVersion": "v1"},
        "note": "hello",
        "type": "Normal",
    }
    assert target.create(young, body).ok()["note"] == "hello"
    seen = target.get(f"{old}/e").ok()
    assert (seen["message"], seen["involvedObject"]["name"], seen["reportingComponent"]) == ("hello", "a", "c")
    patched = target.patch(f"{young}/e", {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}})
    assert patched.ok()["series"]["count"] == 2
    selected = target.get(old, query={"fieldSelector": "involvedObject.name=a,reason=R"}).ok()["items"]
    assert [item["metadata"]["name"] for item in selected] == ["e"]
    refused = target.create(young, {**body, "metadata": {"name": "f"}, "regarding": {}, "eventTime": None, "type": ""})
    fields = {"involvedObject.namespace", "eventTime", "type"}
    assert (refused.status, {field for _, field in refused.causes}) == (422, fields)


def test_status_of_a_node_is_written_apart(target: Target) -> None:
    nodes, name = "/api/v1/nodes", f"node-{id(target)}"
    target.create(nodes, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}).ok()
    try:
        condition = {"type": "Ready", "status": "True"}
        patch = {"status": {"conditions": [condition]}, "spec": {"providerID": "ignored"}}
        target.patch(f"{nodes}/{name}/status", patch).ok()
        target.patch(f"{nodes}/{name}", {"spec": {"unschedulable": True}, "status": {"phase": "ignored"}}).ok()
        seen = target.get(f"{nodes}/{name}").ok()
        assert seen["status"]["conditions"][0]["status"] == "True"
        assert (seen["spec"].get("providerID"), seen["spec"]["unschedulable"]) == (None, True)
        assert "phase" not in seen["status"]
    finally:
        target.delete(f"{nodes}/{name}")
