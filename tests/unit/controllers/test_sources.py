"""Which changes ask for a run."""

from __future__ import annotations

import json

import pytest

from fivespot.controllers.scheduledmachine.sources import child_changed, kept_part_changed, schedule_changed
from fivespot.runtime.objects import Change, ChangeType, Object

KEPT = {"status": {"active": True}}


def stored(version: int, **more: object) -> Object:
    metadata = {"name": "hours", "namespace": "prod", "uid": "u", "resourceVersion": str(version), "generation": 1}
    return Object.parse(json.dumps({"metadata": metadata, **more}).encode())


def changed(*, own: bool, type_: ChangeType = ChangeType.MODIFIED) -> Change:
    new = stored(2, status={"active": False})
    old = stored(1, status={"active": True})
    return Change(type_, new, None if type_ is ChangeType.ADDED else old, own=own)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("type_", list(ChangeType))
def test_a12_a_verdict_asks_for_a_run_also_when_a_provider_of_this_process_wrote_it(
    own: bool, type_: ChangeType
) -> None:
    assert schedule_changed(changed(own=own, type_=type_))


@pytest.mark.parametrize("type_", list(ChangeType))
def test_b5_2_what_a_run_wrote_itself_asks_for_no_other_run(type_: ChangeType) -> None:
    gone = type_ is ChangeType.DELETED
    assert kept_part_changed(changed(own=True, type_=type_)) is gone
    assert child_changed(changed(own=True, type_=type_)) is gone
    assert kept_part_changed(changed(own=False, type_=type_))


def test_b4_6_the_same_again_asks_for_no_run() -> None:
    same = Change(ChangeType.MODIFIED, stored(1, **KEPT), stored(1, **KEPT), own=False)
    assert not schedule_changed(same)
    assert not kept_part_changed(same)
