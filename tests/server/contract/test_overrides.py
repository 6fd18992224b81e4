"""C7: overrides of every shipped kind, as people lay them over with kubectl."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from controlplane import Api, ApiError, ControlPlane, KubectlFailed
from fivespot.providers.registry import shipped_providers
from support import eventually
from support.machines import SCHEDULE, reference, schedule
from support.measurements import settle_bill
from support.scenario import Scenario

Json = dict[str, Any]
Kubectl = Callable[..., str]

EVER = {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}
REPORT = "patch spotschedules.5spot.finos.org/timebasedspotschedules/status"


def judged(api: Api, namespace: str, name: str) -> Json:
    """The status, once the provider has written it for the newest spec."""

    def found() -> Json:
        obj = api.get(*SCHEDULE, name, namespace)
        status: Json = obj.get("status", {})
        assert status.get("observedGeneration") == obj["metadata"]["generation"], status
        return status

    return eventually(found, what=f"the verdict of {name}")


def ready(status: Json) -> tuple[str, str]:
    [found] = [condition for condition in status["conditions"] if condition["type"] == "Ready"]
    return found["status"], found["reason"]


def told(api: Api, namespace: str, name: str) -> list[str]:
    """Reasons of the events about an object."""
    events = api.list("events.k8s.io/v1", "Event", namespace)
    return sorted(event["reason"] for event in events if event["regarding"]["name"] == name)


def instant(**after: float) -> str:
    return (datetime.now(UTC) + timedelta(**after)).replace(microsecond=0).isoformat().replace("+00:00", "Z")


@pytest.mark.contract("C7")
def test_an_override_gives_and_takes_a_machine_and_goes_by_itself(scenario: Scenario, kubectl: Kubectl) -> None:
    api, namespace = scenario.api, scenario.namespace
    api.create(schedule("base", namespace, EVER))
    scenario.create(schedule=reference(name="base"))
    scenario.wait_made()
    # Somebody needs the node out of the way until later today, and says so without touching what is in Git.
    until = instant(hours=8)
    entry = {"name": "disk-swap", "active": False, "until": until, "reason": "new disks"}
    patch = json.dumps({"spec": {"overrides": [entry]}})
    kubectl("patch", "tbss", "base", "-n", namespace, "--type=merge", "-p", patch)
    scenario.wait_gone()
    status = judged(api, namespace, "base")
    assert (status["active"], ready(status), status["nextTransitionTime"]) == (False, ("True", "Overridden"), until)
    [report] = status["overrides"]
    assert (report["name"], report["state"], report["endsAt"]) == ("disk-swap", "InForce", until)
    shown = kubectl("get", "tbss", "base", "-n", namespace, "-o", "wide")
    assert "inactive by override disk-swap (new disks)" in shown
    # Done earlier than thought: the end is moved to a moment from now, and it takes itself away.
    soon = instant(seconds=3)
    api.patch(*SCHEDULE, "base", namespace, {"spec": {"overrides": [{**entry, "until": soon}]}})
    scenario.wait_made()
    scenario.wait_phase("Active")
    after = judged(api, namespace, "base")
    assert (after["active"], ready(after), after.get("nextTransitionTime")) == (True, ("True", "WindowOpen"), None)
    assert after["overrides"][0]["state"] == "Expired"
    assert timedelta(0) <= datetime.fromisoformat(after["lastTransitionTime"]) - datetime.fromisoformat(soon)
    # Four writers tell at once, and one that is refused tries again later.
    eventually(lambda: {"OverrideStarted", "OverrideExpired"} <= {*told(api, namespace, "base")}, what="both are told")
    # An expired one is no trouble, and cleaning up is an edit like any other.
    api.patch(*SCHEDULE, "base", namespace, {"spec": {"overrides": None}})
    assert "overrides" not in judged(api, namespace, "base")
    assert scenario.status["phase"] == "Active"


@pytest.mark.contract("C7")
def test_the_latest_one_that_started_decides_whoever_owns_it(
    scenario: Scenario, kubectl: Kubectl, control_plane: ControlPlane
) -> None:
    api, namespace = scenario.api, scenario.namespace
    closed: Json = {"daysOfWeek": [], "hoursOfDay": []}
    api.create(schedule("base", namespace, closed))

    def apply(manager: str, *entries: Json) -> None:
        """Apply overrides with a field manager of one's own, as a repository or a person does."""
        body = {**schedule("base", namespace, {}), "spec": {"overrides": list(entries)}}
        arguments = ("apply", "--server-side", "--validate=strict", f"--field-manager={manager}", "-f", "-")
        kubectl(*arguments, stdin=yaml.safe_dump(body))

    apply("git", {"name": "season", "active": True, "until": "forever"})
    status = judged(api, namespace, "base")
    assert (status["active"], status["overrides"][0]["openEnded"]) == (True, True)
    apply("person", {"name": "not-tonight", "active": False, "from": instant(seconds=-1), "until": instant(hours=4)})
    apply("git", {"name": "season", "active": True, "until": "forever", "reason": "still"})
    names = [entry["name"] for entry in api.get(*SCHEDULE, "base", namespace)["spec"]["overrides"]]
    assert sorted(names) == ["not-tonight", "season"], "each owns its own"

    def states(expected: dict[str, str]) -> Json:
        def found() -> Json:
            status = judged(api, namespace, "base")
            assert {entry["name"]: entry["state"] for entry in status["overrides"]} == expected
            return status

        return eventually(found, what=str(expected))

    # It says from a second ago, and the other was seen first: which of the two started later may be told by the status.
    started = {entry["name"]: entry["startedAt"] for entry in judged(api, namespace, "base")["overrides"]}
    winner = max(started, key=lambda name: (started[name], name))
    assert judged(api, namespace, "base")["active"] is (winner == "season")
    apply("person", {"name": "z-now", "active": False, "until": instant(hours=4)})
    status = states({"season": "Overruled", "z-now": "InForce"})
    assert status["active"] is False
    mark = control_plane.audit_log.mark()
    apply("person")
    assert states({"season": "InForce"})["active"] is True
    settle_bill(control_plane, mark, namespace, {REPORT: 1})


