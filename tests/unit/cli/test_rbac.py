"""``fivespot rbac``: the shipped roles with the kinds of a cluster in place of wildcards, and nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fivespot.cli.rbac import CHILD_GROUPS, roles
from fivespot.runtime import Resource

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"
SCHEDULES = "spotschedules.5spot.finos.org"
Json = dict[str, Any]

SERVED = {
    CHILD_GROUPS[0]: [
        Resource(CHILD_GROUPS[0], "v1beta1", "k0sworkerconfigs", "K0sWorkerConfig"),
        Resource(CHILD_GROUPS[0], "v1beta1", "k0sworkerconfigtemplates", "K0sWorkerConfigTemplate"),
    ],
    CHILD_GROUPS[1]: [
        Resource(CHILD_GROUPS[1], "v1beta1", "remoteclusters", "RemoteCluster"),
        Resource(CHILD_GROUPS[1], "v1beta1", "remotemachines", "RemoteMachine"),
    ],
    SCHEDULES: [Resource(SCHEDULES, "v1alpha1", "timebasedspotschedules", "TimeBasedSpotSchedule")],
}


def shipped(file: str) -> Json:
    found: Json = next(yaml.safe_load_all((MANIFESTS / "rbac" / file).read_text()))
    return found


def rights(role: Json) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {
        (verb, group, resource, tuple(rule.get("resourceNames", ())))
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_what_has_no_wildcard_is_as_shipped() -> None:
    for role, file in zip(
        roles(SERVED), ["scheduledmachine-controller.yaml", "manualschedule-controller.yaml"], strict=True
    ):
        as_shipped = shipped(file)
        assert role["metadata"]["name"] == as_shipped["metadata"]["name"]
        assert role["metadata"]["labels"] == as_shipped["metadata"]["labels"]
        wildcard_groups = {group for _, group, resource, _ in rights(as_shipped) if resource == "*"}
        kept = {right for right in rights(as_shipped) if right[2] != "*"}
        assert {right for right in rights(role) if right[1] not in wildcard_groups or right in kept} == kept
        assert not [right for right in rights(role) if "*" in right[:3]]


def test_kinds_of_machines_get_the_verbs_of_the_wildcard_and_others_are_listed() -> None:
    found = rights(roles(SERVED)[0])
    wildcard = {verb for verb, group, resource, _ in rights(shipped("scheduledmachine-controller.yaml"))
                if (group, resource) == (CHILD_GROUPS[0], "*")}  # fmt: skip

    def verbs(group: str, resource: str) -> set[str]:
        return {right[0] for right in found if right[1:3] == (group, resource)}

    assert verbs(CHILD_GROUPS[0], "k0sworkerconfigs") == wildcard
    assert verbs(CHILD_GROUPS[1], "remotemachines") == wildcard
    assert verbs(CHILD_GROUPS[0], "k0sworkerconfigtemplates") == {"list"}
    assert verbs(CHILD_GROUPS[1], "remoteclusters") == {"list"}
    assert verbs(SCHEDULES, "timebasedspotschedules") == {"list", "watch"}


def test_a_group_that_is_not_served_has_no_rule() -> None:
    assert not [right for role in roles({}) for right in rights(role) if right[1] in CHILD_GROUPS]
