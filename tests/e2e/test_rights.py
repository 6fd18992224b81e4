"""The shipped rights are enough, and no more than enough: what the server's audit log says of a manager at work.

That they were enough for everything else that the tests here do, the fixture ``world`` checks at its end.
"""

from __future__ import annotations

import fnmatch
from typing import Any, NamedTuple

from controlplane import Api
from controlplane.audit import STARTED, select
from support.clusterapi import World
from support.gate import Gate
from support.live import LiveScene
from support.machines import schedule
from support.manager import MANAGER_USER, SERVICE_ACCOUNT, SYSTEM_NAMESPACE

_RBAC = "rbac.authorization.k8s.io/v1"

SCHEDULES: dict[str, dict[str, Any]] = {
    "CapitalMarketsSchedule": {"timezone": "America/New_York"},
    "ManualSchedule": {"enabled": True},
    "TimeBasedSpotSchedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "timezone": "UTC"},
}
"""A valid spec for each kind of schedule that is shipped, so that its status is written."""

EXEMPT = {
    # Checked by an admission plugin that is off here, and never asked for.
    ("5spot.finos.org", "scheduledmachines/finalizers"),
}
EXEMPT_GROUPS = {"k0smotron.io"}
"""Nothing of it is installed."""


class Right(NamedTuple):
    """One verb that a rule allows."""

    verb: str
    group: str
    resource: str


def granted(api: Api) -> set[Right]:
    """What the ServiceAccount of the manager may do, in the words of the rules."""
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


def used(world: World) -> set[Right]:
    """What the manager asked for, and got, since the control plane began."""
    found = set()
    for event in select(world.plane.audit(stages=["ResponseComplete", STARTED]), user=MANAGER_USER):
        reference = event.get("objectRef") or {}
        if reference.get("resource") and event["responseStatus"]["code"] != 403:
            resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
            found.add(Right(event["verb"], reference.get("apiGroup", ""), resource))
            if event["verb"] == "watch":
                # A watch that also lists needs both rights, and a server without that feature is asked for both.
                found.add(Right("list", reference.get("apiGroup", ""), resource))
    return found


def test_every_verb_of_every_shipped_rule_is_used_and_none_is_missing(world: World) -> None:
    _live_and_die(world)
    _lose_a_machine(world)
    _meet_foreign_objects(world)
    _flap(world)
    namespace = world.namespace("schedules", cluster=None)
    for kind, spec in SCHEDULES.items():
        body = {**schedule("all", namespace, spec), "kind": kind}
        world.api.create(body)
    asked = granted(world.api)

    def unused() -> list[Right]:
        done = used(world)
        return sorted(right for right in asked if not any(_covers(right, one) for one in done))

    scene = LiveScene(world, namespace)
    scene.until(lambda: unused() == [] or _raise(unused()), what="every right was used")
    assert world.forbidden() == []


def _live_and_die(world: World) -> None:
    scene = LiveScene(world, world.namespace("rights"))
    scene.run()
    scene.edit(killSwitch=True)
    scene.wait_phase("Terminated")
    scene.wait_gone()
    scene.delete()
    scene.until(lambda: scene.find() is None, what="it is gone")


def _lose_a_machine(world: World) -> None:
    """While nobody looks, so that it is not seen to go."""
    scene = LiveScene(world, world.namespace("lost"))
    scene.run()
    world.manager.stop()
    scene.api.delete(*scene.machines, scene.name, scene.namespace)
    scene.until(lambda: scene.find_machine() is None, what="it is gone")
    world.manager.start()
    scene.until(lambda: scene.events("MachineLost"), what="the loss is told")
    scene.delete()


def _meet_foreign_objects(world: World) -> None:
    """Objects of the same name that come while a creation is under way."""
    for position in (0, 1):
        _meet_a_foreign_object(LiveScene(world, world.namespace("foreign")), position)


def _meet_a_foreign_object(scene: LiveScene, position: int) -> None:
    kind = (scene.bootstraps, scene.infrastructure)[position]
    resource = (scene.family.bootstrap, scene.family.machine)[position]
    with Gate(scene.world.plane, scene.namespace, [(resource.group, resource.plural)], ["CREATE"]) as gate:
        scene.create()
        gate.held()
        metadata = {"name": scene.name, "namespace": scene.namespace}
        scene.api.create({"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": {}})
        gate.release()
        scene.wait_phase("Error", "MachineCreationFailed")
    # The other one is ours, and left over.
    scene.active(False)
    scene.until(lambda: len(scene.present()) == 1, what="the leftover goes, the foreign one stays")


def _flap(world: World) -> None:
    """What is told again is counted on the Event that is there."""
    scene = LiveScene(world, world.namespace("flap", cluster=None))
    scene.create(active=False)
    scene.wait_phase("Inactive")
    for ready in ("False", "True", "False"):
        scene.provider.ready(scene.namespace, scene.name, ready=ready)
        scene.wait_condition("SpotScheduleResolved", "True" if ready == "True" else "False")


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
