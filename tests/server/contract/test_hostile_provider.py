"""A13: what a compromised provider can do, and to whom."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from controlplane import Api, ControlPlane
from harness import ManagerProcess
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.measurements import calm, resident_bytes, total, writes
from support.scenario import Scenario

MEBIBYTE = 1 << 20
MARK = "\u0416"
"""A letter of two bytes that no text of ours holds, so that what was copied can be counted."""
LETTERS = 9 * MEBIBYTE // 20
"""As many of them as a request may hold, in which each is written as six characters."""

NO_VERDICT: dict[str, dict[str, Any]] = {
    "text": {"active": "true"},
    "number": {"active": 1},
    "null": {"active": None},
    "object": {"active": {"active": True}},
    "list": {"active": [True]},
    "huge number": {"active": 10**300},
}

NOT_READY: dict[str, Any] = {
    "text": "Ready",
    "number": 5,
    "boolean": True,
    "object": {"type": "Ready", "status": "True"},
    "two that disagree": [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}],
    "two that disagree, the bad one first": [{"type": "Ready", "status": "False"}, {"type": "Ready", "status": "True"}],
    "a status that is none": [{"type": "Ready", "status": {"status": "True"}}],
    "control characters": [{"type": "Ready", "status": "T\x00rue\x1b[31m", "message": "\x07\x1b[2J"}],
}

HARMLESS: dict[str, dict[str, Any]] = {
    "no conditions": {"conditions": None},
    "an empty list": {"conditions": []},
    "entries that are none": {"conditions": [5, "Ready", None, [], {}, {"type": 3}, {"status": "False"}]},
    "a generation that is none": {"observedGeneration": "many"},
    "a negative generation": {"observedGeneration": -1},
    "a generation without bounds": {"observedGeneration": 10**30},
    "an instant that is none": {"lastTransitionTime": 12},
    "an instant in words": {"lastTransitionTime": "yesterday"},
    "the same entry twice": {"conditions": [{"type": "Ready", "status": "True"}] * 2},
    "fields of nobody": {"phase": {"a": [1] * 100}, "replicas": "x", "": ""},
}


@pytest.mark.contract("A13")
def test_garbage_in_active_or_ready_is_unresolved_and_elsewhere_ignored(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    machine = scenario.machine()["metadata"]["uid"]

    def recover() -> None:
        # A merge patch: each field is put back or taken away.
        scenario.provider.status(scenario.namespace, active=True, conditions=None, observedGeneration=None)
        scenario.wait_condition("SpotScheduleResolved", "True", "Resolved")

    for garbage in NO_VERDICT.values():
        scenario.provider.status(scenario.namespace, **garbage)
        scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
        recover()
    for conditions in NOT_READY.values():
        scenario.provider.status(scenario.namespace, active=False, conditions=conditions)
        told = scenario.wait_condition("SpotScheduleResolved", "False", "ProviderNotReady")
        assert told["message"].isprintable(), told
        recover()
    for name, status in HARMLESS.items():
        scenario.provider.status(scenario.namespace, **status)
        # Another verdict with it: that it is followed shows that the rest was ignored.
        scenario.active(False)
        eventually(lambda: scenario.status["inSchedule"] is False, what=f"inactive in spite of {name}")
        assert scenario.condition("SpotScheduleResolved")["reason"] == "Resolved"
        scenario.active(True)
        eventually(lambda: scenario.status["inSchedule"] is True, what=f"active in spite of {name}")
    scenario.wait_made()
    assert scenario.machine()["metadata"]["uid"] != machine
    assert manager.exit_code is None


@pytest.mark.contract("A13")
@pytest.mark.parametrize("status", ["garbage", [1, 2], 7, {}], ids=["text", "list", "number", "empty"])
def test_a_status_that_is_no_object_is_a_missing_verdict(scenario: Scenario, status: Any) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    provider = scenario.provider
    plural = provider.definition["spec"]["names"]["plural"]
    path = f"/apis/{provider.api_version}/namespaces/{scenario.namespace}/{plural}/hours/status"
    operation = [{"op": "replace", "path": "/status", "value": status}]
    scenario.api.request("PATCH", path, operation, content_type="application/json-patch+json")
    scenario.wait_condition("SpotScheduleResolved", "False", "StatusActiveMissing")
    assert "deletionTimestamp" not in scenario.machine()["metadata"]
    operation = [{"op": "replace", "path": "/status", "value": {"active": False}}]
    scenario.api.request("PATCH", path, operation, content_type="application/json-patch+json")
    scenario.wait_gone()


def hostile_statuses() -> Iterator[dict[str, Any]]:
    """Statuses of about 1 MiB, each big in another place, and each another verdict than the one before."""
    long = f"{MARK}\x1b[31m\x00\r\n\u202e{MARK}" * (MEBIBYTE // 80)
    yield {"conditions": [{"type": "Ready", "status": "False", "reason": long, "message": long}]}
    yield {"conditions": [{"type": "Ready", "status": long}]}
    yield {"conditions": [{"type": f"Other{n}", "status": "True", "message": MARK * 45} for n in range(8_000)]}
    yield {"active": False, "conditions": None, "garbage": {f"key{n}": [MARK * 25, n, None] for n in range(12_000)}}
    yield {"active": True, "garbage": None, "lastTransitionTime": MARK * LETTERS}
    yield {"active": MARK * LETTERS, "lastTransitionTime": None}


@pytest.mark.long
@pytest.mark.contract("A13")
def test_a_status_of_a_mebibyte_leaves_a_kibibyte_at_most_and_no_control_characters(
    scenario: Scenario, manager: ManagerProcess, api: Api
) -> None:
    scenario.create()
    scenario.active(True)
    scenario.wait_made()
    before = resident_bytes(manager.pid)
    kind = {"namespace": scenario.namespace, "kind": scenario.provider.kind}
    for status in hostile_statuses():
        seen = total(manager.metrics(), "fivespot_spot_schedule_resolutions_total", **kind)
        scenario.provider.status(scenario.namespace, **status)
        eventually(
            lambda seen=seen: total(manager.metrics(), "fivespot_spot_schedule_resolutions_total", **kind) > seen,  # type: ignore[misc]
            what="an evaluation",
        )
        texts = list(texts_of(scenario.status))
        assert sum(text.count(MARK) for text in texts) * len(MARK.encode()) <= 1024
        assert all(text.isprintable() for text in texts)
    for _ in range(10):
        scenario.provider.status(scenario.namespace, message="z" * MEBIBYTE, active=True)
        scenario.provider.status(scenario.namespace, message=None, active=False)
    scenario.wait_gone()
    scenario.active(True)
    scenario.wait_made()
    grown = resident_bytes(manager.pid) - before
    assert grown < 48 * MEBIBYTE, f"{grown / MEBIBYTE:.0f} MiB more after 40 MiB of hostile statuses"
    notes = eventually(lambda: [event["note"] for event in scenario.events("ProviderNotReady")], what="an event")
    assert any(MARK in note for note in notes), "its words are shown to people"
    for event in scenario.events():
        assert event["note"].isprintable()
        assert len(event["note"].encode()) <= 1024


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from texts_of(member)
    elif isinstance(value, list):
        for member in value:
            yield from texts_of(member)


FLAPPING = 8
TURNS = 6


@pytest.mark.contract("A13")
def test_eight_providers_that_flap_harm_only_their_own_machines(
    scenario: Scenario, api: Api, manager: ManagerProcess, control_plane: ControlPlane, provider: ProviderKind
) -> None:
    hostile = make_namespace(api, "flapping")
    names = [f"erratic{number}" for number in range(FLAPPING)]
    scenarios = [Scenario(api, hostile, provider, name) for name in names]
    for each in scenarios:
        provider.create(hostile, each.name, active=False)
        each.create(schedule=provider.reference(each.name), gracefulShutdownTimeout="0s")
    scenario.create()
    scenario.wait_phase("Inactive")
    for each in scenarios:
        each.wait_phase("Inactive")
    mark, memory, stop = control_plane.audit_log.mark(), resident_bytes(manager.pid), threading.Event()
    flaps = dict.fromkeys(names, 0)

    def flap(name: str) -> None:
        statuses: list[dict[str, Any]] = [
            {"active": True, "conditions": None},
            {"active": False},
            {"active": "garbage"},
            {"active": True, "conditions": "garbage"},
            {"active": False, "conditions": None},
            {"active": True, "conditions": [{"type": "Ready", "status": "Unknown", "message": "!" * 5_000}]},
        ]
        while not stop.is_set():
            provider.status(hostile, name, **statuses[flaps[name] % len(statuses)])
            flaps[name] += 1
            # As fast as a server with a limit on requests lets one client write.
            stop.wait(0.03)

    with ThreadPoolExecutor(FLAPPING) as pool:
        running = [pool.submit(flap, name) for name in names]
        try:
            # A machine of another namespace comes and goes meanwhile, each time within the wait's own limit.
            for _ in range(TURNS):
                turn_around(scenario)
            # The turns may have been over before much had happened.
            eventually(lambda: sum(flaps.values()) > 10 * FLAPPING or any(each.done() for each in running), 60)
        finally:
            stop.set()
        for ended in running:
            ended.result()
    changes = sum(flaps.values())
    assert changes > 10 * FLAPPING, "it did flap"
    written = len(writes(control_plane, mark, hostile))
    # What a change leads to at most: three creates or three deletes, and a status for each step.
    assert written <= 6 * changes, f"{written} writes for {changes} changes"
    assert written > FLAPPING, "and the manager did follow"
    for each in scenarios:
        provider.status(hostile, each.name, active=True, conditions=None)
    for each in scenarios:
        each.wait_made(30)
        each.wait_phase("Active")
    scenario.active(True)
    scenario.wait_made()
    assert resident_bytes(manager.pid) - memory < 48 * MEBIBYTE
    # Calm again: a machine of another namespace comes and goes, and not a write happens here.
    mark = calm(control_plane, hostile)
    turn_around(scenario)
    turn_around(scenario)
    assert writes(control_plane, mark, hostile) == []
    assert not [name for name in manager.metrics() if "erratic" in name], "series by object name"
    assert manager.exit_code is None
    api.delete("v1", "Namespace", hostile)


def turn_around(scenario: Scenario) -> None:
    """Let a well-behaved machine come or go."""
    if scenario.status.get("inSchedule"):
        scenario.active(False)
        scenario.wait_gone()
        scenario.wait_phase("Inactive")
    else:
        scenario.active(True)
        scenario.wait_made()
        scenario.wait_phase("Active")
