"""B5.4, B8.2, B8.3: many machines at once, one namespace only, and a brake on deletions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane import Api, ControlPlane
from controlplane.audit import select
from harness import MANAGER_USER, ManagerProcess, install, install_for
from harness.providers import ProviderKind
from harness.wait import eventually
from support import make_namespace
from support.machines import machine
from support.scenario import MACHINES, Scenario

Start = Callable[..., ControlPlane]

_MANY = 80


@pytest.mark.contract("B5.4")
def test_namespaces_take_turns_and_the_higher_priority_goes_first(
    control_plane: ControlPlane, manager: ManagerProcess, provider: ProviderKind
) -> None:
    api = control_plane.api
    crowded, small = (make_namespace(api, name) for name in ("crowded", "small"))
    for namespace in (crowded, small):
        provider.create(namespace, active=False)
    bodies = [
        machine(
            f"{'high' if number % 4 == 0 else 'low'}-{number}",
            crowded,
            schedule=provider.reference(),
            priority=200 if number % 4 == 0 else 10,
        )
        for number in range(_MANY)
    ]
    bodies += [machine(f"few-{number}", small, schedule=provider.reference()) for number in range(4)]
    api.create_many(bodies)
    waiting = Scenario(api, small, provider, "few-3")
    waiting.wait_phase("Inactive")
    eventually(lambda: _phases(api, crowded) == {"Inactive"}, 60, what="all are seen")
    provider.status(crowded, active=True)
    provider.status(small, active=True)
    eventually(lambda: len(api.list(*MACHINES, crowded)) == _MANY, 90, what="all are made")
    eventually(lambda: len(api.list(*MACHINES, small)) == 4, 30, what="all are made")
    order = sorted(api.list(*MACHINES, crowded) + api.list(*MACHINES, small), key=_age)
    names = [found["metadata"]["name"] for found in order]
    # What was made before the small one was wanted at all is not what it waited for.
    wanted = _age(api.get(provider.api_version, provider.kind, "hours", small))
    since = [found["metadata"]["name"] for found in order if _age(found) > wanted]
    few = max(position for position, name in enumerate(since) if name.startswith("few"))
    assert few < len(names) - 1 - _MANY // 4, "the small namespace did not have to wait for the crowded one"
    first = [name for name in names if not name.startswith("few")][: _MANY // 4]
    high = sum(name.startswith("high") for name in first)
    # Sixteen runs are under way when the rest is put in order.
    assert high >= _MANY // 4 - 16 * 3 // 4, first
    assert high > len(first) // 2, first


@pytest.mark.contract("B8.2")
def test_one_namespace_with_roles_alone_is_served_and_no_other_is_looked_at(own_control_plane: Start) -> None:
    plane = own_control_plane()
    api = plane.api
    mine, other = (make_namespace(api, name) for name in ("mine", "other"))
    install_for(plane, mine)
    played = ProviderKind(api, "Played")
    played.install()
    mark = plane.audit_log.mark()
    with ManagerProcess(plane, "--namespaces", mine):
        scenarios = [Scenario(api, namespace, played) for namespace in (mine, other)]
        for scenario in scenarios:
            played.create(scenario.namespace, active=True)
            scenario.create()
        scenarios[0].wait_made()
        scenarios[0].wait_phase("Active")
        scenarios[0].delete()
        scenarios[0].wait_gone()
        eventually(lambda: scenarios[0].find() is None, what="the ScheduledMachine is gone")
    untouched = scenarios[1].get()
    assert "status" not in untouched
    assert not untouched["metadata"].get("finalizers")
    requests = select(plane.audit(since=mark), user=MANAGER_USER)
    assert not [event for event in requests if event["responseStatus"]["code"] == 403]
    elsewhere = {event["objectRef"].get("namespace", "") for event in requests if "objectRef" in event}
    assert elsewhere <= {mine, "5spot-system", ""}
    everywhere = {
        event["objectRef"]["resource"]
        for event in requests
        if "objectRef" in event and not event["objectRef"].get("namespace")
    }
    policies = {"validatingadmissionpolicies", "validatingadmissionpolicybindings"}
    assert everywhere <= {"customresourcedefinitions", *policies}


@pytest.mark.long
@pytest.mark.contract("B8.3")
def test_deletions_by_schedule_wait_their_turn_and_the_kill_switch_does_not(own_control_plane: Start) -> None:
    plane = own_control_plane()
    install(plane)
    api = plane.api
    namespace = make_namespace(api, "braked")
    played = ProviderKind(api, "Played")
    played.install()
    with ManagerProcess(plane, "--max-deletions-per-minute", "2"):
        played.create(namespace, active=True)
        scenarios = [Scenario(api, namespace, played, f"web-{number}") for number in range(5)]
        for scenario in scenarios:
            scenario.create()
        for scenario in scenarios:
            scenario.wait_made()
            # As it began, for want of a verdict, it may be shown as inactive until this is written.
            scenario.wait_phase("Active")
        played.status(namespace, active=False)
        eventually(lambda: len(_in_phase(scenarios, "Inactive")) == 2, 30, what="two had their turn")
        held = [scenario for scenario in scenarios if scenario.status["phase"] != "Inactive"]
        assert len(held) == 3
        for scenario in held:
            scenario.wait_phase("ShuttingDown", "DeletionRateLimited")
        held[0].edit(killSwitch=True)
        held[0].wait_phase("Terminated")
        held[1].delete()
        eventually(lambda: held[1].find() is None, what="a deletion that a person asks for does not wait")
        held[2].wait_phase("ShuttingDown", "DeletionRateLimited")
        assert held[2].machine()["metadata"].get("deletionTimestamp") is None


def _in_phase(scenarios: list[Scenario], phase: str) -> list[Scenario]:
    return [scenario for scenario in scenarios if scenario.status.get("phase") == phase]


def _phases(api: Api, namespace: str) -> set[str]:
    found = api.list("5spot.finos.org/v1beta1", "ScheduledMachine", namespace)
    return {item.get("status", {}).get("phase", "") for item in found}


def _age(found: dict[str, dict[str, str]]) -> int:
    return int(found["metadata"]["resourceVersion"])
