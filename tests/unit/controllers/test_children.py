"""B2.1, B2.4, B2.5, B2.7: the objects that are created."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.api import names
from fivespot.controllers.scheduledmachine.children import (
    EXCLUDE_DRAIN,
    EXCLUDE_VOLUMES,
    build_embedded,
    build_machine,
    drain_settings,
    template_hash,
)
from support.machines import bootstrap, infrastructure, machine, taint

VERSIONS = ("v1beta1", "v1beta2")


def stored(**changes: Any) -> dict[str, Any]:
    body = machine("web-1", "team-a", **changes)
    body["metadata"]["uid"] = "sm-uid"
    return body


@pytest.mark.contract("B2.1")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_machine_has_our_name_and_we_control_it(version: str) -> None:
    built = build_machine(stored(), version)
    assert (built["apiVersion"], built["kind"]) == (f"cluster.x-k8s.io/{version}", "Machine")
    assert (built["metadata"]["name"], built["metadata"]["namespace"]) == ("web-1", "team-a")
    assert built["spec"]["clusterName"] == "prod"
    assert built["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "5spot.finos.org/v1beta1",
            "kind": "ScheduledMachine",
            "name": "web-1",
            "uid": "sm-uid",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


@pytest.mark.contract("B2.1")
def test_references_at_v1beta2_name_the_group_and_nothing_more() -> None:
    built = build_machine(stored(), "v1beta2")["spec"]
    assert built["bootstrap"]["configRef"] == {
        "apiGroup": "bootstrap.cluster.x-k8s.io",
        "kind": "StandInBootstrap",
        "name": "web-1",
    }
    assert built["infrastructureRef"] == {
        "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "StandInMachine",
        "name": "web-1",
    }


@pytest.mark.contract("B2.1")
def test_references_at_v1beta1_name_the_version_and_the_namespace() -> None:
    body = stored(infrastructureSpec=infrastructure("infrastructure.cluster.x-k8s.io/v1beta2"))
    built = build_machine(body, "v1beta1")["spec"]
    assert built["bootstrap"]["configRef"] == {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
        "kind": "StandInBootstrap",
        "name": "web-1",
        "namespace": "team-a",
    }
    assert built["infrastructureRef"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "StandInMachine",
        "name": "web-1",
        "namespace": "team-a",
    }


@pytest.mark.contract("B2.1")
@pytest.mark.parametrize(("field", "build"), [("bootstrapSpec", bootstrap), ("infrastructureSpec", infrastructure)])
def test_embedded_objects_carry_their_spec_and_no_owner(field: str, build: Any) -> None:
    secret = {"files": [{"path": "/etc/x", "content": "y"}]}
    body = stored(**{field: build(spec=secret, metadata={"labels": {"team": "a"}, "annotations": {"x.org/y": "z"}})})
    built = build_embedded(body, field)
    assert built["spec"] == secret
    assert (built["apiVersion"], built["kind"]) == (body["spec"][field]["apiVersion"], body["spec"][field]["kind"])
    assert "ownerReferences" not in built["metadata"]
    assert built["metadata"]["labels"]["team"] == "a"
    assert built["metadata"]["annotations"]["x.org/y"] == "z"
    assert (built["metadata"]["name"], built["metadata"]["namespace"]) == ("web-1", "team-a")


def everything(body: dict[str, Any]) -> list[dict[str, Any]]:
    embedded = [build_embedded(body, field) for field in ("bootstrapSpec", "infrastructureSpec")]
    return [*embedded, *(build_machine(body, version) for version in VERSIONS)]


def test_all_three_say_whose_they_are_and_what_they_were_made_from() -> None:
    body = stored()
    for built in everything(body):
        assert built["metadata"]["labels"] == {
            "5spot.finos.org/scheduled-machine": "web-1",
            "cluster.x-k8s.io/cluster-name": "prod",
        }
        assert built["metadata"]["annotations"] == {
            "5spot.finos.org/scheduled-machine-uid": "sm-uid",
            "5spot.finos.org/schedule-ref": "TimeBasedSpotSchedule/hours",
            "5spot.finos.org/template-hash": template_hash(body["spec"]),
        }


@pytest.mark.contract("B2.4")
def test_our_labels_and_annotations_win_over_those_of_a_template_and_its_name_is_ignored() -> None:
    # Such a template is refused today; an object that is older than the rule must not take the children from us.
    taken = {
        "name": "theirs",
        "namespace": "theirs",
        "labels": {names.LABEL_MACHINE: "theirs", names.LABEL_CLUSTER: "theirs"},
        "annotations": {
            names.ANNOTATION_UID: "theirs",
            names.ANNOTATION_SCHEDULE_REF: "theirs",
            names.ANNOTATION_TEMPLATE_HASH: "theirs",
        },
    }
    body = stored(
        bootstrapSpec=bootstrap(metadata=taken),
        infrastructureSpec=infrastructure(metadata=taken),
        machineTemplate=taken,
    )
    for built in everything(body):
        assert "theirs" not in json.dumps(built["metadata"])


@pytest.mark.contract("B2.4")
def test_version_and_failure_domain_reach_the_machine() -> None:
    built = build_machine(stored(machineTemplate={"version": "v1.34.4", "failureDomain": "zone-a"}), "v1beta2")["spec"]
    assert (built["version"], built["failureDomain"]) == ("v1.34.4", "zone-a")
    bare = build_machine(stored(machineTemplate={"labels": {"a": "b"}}), "v1beta2")
    assert not {"version", "failureDomain"} & set(bare["spec"])
    assert bare["metadata"]["labels"]["a"] == "b"


@pytest.mark.contract("B2.7")
@pytest.mark.parametrize("version", VERSIONS)
def test_taints_always_propagate(version: str) -> None:
    taints = [taint("x.org/spot", value="yes"), taint("y", "NoExecute", value="")]
    assert build_machine(stored(nodeTaints=taints), version)["spec"]["taints"] == [
        {"key": "x.org/spot", "value": "yes", "effect": "NoSchedule", "propagation": "Always"},
        {"key": "y", "effect": "NoExecute", "propagation": "Always"},
    ]
    assert "taints" not in build_machine(stored(nodeTaints=[]), version)["spec"]


@pytest.mark.contract("B2.5")
def test_the_drain_timeout_is_set_in_whole_seconds_at_v1beta2() -> None:
    built = build_machine(stored(nodeDrainTimeout="2m"), "v1beta2")
    assert built["spec"]["deletion"] == {"nodeDrainTimeoutSeconds": 120, "nodeVolumeDetachTimeoutSeconds": 120}
    assert EXCLUDE_DRAIN not in built["metadata"]["annotations"]


@pytest.mark.contract("B2.5")
def test_the_drain_timeout_is_set_in_whole_seconds_at_v1beta1() -> None:
    built = build_machine(stored(nodeDrainTimeout="1h"), "v1beta1")["spec"]
    assert (built["nodeDrainTimeout"], built["nodeVolumeDetachTimeout"]) == ("3600s", "3600s")
    assert "deletion" not in built


@pytest.mark.contract("B2.5")
def test_an_absent_drain_timeout_is_five_minutes() -> None:
    assert build_machine(stored(), "v1beta2")["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 300


@pytest.mark.contract("B2.5")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", ["0s", "0h", "00000000m"])
def test_zero_is_said_by_annotations_and_by_no_timeout(version: str, text: str) -> None:
    built = build_machine(stored(nodeDrainTimeout=text), version)
    assert built["metadata"]["annotations"][EXCLUDE_DRAIN] == ""
    assert built["metadata"]["annotations"][EXCLUDE_VOLUMES] == ""
    assert not {"deletion", "nodeDrainTimeout", "nodeVolumeDetachTimeout"} & set(built["spec"])
    assert drain_settings(0, version)[1] == {}


def test_the_builders_leave_the_stored_object_alone() -> None:
    body = stored(
        bootstrapSpec=bootstrap(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
        machineTemplate={"labels": {"a": "b"}, "annotations": {"c": "d"}},
        nodeTaints=[taint("x.org/spot")],
        nodeDrainTimeout="0s",
    )
    before = copy.deepcopy(body)
    everything(body)
    assert body == before


# The hash -------------------------------------------------------------------------------------------------------

HASHED = ("clusterName", "bootstrapSpec", "infrastructureSpec", "machineTemplate", "nodeTaints", "nodeDrainTimeout")

values = st.recursive(
    st.none() | st.booleans() | st.integers(min_value=-(2**53), max_value=2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)
specs = st.dictionaries(st.sampled_from((*HASHED, "enabled", "priority", "killSwitch", "schedule")), values)


def independent(spec: dict[str, Any]) -> str:
    made_from = {field: spec[field] for field in HASHED if spec.get(field) is not None}
    text = json.dumps(made_from, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@given(specs)
def test_the_hash_equals_an_independent_implementation(spec: dict[str, Any]) -> None:
    assert template_hash(spec) == independent(spec)


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: backwards(value[name]) for name in reversed(value)}
    return [backwards(inner) for inner in value] if isinstance(value, list) else value


@given(specs)
def test_the_hash_does_not_depend_on_the_order_of_keys(spec: dict[str, Any]) -> None:
    assert template_hash(backwards(spec)) == template_hash(spec)


def test_the_hash_of_a_known_spec_never_changes() -> None:
    # Another hash after an upgrade would show every machine as not up to date.
    assert template_hash(machine("web-1", "team-a", nodeDrainTimeout="5m")["spec"]) == "71356bc3048a1d77"


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"clusterName": "other"}, True),
        ({"bootstrapSpec": bootstrap(spec={"a": 1})}, True),
        ({"infrastructureSpec": infrastructure(spec={"a": 1})}, True),
        ({"machineTemplate": {"version": "v1.34.4"}}, True),
        ({"nodeTaints": [taint("a/b")]}, True),
        ({"nodeDrainTimeout": "1m"}, True),
        ({"gracefulShutdownTimeout": "1m"}, False),
        ({"priority": 9}, False),
        ({"enabled": False}, False),
        ({"killSwitch": True}, False),
        ({"schedule": {"apiVersion": "a/b", "kind": "C", "name": "d"}}, False),
    ],
)
def test_the_hash_covers_what_children_are_made_from_and_nothing_else(change: dict[str, Any], counts: bool) -> None:
    assert (template_hash(stored(**change)["spec"]) != template_hash(stored()["spec"])) is counts
