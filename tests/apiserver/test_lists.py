"""LIST: selectors, pages, versions."""

from __future__ import annotations

from typing import Any

import pytest

from support.targets import NAMESPACES, Target, config_map


def names(body: Any) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


@pytest.fixture
def seven(target: Target, maps: str) -> str:
    """Seven ConfigMaps c0 ... c6, labelled by parity; c6 by nothing."""
    for number in range(7):
        labels = {"odd": str(number % 2), "n": str(number)} if number < 6 else {}
        target.create(maps, config_map(f"c{number}", {"n": str(number)}, labels=labels)).ok()
    return maps


def test_a_list_has_items_in_order_and_a_version(target: Target, seven: str, ns: str) -> None:
    body = target.get(seven).ok()
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert names(body) == [f"c{number}" for number in range(7)]
    assert int(body["metadata"]["resourceVersion"]) >= max(int(i["metadata"]["resourceVersion"]) for i in body["items"])
    # Items of typed lists come without their type.
    assert all("kind" not in item for item in body["items"])
    everywhere = target.get("/api/v1/configmaps", query={"fieldSelector": f"metadata.namespace={ns}"}).ok()
    assert names(everywhere) == names(body)
    assert target.get(f"{NAMESPACES}/nowhere/configmaps").ok()["items"] == []


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("odd=1", [1, 3, 5]),
        ("odd==0", [0, 2, 4]),
        ("odd!=1", [0, 2, 4, 6]),
        ("odd", [0, 1, 2, 3, 4, 5]),
        ("!odd", [6]),
        ("n in (1,2, 9)", [1, 2]),
        ("n notin (1,2)", [0, 3, 4, 5, 6]),
        ("n>3", [4, 5]),
        ("n<2", [0, 1]),
        ("odd=1,n in (3,4)", [3]),
        ("odd=", []),
        ("", [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_label_selectors(target: Target, seven: str, selector: str, numbers: list[int]) -> None:
    body = target.get(seven, query={"labelSelector": selector}).ok()
    assert names(body) == [f"c{number}" for number in numbers]


@pytest.mark.parametrize("selector", ["((", "n>bad", "n in 1", "n in (1", ",", "a b", "-bad=1", "a=-bad-"])
def test_label_selectors_that_make_no_sense(target: Target, maps: str, selector: str) -> None:
    refused = target.get(maps, query={"labelSelector": selector})
    assert (refused.status, refused.reason) == (400, "BadRequest")


def test_field_selectors(target: Target, seven: str) -> None:
    def select(text: str) -> list[str]:
        return names(target.get(seven, query={"fieldSelector": text}).ok())

    assert select("metadata.name=c4") == ["c4"]
    assert select("metadata.name!=c4") == ["c0", "c1", "c2", "c3", "c5", "c6"]
    assert select("metadata.name=c4,metadata.name=c5") == []
    for bad in ("data.n=1", "(("):
        refused = target.get(seven, query={"fieldSelector": bad})
        assert (refused.status, refused.reason) == (400, "BadRequest")


def test_pages_show_one_state_whatever_happens_between_them(target: Target, seven: str) -> None:
    first = target.get(seven, query={"limit": "3"}).ok()
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["c0", "c1", "c2"], 4)
    target.delete(f"{seven}/c3")
    target.patch(f"{seven}/c4", {"data": {"n": "changed"}}).ok()
    target.create(seven, config_map("c3a")).ok()
    second = target.get(seven, query={"limit": "3", "continue": first["metadata"]["continue"]}).ok()
    assert names(second) == ["c3", "c4", "c5"]
    assert second["items"][1]["data"] == {"n": "4"}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = target.get(seven, query={"limit": "3", "continue": second["metadata"]["continue"]}).ok()
    assert (names(third), "continue" in third["metadata"]) == (["c6"], False)


def test_pages_of_a_selection_do_not_count_what_remains(target: Target, seven: str) -> None:
    first = target.get(seven, query={"limit": "2", "labelSelector": "odd=1"}).ok()
    assert (names(first), "remainingItemCount" in first["metadata"]) == (["c1", "c3"], False)
    query = {"limit": "2", "labelSelector": "odd=1", "continue": first["metadata"]["continue"]}
    assert names(target.get(seven, query=query).ok()) == ["c5"]


def test_tokens_that_are_none(target: Target, seven: str) -> None:
    first = target.get(seven, query={"limit": "3"}).ok()
    token = first["metadata"]["continue"]
    assert target.get(seven, query={"continue": "nonsense"}).status == 400
    assert target.get(seven, query={"limit": "3", "continue": token, "resourceVersion": "5"}).status == 400


def test_versions(target: Target, seven: str) -> None:
    version = target.get(seven).ok()["metadata"]["resourceVersion"]
    target.create(seven, config_map("later")).ok()
    exact = target.get(seven, query={"resourceVersion": version, "resourceVersionMatch": "Exact"}).ok()
    assert ("later" in names(exact), exact["metadata"]["resourceVersion"]) == (False, version)
    newer = target.get(seven, query={"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}).ok()
    assert int(newer["metadata"]["resourceVersion"]) >= int(version)
    assert target.get(seven, query={"resourceVersion": "0"}).status == 200
    future = target.get(seven, query={"resourceVersion": str(int(version) + 10**9)})
    assert (future.status, future.reason) == (504, "Timeout")
    assert future.causes == {("ResourceVersionTooLarge", "")}
    assert future.body["details"]["retryAfterSeconds"] == 1


@pytest.mark.parametrize(
    ("query", "status", "causes"),
    [
        ({"limit": "abc"}, 400, set()),
        ({"resourceVersion": "abc"}, 400, set()),
        ({"resourceVersionMatch": "Exact"}, 422, {("FieldValueForbidden", "resourceVersionMatch")}),
        (
            {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
            422,
            {("FieldValueForbidden", "resourceVersionMatch")},
        ),
        (
            {"resourceVersion": "1", "resourceVersionMatch": "Foo"},
            422,
            {("FieldValueNotSupported", "resourceVersionMatch")},
        ),
        ({"sendInitialEvents": "true"}, 422, {("FieldValueForbidden", "sendInitialEvents")}),
        ({"limit": "-1"}, 200, set()),
        ({"watch": "0"}, 200, set()),
    ],
)
def test_parameters(
    target: Target, maps: str, query: dict[str, str], status: int, causes: set[tuple[str, str]]
) -> None:
    answer = target.get(maps, query=query)
    assert answer.status == status
    if status == 422:
        assert answer.causes == causes


def test_a_collection_is_deleted_by_selector(target: Target, seven: str) -> None:
    gone = target.request("DELETE", seven, query={"labelSelector": "odd=1"}).ok()
    assert (gone["kind"], sorted(names(gone))) == ("ConfigMapList", ["c1", "c3", "c5"])
    assert names(target.get(seven).ok()) == ["c0", "c2", "c4", "c6"]
    target.request("DELETE", seven).ok()
    assert target.get(seven).ok()["items"] == []
