"""The store against the rules of reading our own writes, one by one and all at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fivespot.runtime.cache.store import Store, Swap
from fivespot.runtime.objects import Change, ChangeType, Key, Object, Write, decode_head

from .fakes import Recorder


def obj(name: str, version: int, uid: str = "u1", **labels: str) -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return Object.parse(msgspec.json.encode({"metadata": metadata}))


def key(name: str) -> Key:
    return Key("ns", name)


def quiet(what: str, error: Exception) -> None:
    raise AssertionError(what) from error


class Fixture:
    """A store with a recorder that is told what the store answers."""

    def __init__(self) -> None:
        self.store = Store(quiet)
        self.seen = Recorder()

    def tell(self, changes: Iterable[Change]) -> list[str]:
        start = len(self.seen.told)
        for change in changes:
            self.seen(change)
        return self.seen.lines[start:]

    def event(self, state: Object) -> list[str]:
        admitted = self.store.admit(state.head)
        return self.tell(self.store.put(admitted, state)) if admitted else []

    def listed(self, version: int, *states: Object) -> list[str]:
        staging = self.store.begin()
        for state in states:
            if not staging.reuse(state.head):
                staging.put(state.key, state)
        return self.tell(change for changes in self.store.commit(version) for change in changes)


@pytest.fixture
def f() -> Fixture:
    fixture = Fixture()
    fixture.listed(10, obj("a", 5))
    return fixture


def test_events_add_modify_and_delete(f: Fixture) -> None:
    assert f.event(obj("b", 11, "u2")) == ["ADDED b"]
    assert f.event(obj("b", 12, "u2")) == ["MODIFIED b"]
    assert f.tell(f.store.remove(obj("b", 13, "u2"))) == ["DELETED b"]
    assert f.store.version == 13
    assert f.store.get(key("b")) is None


def test_versions_are_compared_as_numbers(f: Fixture) -> None:
    """fabric8io/kubernetes-client#1214: "9" is not newer than "10"."""
    assert f.event(obj("a", 9)) == ["MODIFIED a"]
    assert f.event(obj("a", 10)) == ["MODIFIED a"]
    assert f.event(obj("a", 100)) == ["MODIFIED a"]
    assert f.event(obj("a", 99)) == []


def test_an_event_told_twice_or_older_is_ignored(f: Fixture) -> None:
    """kubernetes#73845: a store never goes back in time."""
    f.event(obj("a", 12))
    assert f.event(obj("a", 12)) == []
    assert f.event(obj("a", 11)) == []
    held = f.store.get(key("a"))
    assert held
    assert held.head.version == 12


def test_an_older_state_told_again_after_the_deletion_does_not_bring_the_object_back(f: Fixture) -> None:
    f.tell(f.store.remove(obj("a", 12)))
    assert f.event(obj("a", 5)) == []
    assert f.event(obj("a", 11)) == []
    assert f.event(obj("a", 13, "u2")) == ["ADDED a"]


def test_a_missed_recreation_is_a_deletion_and_an_addition(f: Fixture) -> None:
    assert f.event(obj("a", 12, "u2")) == ["DELETED a unknown", "ADDED a"]


def test_a_deletion_of_an_earlier_bearer_of_the_name_is_ignored(f: Fixture) -> None:
    f.event(obj("a", 20, "u2"))
    assert f.tell(f.store.remove(obj("a", 15, "u1"))) == []


def test_a_deletion_of_a_later_bearer_of_the_name_takes_the_known_one_with_it(f: Fixture) -> None:
    assert f.tell(f.store.remove(obj("a", 15, "u9"))) == ["DELETED a unknown"]


def test_a_relist_tells_of_missed_deletions_with_the_last_known_object(f: Fixture) -> None:
    """projectcalico/calico#12741: the same type as any deletion, so nobody can forget a second case."""
    assert f.listed(20, obj("b", 15, "u2")) == ["DELETED a unknown", "ADDED b"]
    assert f.seen.told[-2].object.head.version == 5


def test_a_relist_without_changes_tells_nothing_and_keeps_the_very_objects(f: Fixture) -> None:
    before = f.store.get(key("a"))
    assert f.listed(30, obj("a", 5)) == []
    assert f.store.get(key("a")) is before


def test_a_relist_that_reveals_a_recreation(f: Fixture) -> None:
    assert f.listed(30, obj("a", 20, "u2")) == ["DELETED a unknown", "ADDED a"]


