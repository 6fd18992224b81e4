"""The shipped RBAC rules are sufficient and minimal, by the audit log of a control plane with a working manager.

That they were enough for everything else that the tests here do, the fixture ``environment`` checks at its end.
"""

from __future__ import annotations

import fnmatch
from typing import Any, NamedTuple

from controlplane import Api
from controlplane.audit import STARTED, select
from harness import MANAGER_USER, SERVICE_ACCOUNT, SYSTEM_NAMESPACE
from support.environment import Environment
from support.gate import Gate
from support.live_scenario import LiveScenario
from support.machines import schedule

_RBAC = "rbac.authorization.k8s.io/v1"

SCHEDULES: dict[str, dict[str, Any]] = {
    "CapitalMarketsSchedule": {"timezone": "America/New_York"},
    "ManualSchedule": {"enabled": True},
    "TimeBasedSpotSchedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": "UTC"},
}
"""A valid spec for each kind of schedule that is shipped, so that its status is written."""

EXEMPT = {
    # Checked by an admission plugin that is off here, and never asked for: tests/server/test_rights.py turns it on.
    ("5spot.finos.org", "scheduledmachines/finalizers"),
}
EXEMPT_GROUPS = {"k0smotron.io"}
"""Nothing of it is installed; tests/server/test_rights.py has a kind of it."""


class Right(NamedTuple):
    """One verb that a rule allows."""

    verb: str
    group: str
    resource: str


def granted(api: Api) -> set[Right]:
    """Return the rights of the manager's ServiceAccount, as rules."""
    found: set[Right] = set()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in api.list(_RBAC, kind):
            if any(_is_ours(subject) for subject in binding.get("subjects") or ()):
                reference = binding["roleRef"]
                role = api.get(_RBAC, reference["kind"], reference["name"], binding["metadata"].get("namespace"))
                for rule in role.get("rules") or ():
                    found |= {
                        Right(verb, group, resource)
                        for verb in rule["verbs"]
                        for group in rule["apiGroups"]
                        for resource in rule["resources"]
                    }
    return {
        right for right in found if (right.group, right.resource) not in EXEMPT and right.group not in EXEMPT_GROUPS
    }


def used(environment: Environment) -> set[Right]:
    """Return the manager's successful requests since the control plane started."""
    found = set()
    for event in select(environment.plane.audit(stages=["ResponseComplete", STARTED]), user=MANAGER_USER):
        reference = event.get("objectRef") or {}
        if reference.get("resource") and event["responseStatus"]["code"] != 403:
            resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
            found.add(Right(event["verb"], reference.get("apiGroup", ""), resource))
            if event["verb"] == "watch":
                # A watch that also lists needs both rights, and a server without that feature is asked for both.
                found.add(Right("list", reference.get("apiGroup", ""), resource))
    return found


def test_every_verb_of_every_shipped_rule_is_used_and_none_is_missing(environment: Environment) -> None:
    _live_and_die(environment)
    _lose_a_machine(environment)
    _meet_foreign_objects(environment)
    _flap(environment)
    namespace = environment.namespace("schedules", cluster=None)
    for kind, spec in SCHEDULES.items():
        body = {**schedule("all", namespace, spec), "kind": kind}
        environment.api.create(body)
    asked = granted(environment.api)

    def unused() -> list[Right]:
        done = used(environment)
        return sorted(right for right in asked if not any(_covers(right, one) for one in done))

    scenario = LiveScenario(environment, namespace)
    scenario.until(lambda: unused() == [] or _raise(unused()), what="every right was used")
    assert environment.forbidden() == []


def _live_and_die(environment: Environment) -> None:
    scenario = LiveScenario(environment, environment.namespace("rights"))
    scenario.run()
    scenario.edit(killSwitch=True)
    scenario.wait_phase("Terminated")
    scenario.wait_gone()
    scenario.delete()
    scenario.until(lambda: scenario.find() is None, what="it is gone")


def _lose_a_machine(environment: Environment) -> None:
    """While nobody looks, so that it is not seen to go."""
    scenario = LiveScenario(environment, environment.namespace("lost"))
    scenario.run()
    environment.manager.stop()
    scenario.api.delete(*scenario.machines, scenario.name, scenario.namespace)
    scenario.until(lambda: scenario.find_machine() is None, what="it is gone")
    environment.manager.start()
    scenario.until(lambda: scenario.events("MachineLost"), what="the loss is told")
    scenario.delete()


def _meet_foreign_objects(environment: Environment) -> None:
    """Create objects of the same name during a creation."""
    for position in (0, 1):
        _meet_a_foreign_object(LiveScenario(environment, environment.namespace("foreign")), position)


def _meet_a_foreign_object(scenario: LiveScenario, position: int) -> None:
    kind = (scenario.bootstraps, scenario.infrastructure)[position]
    resource = (scenario.family.bootstrap, scenario.family.machine)[position]
    with Gate(scenario.environment.plane, scenario.namespace, [(resource.group, resource.plural)], ["CREATE"]) as gate:
        scenario.create()
        gate.held()
        metadata = {"name": scenario.name, "namespace": scenario.namespace}
        scenario.api.create({"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": {}})
        gate.release()
        scenario.wait_phase("Error", "MachineCreationFailed")
    # The other one is ours, a leftover.
    scenario.active(False)
    scenario.until(lambda: len(scenario.present()) == 1, what="the leftover goes, the foreign one stays")


def _flap(environment: Environment) -> None:
    """Repeat a change, so that the existing Event is counted up."""
    scenario = LiveScenario(environment, environment.namespace("flap", cluster=None))
    scenario.create(active=False)
    scenario.wait_phase("Inactive")
    for ready in ("False", "True", "False"):
        scenario.provider.ready(scenario.namespace, scenario.name, ready=ready)
        scenario.wait_condition("SpotScheduleResolved", "True" if ready == "True" else "False")


def _is_ours(subject: dict[str, Any]) -> bool:
    return (subject["kind"], subject["name"], subject.get("namespace")) == (
        "ServiceAccount",
        SERVICE_ACCOUNT,
        SYSTEM_NAMESPACE,
    )


def _covers(right: Right, done: Right) -> bool:
    return (right.verb, right.group) == (done.verb, done.group) and fnmatch.fnmatch(done.resource, right.resource)


def _raise(rights: list[Right]) -> bool:
    raise AssertionError([f"{right.verb} {right.resource}.{right.group}" for right in rights])
