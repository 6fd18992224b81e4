"""The rights that follow from a provider."""

from __future__ import annotations

from datetime import datetime

from fivespot.providers.sdk import (
    SCHEDULES,
    ApiModel,
    Provider,
    Verdict,
    rbac_manifests,
    rbac_rules,
)
from fivespot.runtime import Resource


class ToggleSpec(ApiModel):
    """Active while it is on."""

    up: bool
    """Whether it is on."""


def decide(spec: ToggleSpec, at: datetime) -> Verdict:
    return Verdict(spec.up)


TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=decide)


def test_rights_are_those_on_its_own_kind_and_on_events() -> None:
    assert rbac_rules(TOGGLE) == [
        {
            "apiGroups": ["spotschedules.5spot.finos.org"],
            "resources": ["toggles"],
            "verbs": ["get", "list", "watch"],
        },
        {"apiGroups": ["spotschedules.5spot.finos.org"], "resources": ["toggles/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]


def test_what_it_reads_may_be_read() -> None:
    maps = Resource("", "v1", "configmaps", "ConfigMap")
    reading = Provider("Reader", spec=ToggleSpec, decide=decide, reads=(maps, SCHEDULES))
    rules = rbac_rules(reading, TOGGLE)
    assert rules[0]["resources"] == ["*"]
    assert rules[1]["resources"] == ["readers/status", "toggles/status"]
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]} in rules
    assert any(rule["resources"] == ["customresourcedefinitions"] for rule in rules)
    assert not any("*" in rule["verbs"] or "*" in rule["apiGroups"] for rule in rules)


def test_manifests_bind_them_and_the_lease_to_an_account() -> None:
    role, binding, lease, lease_binding = rbac_manifests(TOGGLE, name="toggler", namespace="team")
    assert role["rules"] == rbac_rules(TOGGLE)
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "toggler"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "toggler", "namespace": "team"}]
    assert (lease["kind"], lease["metadata"]["namespace"]) == ("Role", "team")
    assert lease["rules"][1]["resourceNames"] == ["toggler-leader"]
    assert lease_binding["roleRef"]["name"] == lease["metadata"]["name"]
