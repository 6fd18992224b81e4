"""Mappers and predicates as tables."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.runtime.objects import Change, ChangeType, GroupKind, Key
from fivespot.runtime.reconcile import (
    all_of,
    any_of,
    by_label,
    enqueue_self,
    generation_or_metadata_changed,
    not_written_by,
    owner_of,
)

from .fakes import make_object

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED
SHOP = GroupKind("example.com", "Shop")


def owner(name: str, kind: str = "Shop", api: str = "example.com/v1", controller: bool = False) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": controller}


def owned(*owners: dict[str, Any]) -> Any:
    return make_object("child", ownerReferences=list(owners))


def test_itself_is_the_object_that_changed() -> None:
    assert list(enqueue_self(Change(ADDED, make_object("a")))) == [Key("ns", "a")]


def test_owners_are_found_by_group_and_kind_at_whatever_version() -> None:
    change = Change(
        ADDED,
        owned(
            owner("x"),
            owner("y", api="example.com/v2beta1"),
            owner("core", api="v1"),
            owner("other", api="elsewhere.com/v1"),
            owner("z", kind="Stall"),
        ),
    )
    assert list(owner_of(SHOP)(change)) == [Key("ns", "x"), Key("ns", "y")]
    assert list(owner_of(SHOP, namespaced=False)(change)) == [Key("", "x"), Key("", "y")]
    assert list(owner_of(GroupKind("", "Shop"))(change)) == [Key("ns", "core")]


def test_only_the_controlling_owner_if_asked_for() -> None:
    change = Change(ADDED, owned(owner("x"), owner("boss", controller=True)))
    assert list(owner_of(SHOP, controller_only=True)(change)) == [Key("ns", "boss")]


def test_the_owner_before_a_change_hears_of_it_too() -> None:
    change = Change(MODIFIED, owned(owner("new"), owner("both")), owned(owner("both"), owner("old")))
    assert list(owner_of(SHOP)(change)) == [Key("ns", "new"), Key("ns", "both"), Key("ns", "old")]


def test_a_label_names_an_object_in_the_same_namespace_before_and_after() -> None:
    old = make_object("child", labels={"shop": "old"})
    new = make_object("child", labels={"shop": "new"})
    mapper = by_label("shop")
    assert list(mapper(Change(MODIFIED, new, old))) == [Key("ns", "new"), Key("ns", "old")]
    assert list(mapper(Change(MODIFIED, new, new))) == [Key("ns", "new")]
    assert list(mapper(Change(ADDED, make_object("child")))) == []
    assert list(mapper(Change(ADDED, make_object("child", labels={"shop": ""})))) == []


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({}, False),
        ({"managedFields": [{"manager": "x"}]}, False),
        ({"generation": 4}, True),
        ({"labels": {"a": "c"}}, True),
        ({"labels": {}}, True),
        ({"annotations": {"a": "b"}}, True),
        ({"finalizers": []}, True),
        ({"finalizers": ["f", "g"]}, True),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"ownerReferences": [owner("x")]}, True),
        ({"uid": "another"}, True),
    ],
)
def test_changes_of_the_status_alone_are_dropped(changed: dict[str, Any], passes: bool) -> None:
    base: dict[str, Any] = {"generation": 3, "labels": {"a": "b"}, "finalizers": ["f"]}
    old, new = make_object("a", version=1, **base), make_object("a", version=2, **(base | changed))
    assert generation_or_metadata_changed(Change(MODIFIED, new, old)) is passes


def test_what_has_no_generation_always_passes() -> None:
    """Secrets, ConfigMaps and others carry none, so nothing can be concluded from it."""
    assert generation_or_metadata_changed(Change(MODIFIED, make_object("a", version=2), make_object("a")))


@pytest.mark.parametrize("type_", [ADDED, DELETED])
def test_creation_and_deletion_always_pass(type_: ChangeType) -> None:
    obj = make_object("a", generation=1)
    assert generation_or_metadata_changed(Change(type_, obj, obj if type_ is DELETED else None))
    assert generation_or_metadata_changed(Change(MODIFIED, obj))


def test_changes_that_the_controller_wrote_are_dropped_and_those_of_all_others_pass() -> None:
    """java-operator-sdk#3448, #3491: filtering own events swallowed a concurrent change of somebody else."""
    old, new = make_object("a", version=1), make_object("a", version=2)
    mine = Change(MODIFIED, new, old, own=True, writer="mine")
    others_in_this_process = Change(MODIFIED, new, old, own=True, writer="others")
    perhaps_not_mine_alone = Change(MODIFIED, new, old, own=True)
    foreign = Change(MODIFIED, new, old)
    changes = (mine, others_in_this_process, perhaps_not_mine_alone, foreign)
    assert [not_written_by("mine")(change) for change in changes] == [False, True, True, True]


def test_predicates_combine() -> None:
    change = Change(ADDED, make_object("a"))

    def yes(_: Change) -> bool:
        return True

    def no(_: Change) -> bool:
        return False

    table = [(yes, yes, True, True), (yes, no, True, False), (no, yes, True, False), (no, no, False, False)]
    for left, right, either, both in table:
        assert any_of(left, right)(change) is either
        assert all_of(left, right)(change) is both
    assert not any_of()(change)
    assert all_of()(change)
