"""Index functions that say that nothing changed for them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fivespot.runtime.cache.index import Index
from fivespot.runtime.objects import Change, ChangeType, Key, Object

KEY = Key("ns", "web")


def obj(version: int, team: str) -> Object:
    generation = 1 if version < 10 else 2
    meta = {"namespace": "ns", "name": "web", "uid": "u", "resourceVersion": str(version), "generation": generation}
    return Object.parse(json.dumps({"metadata": meta | {"labels": {"t": team}}}).encode())


class ByTeam:
    """Looks again only if the generation changed."""

    def __init__(self) -> None:
        self.looked = 0

    def __call__(self, change: Change) -> Iterable[str] | None:
        if change.old is not None and change.old.head.generation == change.head.generation:
            return None
        self.looked += 1
        return [change.head.labels["t"]]


def test_values_stay_when_the_function_says_that_they_are_those_of_before() -> None:
    by_team = ByTeam()
    index = Index("team", by_team, lambda what, error: None)
    first, second, third = obj(1, "red"), obj(2, "blue"), obj(10, "blue")
    index.put(KEY, Change(ChangeType.ADDED, first))
    index.put(KEY, Change(ChangeType.MODIFIED, second, first))
    assert (index.keys("red", {}), index.keys("blue", {}), by_team.looked) == ([KEY], [], 1)
    index.put(KEY, Change(ChangeType.MODIFIED, third, second))
    assert (index.keys("red", {}), index.keys("blue", {}), by_team.looked) == ([], [KEY], 2)


def test_an_index_that_is_still_being_filled_looks_at_what_it_never_saw() -> None:
    by_team = ByTeam()
    first, second = obj(1, "red"), obj(2, "blue")
    index = Index("team", by_team, lambda what, error: None, todo=[KEY])
    index.put(KEY, Change(ChangeType.MODIFIED, second, first))
    assert index.keys("blue", {KEY: second}) == [KEY]
    assert by_team.looked == 1