def test_nothing_of_a_list_shows_before_it_is_complete(f: Fixture) -> None:
    staging = f.store.begin()
    staging.put(key("b"), obj("b", 12, "u2"))
    assert f.store.get(key("b")) is None
    f.store.abandon()
    assert len(f.store) == 1


def test_an_own_write_enters_at_once_and_its_echo_is_silent(f: Fixture) -> None:
    assert f.tell(f.store.wrote(obj("a", 11), selected=True)) == ["MODIFIED a own"]
    assert f.tell(f.store.wrote(obj("b", 12, "u2"), selected=True)) == ["ADDED b own"]
    assert f.event(obj("a", 11)) == []
    assert f.event(obj("b", 12, "u2")) == []


def test_a_foreign_write_between_two_of_ours_is_seen(f: Fixture) -> None:
    """java-operator-sdk#3448: no filter of own events swallows the change of another."""
    f.tell(f.store.wrote(obj("a", 11), selected=True))
    assert f.event(obj("a", 11)) == []
    assert f.event(obj("a", 12)) == ["MODIFIED a"]


def test_an_own_write_of_what_the_watch_already_saw_deleted_does_not_enter(f: Fixture) -> None:
    f.event(obj("b", 11, "u2"))
    f.tell(f.store.remove(obj("b", 13, "u2")))
    assert f.tell(f.store.wrote(obj("b", 12, "u2"), selected=True)) == []


def test_an_own_creation_that_never_shows_up_goes_with_the_next_list(f: Fixture) -> None:
    """openkruise/kruise#1785: created by us and deleted by another while the watch was down."""
    f.tell(f.store.wrote(obj("b", 12, "u2"), selected=True))
    assert f.listed(20, obj("a", 5)) == ["DELETED b unknown"]


def test_a_list_older_than_an_own_write_does_not_undo_it(f: Fixture) -> None:
    f.tell(f.store.wrote(obj("b", 22, "u2"), selected=True))
    f.tell(f.store.wrote(obj("a", 23), selected=True))
    assert f.listed(20, obj("a", 5)) == []
    assert len(f.store) == 2


def test_an_own_deletion_hides_the_object_until_the_watch_confirms_it(f: Fixture) -> None:
    assert f.tell(f.store.removed(key("a"), "u1")) == ["DELETED a own"]
    assert f.event(obj("a", 11)) == []
    assert f.tell(f.store.remove(obj("a", 12))) == []
    assert f.event(obj("a", 13, "u2")) == ["ADDED a"]


def test_an_own_deletion_that_bookmarks_do_not_confirm_needs_a_list(f: Fixture) -> None:
    f.tell(f.store.removed(key("a"), "u1"))
    assert f.store.reach(11), "it may have been on its way"
    assert not f.store.reach(12)
    assert f.listed(13, obj("a", 5)) == ["ADDED a"]
    assert f.store.reach(14)


def test_a_confirmed_own_deletion_needs_no_list(f: Fixture) -> None:
    f.tell(f.store.removed(key("a"), "u1"))
    f.tell(f.store.remove(obj("a", 12)))
    assert f.store.reach(13)
    assert f.store.reach(14)


def test_another_object_may_take_the_name_of_a_deleted_one_at_once(f: Fixture) -> None:
    f.tell(f.store.removed(key("a"), "u1"))
    assert f.tell(f.store.wrote(obj("a", 14, "u2"), selected=True)) == ["ADDED a own"]
    assert f.event(obj("a", 11, "u1")) == []
    assert f.tell(f.store.remove(obj("a", 12, "u1"))) == []
    assert f.event(obj("a", 14, "u2")) == []


def test_a_list_begun_before_an_own_deletion_does_not_bring_the_object_back(f: Fixture) -> None:
    staging = f.store.begin()
    staging.reuse(obj("a", 5).head)
    f.tell(f.store.removed(key("a"), "u1"))
    assert f.tell(change for changes in f.store.commit(12) for change in changes) == []
    assert len(f.store) == 0
    assert f.tell(f.store.remove(obj("a", 13))) == []
    assert f.event(obj("a", 14, "u2")) == ["ADDED a"]