@pytest.mark.contract("C7")
def test_to_the_next_transition_is_the_default_and_is_fixed_at_the_start(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    opens = instant(days=2)
    api.create(
        schedule("later", namespace, {**EVER, "validFrom": opens, "overrides": [{"name": "now", "active": True}]})
    )
    status = judged(api, namespace, "later")
    assert (status["active"], status["overrides"][0]["until"]) == (True, "nextTransition")
    assert status["overrides"][0]["endsAt"] == opens
    # Fixed: a rule that is edited meanwhile does not move it.
    moved = instant(days=1)
    api.patch(*SCHEDULE, "later", namespace, {"spec": {"validFrom": moved}})
    assert judged(api, namespace, "later")["overrides"][0]["endsAt"] == opens
    # Where none comes it holds until it is removed, and says so.
    api.create(schedule("never", namespace, {**EVER, "overrides": [{"name": "off", "active": False}]}))
    status = judged(api, namespace, "never")
    assert (status["active"], status["overrides"][0]["openEnded"]) == (False, True)
    eventually(lambda: "OverrideOpenEnded" in told(api, namespace, "never"), what="a Warning")
    # Lost memory: it starts anew, with an event.
    before: str = status["overrides"][0]["startedAt"]
    eventually(lambda: datetime.now(UTC) > datetime.fromisoformat(before) + timedelta(seconds=1))
    api.patch_status(*SCHEDULE, "never", namespace, {"overrides": None})

    def anew() -> bool:
        reports: list[dict[str, str]] = judged(api, namespace, "never").get("overrides") or [{}]
        return reports[0].get("startedAt", before) > before

    eventually(anew, what="another start")
    eventually(lambda: told(api, namespace, "never").count("OverrideStarted") == 2, what="another event")


@pytest.mark.contract("C7")
def test_a_disabled_time_based_schedule_is_not_overridden(scenario: Scenario) -> None:
    api, namespace = scenario.api, scenario.namespace
    override = [{"name": "on", "active": True, "until": "forever"}]
    api.create(schedule("off", namespace, {**EVER, "enabled": False, "overrides": override}))
    status = judged(api, namespace, "off")
    assert (status["active"], status["overrides"][0]["state"]) == (False, "Overruled")
    assert ready(status) == ("True", "WindowClosed")
    api.patch(*SCHEDULE, "off", namespace, {"spec": {"enabled": True, "daysOfWeek": []}})
    status = judged(api, namespace, "off")
    assert (status["active"], status["overrides"][0]["state"]) == (True, "InForce")


REFUSED: dict[str, tuple[list[Json], str]] = {
    "no verdict": ([{"name": "a"}], "spec.overrides[0].active: Required value"),
    "no name": ([{"active": True}], "spec.overrides[0].name: Required value"),
    "name": ([{"name": "A b", "active": True}], "must be a name of lower-case letters"),
    "twice": ([{"name": "a", "active": True}, {"name": "a", "active": False}], "Duplicate value"),
    "from": ([{"name": "a", "active": True, "from": "tomorrow"}], "must be an instant: date, time and offset"),
    "from without offset": ([{"name": "a", "active": True, "from": "2027-01-01T00:00:00"}], "must be an instant"),
    "until": ([{"name": "a", "active": True, "until": "never"}], "nextTransition, or forever"),
    "no such day": ([{"name": "a", "active": True, "until": "2027-02-29T00:00:00Z"}], "nextTransition, or forever"),
    "order": (
        [{"name": "a", "active": True, "from": "2027-01-01T00:00:00Z", "until": "2027-01-01T00:00:00+01:00"}],
        "from must be before until",
    ),
    "too many": ([{"name": f"a{number}", "active": True} for number in range(33)], "must have at most 32 items"),
    "reason": ([{"name": "a", "active": True, "reason": "x" * 257}], "Too long"),
}

VALID: dict[str, Json] = {
    "TimeBasedSpotSchedule": {},
    "CapitalMarketsSchedule": {"timezone": "UTC"},
    "ManualSchedule": {"enabled": True},
}


@pytest.mark.contract("C7")
@pytest.mark.parametrize("kind", [provider.kind for provider in shipped_providers()])
def test_overrides_that_cannot_be_are_refused_when_applied(api: Api, namespace: str, kind: str) -> None:
    def create(overrides: list[Json]) -> Json:
        metadata = {"name": "any", "namespace": namespace}
        spec = {**VALID[kind], "overrides": overrides}
        return api.create({"apiVersion": SCHEDULE[0], "kind": kind, "metadata": metadata, "spec": spec}, dry_run=True)

    for overrides, words in REFUSED.values():
        with pytest.raises(ApiError) as refused:
            create(overrides)
        assert refused.value.status == 422
        assert words in str(refused.value), str(refused.value)
        assert "spec.overrides" in str(refused.value)
    whole = {
        "name": "release-1.2",
        "active": True,
        "from": "2027-01-01T00:00:00+02:00",
        "until": "forever",
        "reason": "r",
    }
    [stored] = create([whole])["spec"]["overrides"]
    assert stored == whole
    [stored] = create([{"name": "a", "active": False}])["spec"]["overrides"]
    assert stored == {"name": "a", "active": False, "until": "nextTransition"}


@pytest.mark.contract("C7")
def test_a_typing_error_in_an_override_is_told_by_kubectl(kubectl: Kubectl, namespace: str) -> None:
    body = schedule("any", namespace, {"overrides": [{"name": "a", "activ": True}]})
    with pytest.raises(KubectlFailed, match=r'unknown field "spec.overrides\[0\].activ"'):
        kubectl("apply", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(body))
