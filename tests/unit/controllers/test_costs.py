"""B5.2: what is not written, so that a flip costs no more than it must."""

from __future__ import annotations

import pytest

from fivespot.contract import Reading
from fivespot.runtime.objects import merge_diff
from unit.controllers.build import (
    BOOTSTRAP,
    DOWN,
    INFRASTRUCTURE,
    UP,
    adopted,
    at,
    judged,
    machine,
    machine_ref,
    memory,
    ref,
    snapshot,
    status,
)

REFERENCES = ("bootstrapRef", "infrastructureRef")


@pytest.mark.parametrize("reading", [UP, DOWN], ids=["up", "down"])
def test_b5_2_what_cluster_api_deletes_with_its_machine_costs_no_write(reading: Reading) -> None:
    begun = memory(machineRef=machine_ref(), shutdownRequestedTime=at(minutes=1))
    going = snapshot(reading, machine=machine(deleting=True), memory=begun)
    _, written = judged(going)
    assert set(REFERENCES) <= set(written)
    for left in (adopted()[:1], adopted()[1:], ()):
        later = snapshot(reading, machine=machine(deleting=True), children=left, memory=memory(written))
        assert merge_diff(written, judged(later)[1]) == {}


def test_b4_5_the_references_go_with_the_machine() -> None:
    refs = {"bootstrapRef": ref(BOOTSTRAP), "infrastructureRef": ref(INFRASTRUCTURE)}
    stored = memory({**status(machineRef=machine_ref(), shutdownRequestedTime=at(minutes=1)), **refs})
    _, written = judged(snapshot(DOWN, memory=stored))
    assert not set(REFERENCES) & set(written)
    alive = snapshot(UP, machine=machine(), children=adopted()[:1], memory=stored)
    assert set(judged(alive)[1]) & set(REFERENCES) == {"bootstrapRef"}, "a machine that stays may lose one too"