def test_an_own_deletion_during_the_very_first_list_is_not_undone() -> None:
    f = Fixture()
    staging = f.store.begin()
    staging.put(key("a"), obj("a", 5))
    f.tell(f.store.removed(key("a"), "u1"))
    assert f.tell(change for changes in f.store.commit(12) for change in changes) == []
    assert len(f.store) == 0


def test_an_own_write_that_leaves_the_selector_removes_the_object(f: Fixture) -> None:
    assert f.tell(f.store.wrote(obj("a", 15), selected=False)) == ["DELETED a own"]
    assert f.event(obj("a", 12)) == [], "the watch is behind our write"
    assert f.tell(f.store.remove(obj("a", 15))) == []
    assert f.event(obj("a", 16)) == ["ADDED a"]


@pytest.mark.parametrize(
    ("write", "writer"),
    [
        (Write("me", demanded=5), "me"),
        (Write("", demanded=5), ""),
        (Write("me"), ""),
        (Write("me", demanded=6), ""),
        (Write("me", demanded=0), ""),
    ],
)
def test_a_write_bears_its_writer_only_if_nothing_else_can_hide_in_its_answer(
    f: Fixture, write: Write, writer: str
) -> None:
    """Version 6 may have been somebody else's: a write that did not demand version 5 brings both."""
    (change,) = f.store.wrote(obj("a", 7), write)
    assert (change.own, change.writer) == (True, writer)


def test_creations_and_deletions_bear_their_writer(f: Fixture) -> None:
    (created,) = f.store.wrote(obj("b", 11, "u2"), Write("me", demanded=0))
    (emptied,) = f.store.wrote(obj("b", 12, "u2"), Write("me", demanded=11), selected=False)
    (removed,) = f.store.removed(key("a"), "u1", Write("me", demanded=5))
    assert [change.writer for change in (created, emptied, removed)] == ["me"] * 3
    assert [change.type for change in (created, emptied, removed)] == [
        ChangeType.ADDED,
        ChangeType.DELETED,
        ChangeType.DELETED,
    ]


def test_the_watch_has_no_writer(f: Fixture) -> None:
    admitted = f.store.admit(obj("a", 11).head)
    assert admitted
    (change,) = f.store.put(admitted, obj("a", 11))
    assert (change.own, change.writer) == (False, "")


def test_a_rewritten_history_is_taken_as_it_is(f: Fixture) -> None:
    f.event(obj("a", 50))
    f.tell(f.store.wrote(obj("b", 60, "u2"), selected=True))
    staging = f.store.begin()
    staging.put(key("a"), obj("a", 7, "u0"))
    f.tell(change for changes in f.store.commit(20) for change in changes)
    assert f.store.version == 20
    assert [state.head.version for state in f.store.list()] == [7]


def test_a_list_that_shows_an_older_state_than_the_watch_did_is_not_believed(f: Fixture) -> None:
    f.event(obj("a", 12))
    assert f.listed(20, obj("a", 11)) == []


def test_an_index_may_be_added_at_any_time_and_is_always_complete(f: Fixture) -> None:
    """controller-runtime#3445: before the sync, during a list, after it."""

    def by_color(change: Change) -> list[str]:
        return [change.head.labels["color"]] if "color" in change.head.labels else []

    f.event(obj("b", 11, "u2", color="red"))
    f.store.add_index("early", by_color)
    staging = f.store.begin()
    staging.reuse(obj("b", 11, "u2").head)
    f.store.add_index("during", by_color)
    staging.put(key("c"), obj("c", 12, "u3", color="red"))
    assert f.store.keys_by_index("during", "red") == [key("b")]
    f.tell(change for changes in f.store.commit(20) for change in changes)
    f.store.add_index("late", by_color)
    for name in ("early", "during", "late"):
        assert set(f.store.keys_by_index(name, "red")) == {key("b"), key("c")}
    f.event(obj("c", 21, "u3", color="blue"))
    f.tell(f.store.removed(key("b"), "u2"))
    for name in ("early", "during", "late"):
        assert f.store.keys_by_index(name, "red") == []
        assert [state.key for state in f.store.by_index(name, "blue")] == [key("c")]
    with pytest.raises(ValueError, match="another function"):
        f.store.add_index("late", lambda change: [])


def test_an_index_function_that_raises_leaves_the_object_without_values() -> None:
    faults: list[str] = []
    store = Store(lambda what, error: faults.append(what))
    store.add_index("bad", lambda change: [change.head.labels["missing"]])
    store.begin().put(key("a"), obj("a", 1))
    store.commit(2)
    assert store.keys_by_index("bad", "x") == []
    assert faults == ["index bad"]


