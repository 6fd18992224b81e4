"""C3: ManualSchedule, a switch for people and a layer over another schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane import Api, ApiError
from harness import ManagerProcess
from harness.providers import ProviderKind
from support import eventually
from support.machines import SCHEDULE, reference, schedule
from support.scenario import Scenario

Json = dict[str, Any]

MANUAL = (SCHEDULE[0], "ManualSchedule")
EVER = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}


def manual(name: str, namespace: str, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": MANUAL[0], "kind": MANUAL[1], "metadata": metadata, "spec": spec}


def base(kind: str, name: str) -> Json:
    return {"kind": kind, "name": name}


def wait_verdict(api: Api, namespace: str, name: str, ready: str, reason: str, *, words: str = "") -> Json:
    """The status, once condition Ready has this status and reason, and begins with these words, for the newest spec."""

    def found() -> Json:
        obj = api.get(*MANUAL, name, namespace)
        status: Json = obj.get("status", {})
        assert status.get("observedGeneration") == obj["metadata"]["generation"], status
        [condition] = [entry for entry in status["conditions"] if entry["type"] == "Ready"]
        assert (condition["status"], condition["reason"]) == (ready, reason), condition
        assert condition["message"].startswith(words), condition
        return {**status, "message": condition["message"]}

    return eventually(found, what=f"{name}: {ready} {reason} {words}")


@pytest.mark.contract("C3")
def test_a_switch_gives_and_takes_a_machine(scenario: Scenario, kubectl: Callable[..., str]) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create(manual("switch", namespace, enabled=False))
    scenario.create(schedule=reference(kind="ManualSchedule", name="switch"))
    scenario.wait_phase("Inactive", "ScheduleInactive")
    kubectl("patch", "manual", "switch", "-n", namespace, "--type=merge", "-p", '{"spec": {"enabled": true}}')
    scenario.wait_made()
    header, line = kubectl("get", "manual", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "ACTIVE", "ENABLED", "BASE", "NEXTTRANSITION", "AGE"]
    assert line.split()[:3] == ["switch", "true", "true"]
    kubectl("patch", "manual", "switch", "-n", namespace, "--type=merge", "-p", '{"spec": {"enabled": false}}')
    scenario.wait_gone()
    # C7: overrides are laid over the switch.
    api.patch(
        *MANUAL, "switch", namespace, {"spec": {"overrides": [{"name": "on", "active": True, "until": "forever"}]}}
    )
    wait_verdict(api, namespace, "switch", "True", "Overridden")
    scenario.wait_made()


@pytest.mark.contract("C3")
def test_a_base_decides_and_what_it_says_is_followed_without_a_restart(
    scenario: Scenario, manager: ManagerProcess
) -> None:
    api, namespace = scenario.api, scenario.namespace
    before = manager.pid
    api.create(schedule("hours", namespace, EVER))
    api.create(manual("layer", namespace, base=base("TimeBasedSpotSchedule", "hours")))
    assert wait_verdict(api, namespace, "layer", "True", "BaseActive")["active"] is True
    api.patch(*SCHEDULE, "hours", namespace, {"spec": {"daysOfWeek": [], "timezone": "Asia/Tokyo"}})
    assert wait_verdict(api, namespace, "layer", "True", "BaseInactive")["active"] is False
    # A base that can no longer be followed holds, and says why.
    api.patch(*SCHEDULE, "hours", namespace, {"spec": {"daysOfWeek": ["mon-sun"]}})
    wait_verdict(api, namespace, "layer", "True", "BaseActive")
    api.patch(*SCHEDULE, "hours", namespace, {"spec": {"timezone": "Mars/Olympus"}})
    held = wait_verdict(api, namespace, "layer", "False", "BaseUnresolved")
    assert held["active"] is True
    assert held["message"].startswith("ProviderNotReady: TimeBasedSpotSchedule/hours is not Ready")
    api.delete(*SCHEDULE, "hours", namespace)
    eventually(
        lambda: wait_verdict(api, namespace, "layer", "False", "BaseUnresolved")["message"].startswith(
            "ProviderNotFound"
        ),
        what="the base is gone",
    )
    api.create(schedule("hours", namespace, {"hoursOfDay": []}))
    assert wait_verdict(api, namespace, "layer", "True", "BaseInactive")["active"] is False
    # And a base of a base, through the override of the first.
    api.create(manual("upper", namespace, base=base("ManualSchedule", "layer")))
    wait_verdict(api, namespace, "upper", "True", "BaseInactive")
    api.patch(*MANUAL, "layer", namespace, {"spec": {"overrides": [{"name": "on", "active": True}]}})
    wait_verdict(api, namespace, "layer", "True", "Overridden")
    wait_verdict(api, namespace, "upper", "True", "BaseActive")
    assert manager.pid == before
    assert manager.running


@pytest.mark.contract("C3")
def test_a_base_of_a_kind_that_comes_and_goes(scenario: Scenario, own_provider: Callable[..., ProviderKind]) -> None:
    api, namespace = scenario.api, scenario.namespace
    kind = own_provider()
    api.create(manual("layer", namespace, base=base(kind.kind, "hours")))
    missing = wait_verdict(api, namespace, "layer", "False", "BaseUnresolved", words="ProviderCRDNotInstalled: ")
    assert "correct spec.base.kind" in missing["message"]
    kind.install()
    kind.create(namespace, active=True)
    wait_verdict(api, namespace, "layer", "True", "BaseActive")
    kind.ready(namespace, ready="Unknown")
    wait_verdict(api, namespace, "layer", "False", "BaseUnresolved")
    kind.status(namespace, conditions=[], active="yes")
    wait_verdict(api, namespace, "layer", "False", "BaseUnresolved", words="StatusActiveMissing: ")
    kind.status(namespace, active=False)
    wait_verdict(api, namespace, "layer", "True", "BaseInactive")
    kind.remove()
    held = wait_verdict(api, namespace, "layer", "False", "BaseUnresolved")
    assert held["active"] is False


@pytest.mark.contract("C3")
def test_a_chain_that_returns_or_is_too_long_is_told_to_all_in_it(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    for number in range(3):
        api.create(manual(f"c{number}", namespace, base=base("ManualSchedule", f"c{(number + 1) % 3}")))
    api.create(manual("outside", namespace, base=base("ManualSchedule", "c0")))
    for name in ("c0", "c1", "c2", "outside"):
        told = wait_verdict(api, namespace, name, "False", "BaseCycle")
        assert "->" in told["message"]
    api.patch(*MANUAL, "c2", namespace, {"spec": {"base": None, "enabled": True}})
    for name in ("c0", "c1", "outside"):
        wait_verdict(api, namespace, name, "True", "BaseActive")
    api.create_many(
        manual(f"m{number}", namespace, base=base("ManualSchedule", f"m{number + 1}")) for number in range(8)
    )
    api.create(manual("m8", namespace, enabled=True))
    wait_verdict(api, namespace, "m0", "True", "BaseActive")
    api.patch(*MANUAL, "m8", namespace, {"spec": {"enabled": None, "base": base("ManualSchedule", "c2")}})
    wait_verdict(api, namespace, "m0", "False", "BaseCycle")
    wait_verdict(api, namespace, "m1", "True", "BaseActive")


REFUSED: dict[str, tuple[Json, str]] = {
    "neither": ({}, "exactly one of enabled and base must be given"),
    "both": ({"enabled": True, "base": base("ManualSchedule", "x")}, "exactly one of enabled and base must be given"),
    "kind": ({"base": base("manualschedule", "x")}, "must be a kind such as TimeBasedSpotSchedule"),
    "name": ({"base": base("ManualSchedule", "X y")}, "must be the name of an object"),
    "no name": ({"base": {"kind": "ManualSchedule"}}, "spec.base.name: Required value"),
    "no boolean": ({"enabled": "yes"}, "must be of type boolean"),
}


@pytest.mark.contract("C3")
@pytest.mark.parametrize("case", REFUSED)
def test_a_schedule_with_neither_or_both_is_refused_when_applied(api: Api, namespace: str, case: str) -> None:
    spec, words = REFUSED[case]
    with pytest.raises(ApiError) as refused:
        api.create(manual("any", namespace, **spec), dry_run=True)
    assert words in str(refused.value)


@pytest.mark.contract("C9")
def test_the_status_of_a_new_kind_has_no_verdict_by_default(api: Api, namespace: str) -> None:
    api.create(manual("any", namespace, enabled=True))
    with pytest.raises(ApiError, match=r"status\.active: Required value"):
        api.request(
            "PATCH",
            f"/apis/{MANUAL[0]}/namespaces/{namespace}/manualschedules/any/status",
            {"status": {"active": None, "observedGeneration": 1}},
            content_type="application/merge-patch+json",
        )
