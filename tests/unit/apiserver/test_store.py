"""The history of the object store."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from fivespot.apiserver.store import Collection, Entry


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from(["a/x", "a/y", "b/x", "a-b/x"])), max_size=30)
)
def test_every_state_of_the_window_can_be_seen_again(steps: list[tuple[str, str]]) -> None:
    collection = Collection(window=1000)
    states: list[list[tuple[str, int]]] = [[]]
    for version, (step, key) in enumerate(steps, 1):
        if step == "put":
            collection.put(Entry(key, "u", version, b"", {}, (), False, {}, 0))
        elif key in collection.entries:
            collection.remove(key, version)
        states.append(sorted((entry.key, entry.version) for entry in collection.entries.values()))
    for version, state in enumerate(states):
        seen = collection.snapshot_at(version, "")
        assert seen is not None
        assert [(entry.key, entry.version) for entry in seen] == state
        inside = collection.snapshot_at(version, "a")
        assert inside is not None
        assert [entry.key for entry in inside] == [key for key, _ in state if key.startswith("a/")]


def test_a_forgotten_state_is_none() -> None:
    collection = Collection(window=4)
    for version in range(1, 20):
        collection.put(Entry(f"k{version}", "u", version, b"", {}, (), False, {}, 0))
    assert collection.snapshot_at(3, "") is None
    assert collection.floor >= 10
    assert collection.events(0, 5) is None