def test_lists_by_namespace() -> None:
    f = Fixture()
    assert f.store.list("ns") == []
    f.listed(10, obj("a", 5), obj("b", 6, "u2"))
    assert [state.key.name for state in f.store.list("ns")] == ["a", "b"]
    assert f.store.list("other") == []


def test_churn_leaves_nothing_behind(f: Fixture) -> None:
    """kube-rs#1836: memory of names that are gone must go too."""
    f.store.add_index("uid", lambda change: [change.head.uid])
    version = 20
    for number in range(200):
        name, uid = f"generated-{number}", f"g{number}"
        version += 2
        f.tell(f.store.wrote(obj(name, version, uid), selected=True))
        f.event(obj(name, version, uid))
        f.tell(f.store.removed(key(name), uid))
        f.tell(f.store.remove(obj(name, version + 1, uid)))
    assert len(f.store) == 1
    assert not f.store._hidden
    assert not f.store._own
    assert f.store.keys_by_index("uid", "u1") == [key("a")]
    assert len(f.store._indexes["uid"]._values) == 1
    assert len(f.store._indexes["uid"]._keys) == 1


NAMES = st.sampled_from(["a", "b", "c"])


class StoreModel(RuleBasedStateMachine):
    """A server with a history, a watch that lags, answers that are late, lists at any moment.

    Whatever the order: what handlers were told is what the store holds, nothing that we deleted is ever read again,
    what we wrote is readable as soon as we are told, and in the end the store is what the server is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(quiet)
        self.seen = Recorder()
        self.revision = 10
        self.uids = 0
        self.server: dict[Key, Object] = {}
        self.history: list[tuple[int, str, Object]] = []
        self.position = 0
        self.answers: list[tuple[str, Any]] = []
        self.gone: set[str] = set()
        self.pages: list[Object] | None = None
        self.listed_at: int | None = None
        self.swap: Swap | None = None
        self.telling: Any = None

    # The server

    def change(self, name: str, selected: bool) -> Object:
        before = self.server.get(key(name))
        self.revision += 1
        if before is None:
            self.uids += 1
        uid = before.head.uid if before else f"u{self.uids}"
        after = obj(name, self.revision, uid, **({"on": "yes"} if selected else {}))
        was = before is not None and "on" in before.head.labels
        self.server[key(name)] = after
        if selected:
            self.history.append((self.revision, "MODIFIED" if was else "ADDED", after))
        elif was:
            assert before
            self.history.append((self.revision, "LEFT", obj(name, self.revision, uid, on="yes")))
        return after

    def delete(self, name: str) -> str | None:
        before = self.server.pop(key(name), None)
        if before is None:
            return None
        self.revision += 1
        if "on" in before.head.labels:
            last = obj(name, self.revision, before.head.uid, on="yes")
            self.history.append((self.revision, "DELETED", last))
        return before.head.uid

    # Us

    def tell(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.seen(change)

    def settle(self, about: Key) -> None:
        if self.swap is not None:
            self.tell(self.swap.settle(about))

    def answer(self, index: int) -> None:
        what, value = self.answers.pop(index)
        if what == "wrote":
            self.settle(value.key)
            self.tell(self.store.wrote(value, selected="on" in value.head.labels))
            held = self.store.get(value.key)
            if held is not None and held.head.uid == value.head.uid:
                assert held.head.version >= value.head.version or "on" not in value.head.labels
            elif "on" in value.head.labels and self.server.get(value.key) is value:
                raise AssertionError(f"our own write {value} is the present state and cannot be read")
        else:
            about, uid = value
            self.settle(about)
            held = self.store.get(about)
            self.tell(self.store.removed(about, uid))
            if held is not None and held.head.uid == uid:
                self.gone.add(uid)

    @initialize()
    def first_list(self) -> None:
        self.store.add_index("version", lambda change: [str(change.head.version % 3)])
        self.start_list()
        self.snapshot()

    @rule(name=NAMES, selected=st.booleans())
    def foreign_write(self, name: str, selected: bool) -> None:
        self.change(name, selected)

    @rule(name=NAMES)
    def foreign_delete(self, name: str) -> None:
        self.delete(name)

    @rule(name=NAMES, selected=st.booleans(), late=st.booleans())
    def own_write(self, name: str, selected: bool, late: bool) -> None:
        self.answers.append(("wrote", self.change(name, selected)))
        if not late:
            self.answer(len(self.answers) - 1)

    @rule(name=NAMES, late=st.booleans())
    def own_delete(self, name: str, late: bool) -> None:
        uid = self.delete(name)
        if uid is not None:
            self.answers.append(("removed", (key(name), uid)))
            if not late:
                self.answer(len(self.answers) - 1)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def late_answer(self, data: st.DataObject) -> None:
        self.answer(data.draw(st.integers(0, len(self.answers) - 1)))

    @precondition(lambda self: self.watching and self.position < len(self.history))
    @rule()
    def event(self) -> None:
        _, kind, state = self.history[self.position]
        self.position += 1
        if kind in {"DELETED", "LEFT"}:
            self.tell(self.store.remove(state))
            if kind == "LEFT":
                # On the wire it looks like the end of the object, so what comes after it may show once more.
                self.gone.discard(state.head.uid)
        else:
            admitted = self.store.admit(state.head)
            if admitted is not None:
                self.tell(self.store.put(admitted, state))

    @precondition(lambda self: self.watching and self.position == len(self.history))
    @rule()
    def bookmark(self) -> None:
        assert self.store.reach(self.revision), "the watch has brought every deletion"

    @precondition(lambda self: self.watching)
    @rule()
    def start_list(self) -> None:
        self.store.begin()
        self.pages, self.listed_at = [], None

    @precondition(lambda self: self.pages is not None and self.listed_at is None)
    @rule()
    def snapshot(self) -> None:
        self.listed_at = self.revision
        self.pages = [state for state in self.server.values() if "on" in state.head.labels]

    @precondition(lambda self: self.listed_at is not None and self.pages)
    @rule()
    def page(self) -> None:
        assert self.pages
        state = self.pages.pop()
        if not self.store.staging.reuse(state.head):
            self.store.staging.put(state.key, state)

    @precondition(lambda self: self.pages is not None)
    @rule()
    def list_breaks(self) -> None:
        self.store.abandon()
        self.start_list()

    @precondition(lambda self: self.listed_at is not None and not self.pages)
    @rule()
    def commit(self) -> None:
        assert self.listed_at is not None
        self.swap = self.store.commit(self.listed_at)
        self.telling = iter(self.swap)
        self.position = next(
            (at for at, (version, _, _) in enumerate(self.history) if version > self.listed_at), len(self.history)
        )
        self.pages = self.listed_at = None

    @precondition(lambda self: self.swap is not None)
    @rule()
    def tell_some(self) -> None:
        changes = next(self.telling, None)
        if changes is None:
            self.swap = self.telling = None
        else:
            self.tell(changes)

    @property
    def watching(self) -> bool:
        return self.pages is None and self.swap is None

    @invariant()
    def told_is_held(self) -> None:
        if self.swap is None:
            assert self.seen.mirror == dict(self.store.objects)

    @invariant()
    def nothing_we_deleted_is_read(self) -> None:
        assert not self.gone & {state.head.uid for state in self.store.list()}

    @invariant()
    def the_index_agrees(self) -> None:
        for value in ("0", "1", "2"):
            expected = {state.key for state in self.store.list() if str(state.head.version % 3) == value}
            assert set(self.store.keys_by_index("version", value)) == expected if self.store._indexes else True

    def teardown(self) -> None:
        while self.answers:
            self.answer(0)
        if self.pages is not None:
            if self.listed_at is None:
                self.snapshot()
            while self.pages:
                self.page()
            self.commit()
        while self.swap is not None:
            self.tell_some()
        while self.position < len(self.history):
            self.event()
        self.bookmark()
        self.told_is_held()
        expected = {about: state.head for about, state in self.server.items() if "on" in state.head.labels}
        assert {about: state.head for about, state in self.store.objects.items()} == expected
        assert not self.store._own
        assert not self.store._hidden


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(max_examples=60, stateful_step_count=40)


def test_changes_carry_old_and_new_and_share_one_decoded_body(f: Fixture) -> None:
    f.event(obj("a", 11, color="red"))
    change = f.seen.told[-1]
    assert change.type is ChangeType.MODIFIED
    assert change.old
    assert change.old.head.version == 5
    assert change.body is change.body
    assert decode_head(change.object.raw) == change.head
