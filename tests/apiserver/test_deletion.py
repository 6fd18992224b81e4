"""DELETE: preconditions, finalizers, owners, namespaces."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from support.targets import NAMESPACES, Target, config_map

HOLD = "example.com/hold"


def owner(of: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": of["metadata"]["name"],
        "uid": of["metadata"]["uid"],
        **extra,
    }


def gone(target: Target, path: str) -> bool:
    return target.get(path).status == 404


def test_a_deletion_is_answered_with_a_status(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a")).ok()
    answer = target.delete(f"{maps}/a").ok()
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert target.delete(f"{maps}/a").status == 404


def test_preconditions(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a")).ok()
    for condition in ({"uid": "other"}, {"resourceVersion": "1"}):
        refused = target.delete(f"{maps}/a", preconditions=condition)
        assert (refused.status, refused.reason) == (409, "Conflict")
    right = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    assert target.delete(f"{maps}/a", preconditions=right).status == 200


def test_options_that_make_no_sense(target: Target, maps: str) -> None:
    target.create(maps, config_map("a")).ok()
    refused = target.delete(f"{maps}/a", propagationPolicy="Nope")
    assert (refused.status, refused.causes) == (422, {("FieldValueNotSupported", "propagationPolicy")})
    refused = target.delete(f"{maps}/a", propagationPolicy="Orphan", orphanDependents=True)
    assert (refused.status, refused.causes) == (422, {("FieldValueInvalid", "propagationPolicy")})
    assert target.request("DELETE", f"{maps}/a", "{bad").status == 400
    assert target.request("DELETE", f"{maps}/a", {"kind": "Foo"}).status == 400


def test_finalizers_keep_an_object(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", finalizers=[HOLD])).ok()
    marked = target.delete(f"{maps}/a").ok()
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert int(marked["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert target.delete(f"{maps}/a").ok() == marked
    more = target.patch(f"{maps}/a", {"metadata": {"finalizers": [HOLD, "example.com/more"]}})
    assert (more.status, more.causes) == (422, {("FieldValueForbidden", "metadata.finalizers")})
    kept = target.patch(f"{maps}/a", {"data": {"x": "1"}}).ok()
    last = target.patch(f"{maps}/a", {"metadata": {"finalizers": None}}).ok()
    assert last["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"], "the answer has the old version"
    assert gone(target, f"{maps}/a")


def test_a_watch_sees_the_mark_and_then_the_end(target: Target, maps: str) -> None:
    made = target.create(maps, config_map("a", finalizers=[HOLD])).ok()
    with target.watch(maps, resourceVersion=made["metadata"]["resourceVersion"]) as events:
        target.delete(f"{maps}/a").ok()
        target.patch(f"{maps}/a", [{"op": "remove", "path": "/metadata/finalizers"}], "json").ok()
        assert events.take(2) == [("MODIFIED", "a"), ("DELETED", "a")]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependants_go_with_their_owner(target: Target, maps: str, policy: str) -> None:
    parent = target.create(maps, config_map("parent")).ok()
    child = target.create(maps, config_map("child", ownerReferences=[owner(parent, blockOwnerDeletion=True)])).ok()
    target.create(maps, config_map("grandchild", ownerReferences=[owner(child)])).ok()
    answer = target.delete(f"{maps}/parent", propagationPolicy=policy).ok()
    if policy == "Foreground":
        assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    for name in ("parent", "child", "grandchild"):
        target.eventually(partial(gone, target, f"{maps}/{name}"))


def test_a_foreground_deletion_waits_for_what_blocks_it(target: Target, maps: str) -> None:
    parent = target.create(maps, config_map("parent")).ok()
    blocking = owner(parent, blockOwnerDeletion=True)
    target.create(maps, config_map("child", ownerReferences=[blocking], finalizers=[HOLD])).ok()
    target.delete(f"{maps}/parent", propagationPolicy="Foreground").ok()
    target.eventually(lambda: "deletionTimestamp" in target.get(f"{maps}/child").ok()["metadata"])
    assert not gone(target, f"{maps}/parent")
    target.patch(f"{maps}/child", {"metadata": {"finalizers": None}}).ok()
    target.eventually(lambda: gone(target, f"{maps}/parent"))


def test_orphans_lose_their_owner_and_stay(target: Target, maps: str) -> None:
    parent = target.create(maps, config_map("parent")).ok()
    target.create(maps, config_map("child", ownerReferences=[owner(parent)])).ok()
    target.eventually(lambda: not gone(target, f"{maps}/child"))
    target.delete(f"{maps}/parent", propagationPolicy="Orphan").ok()
    target.eventually(lambda: gone(target, f"{maps}/parent"))
    target.eventually(lambda: "ownerReferences" not in target.get(f"{maps}/child").ok()["metadata"])


def test_one_of_two_owners_is_enough(target: Target, maps: str) -> None:
    one, two = (target.create(maps, config_map(name)).ok() for name in ("one", "two"))
    target.create(maps, config_map("child", ownerReferences=[owner(one), owner(two)])).ok()
    target.delete(f"{maps}/one").ok()
    target.eventually(lambda: len(target.get(f"{maps}/child").ok()["metadata"]["ownerReferences"]) == 1)
    target.delete(f"{maps}/two").ok()
    target.eventually(lambda: gone(target, f"{maps}/child"))


def test_an_object_of_an_owner_that_never_was_is_collected(target: Target, maps: str) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "11111111-2222-4333-8444-555555555555"}
    target.create(maps, config_map("child", ownerReferences=[reference])).ok()
    target.eventually(lambda: gone(target, f"{maps}/child"))


def test_a_namespace_goes_with_what_is_in_it(target: Target) -> None:
    name = target.namespace()
    path = f"{NAMESPACES}/{name}"
    target.create(f"{path}/configmaps", config_map("held", finalizers=[HOLD])).ok()
    target.create(f"{path}/configmaps", config_map("free")).ok()
    answer = target.delete(path).ok()
    assert (answer["status"]["phase"], answer["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    late = target.create(f"{path}/configmaps", config_map("late"))
    assert (late.status, late.reason) == (403, "Forbidden")
    assert late.causes == {("NamespaceTerminating", "metadata.namespace")}
    target.eventually(lambda: gone(target, f"{path}/configmaps/free"))
    target.eventually(lambda: "deletionTimestamp" in target.get(f"{path}/configmaps/held").ok()["metadata"])
    assert not gone(target, path)
    # The real controller looks again only after a quarter of a minute; that it goes in the end: test_kubectl.py.
    target.patch(f"{path}/configmaps/held", {"metadata": {"finalizers": None}}).ok()
    target.eventually(lambda: not target.embedded or gone(target, path))


def test_namespaces_that_cannot_go(target: Target) -> None:
    refused = target.delete(f"{NAMESPACES}/kube-system")
    assert (refused.status, refused.reason) == (403, "Forbidden")


def test_a_namespace_shows_what_it_is(target: Target, ns: str) -> None:
    seen = target.get(f"{NAMESPACES}/{ns}").ok()
    assert seen["metadata"]["labels"] == {"kubernetes.io/metadata.name": ns}
    assert (seen["spec"], seen["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert "generation" not in seen["metadata"]


@pytest.mark.parametrize(
    ("reference", "kept"),
    [
        ({"apiVersion": "unknown.example.com/v1", "kind": "Unknown"}, True),
        ({"apiVersion": "v9", "kind": "ConfigMap"}, True),
        ({"apiVersion": "v1", "kind": "Unknown"}, True),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, False),
    ],
)
def test_an_object_is_kept_while_the_kind_of_its_owner_is_unknown(
    target: Target, maps: str, reference: dict[str, str], kept: bool
) -> None:
    owner = {**reference, "name": "none", "uid": "8b3f51a3-0d6b-4a55-a7f5-1f2c0d2f4a11"}
    target.create(maps, config_map("dependant", ownerReferences=[owner])).ok()
    if kept:
        # The collector of the real server has long collected this one when it has seen the other.
        absent = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "none",
            "uid": "8b3f51a3-0d6b-4a55-a7f5-1f2c0d2f4a12",
        }
        target.create(maps, config_map("later", ownerReferences=[absent])).ok()
        target.eventually(lambda: target.get(f"{maps}/later").status == 404)
        assert target.get(f"{maps}/dependant").ok()["metadata"]["ownerReferences"] == [owner]
    else:
        target.eventually(lambda: target.get(f"{maps}/dependant").status == 404)


def test_an_unknown_owner_keeps_the_others_from_being_dropped(target: Target, maps: str) -> None:
    unknown = {"apiVersion": "unknown.example.com/v1", "kind": "Unknown", "name": "a", "uid": "u1"}
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "u2"}
    target.create(maps, config_map("dependant", ownerReferences=[unknown, absent])).ok()
    target.create(maps, config_map("later", ownerReferences=[absent])).ok()
    target.eventually(lambda: target.get(f"{maps}/later").status == 404)
    assert target.get(f"{maps}/dependant").ok()["metadata"]["ownerReferences"] == [unknown, absent]
