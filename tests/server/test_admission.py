"""Admission by the CustomResourceDefinitions alone: accepted and refused objects, and the messages that users get."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane
from fivespot.api import InvalidObject, validate, validate_spec
from fivespot.api.scheduledmachine import ScheduledMachineSpec
from fivespot.providers.timebased.spec import TimeBasedSpotScheduleSpec
from support.machines import MACHINE, SCHEDULE, bootstrap, infrastructure, machine, reference, schedule, taint

Json = dict[str, Any]

CRDS = Path(__file__).resolve().parents[2] / "manifests" / "crds"

ANYWHERE = "default"
"""The namespace of dry runs."""


@pytest.fixture(scope="module")
def api(module_control_plane: Callable[..., ControlPlane]) -> Api:
    """A server without a manager, which would write the status of what is made here."""
    return module_control_plane(controller_manager=False, audit=False).api


def refusal(api: Api, body: Json) -> tuple[int, dict[str, str]]:
    """Status code and field -> message of a create that the server must refuse."""
    with pytest.raises(ApiError) as caught:
        api.create(body, dry_run=True)
    told: dict[str, str] = {}
    for cause in caught.value.body.get("details", {}).get("causes", []):
        told[cause["field"]] = f"{told.get(cause['field'], '')}{cause['message']}\n"
    return caught.value.status, told


REFUSED_MACHINES: dict[str, tuple[Json, str, str]] = {
    "A1 foreign group": (
        {"schedule": reference(apiVersion="batch/v1")},
        "spec.schedule.apiVersion",
        "must be of the group spotschedules.5spot.finos.org",
    ),
    "A1 group that only begins alike": (
        {"schedule": reference(apiVersion="spotschedules.5spot.finos.org.evil.example/v1")},
        "spec.schedule.apiVersion",
        "must be of the group",
    ),
    "A1 no version": (
        {"schedule": reference(apiVersion="spotschedules.5spot.finos.org/")},
        "spec.schedule.apiVersion",
        "should match",
    ),
    "schedule kind": ({"schedule": reference(kind="timeBased")}, "spec.schedule.kind", "should match"),
    "schedule name": ({"schedule": reference(name="Hours")}, "spec.schedule.name", "should match"),
    "long cluster name": ({"clusterName": "a" * 64}, "spec.clusterName", "may not be more than 63"),
    "cluster name": ({"clusterName": "-a"}, "spec.clusterName", "should match"),
    "core version": ({"bootstrapSpec": bootstrap("v1")}, "spec.bootstrapSpec.apiVersion", "core versions are refused"),
    "empty kind": ({"infrastructureSpec": infrastructure(kind="")}, "spec.infrastructureSpec.kind", "at least 1"),
    "embedded name": (
        {"bootstrapSpec": bootstrap("k0smotron.io/v1beta1", metadata={"name": "x"})},
        "spec.bootstrapSpec.metadata",
        "must not be set",
    ),
    "embedded namespace": (
        {"infrastructureSpec": infrastructure(metadata={"namespace": "x"})},
        "spec.infrastructureSpec.metadata",
        "must not be set",
    ),
    "embedded reserved label": (
        {"infrastructureSpec": infrastructure(metadata={"labels": {"5spot.finos.org/scheduled-machine": "x"}})},
        "spec.infrastructureSpec.metadata.labels",
        "reserved prefixes",
    ),
    "reserved label": (
        {"machineTemplate": {"labels": {"kubernetes.io/os": "x"}}},
        "spec.machineTemplate.labels",
        "reserved prefixes",
    ),
    "reserved annotation": (
        {"machineTemplate": {"annotations": {"cluster.x-k8s.io/paused": ""}}},
        "spec.machineTemplate.annotations",
        "reserved prefixes",
    ),
    "label key": (
        {"machineTemplate": {"labels": {"a b": "x"}}},
        "spec.machineTemplate.labels",
        "must be qualified names",
    ),
    "label value": ({"machineTemplate": {"labels": {"a": "x y"}}}, "spec.machineTemplate.labels.a", "should match"),
    "priority": ({"priority": 256}, "spec.priority", "less than or equal to 255"),
    "compound grace": ({"gracefulShutdownTimeout": "1h30m"}, "spec.gracefulShutdownTimeout", "should match"),
    "grace over a day": ({"gracefulShutdownTimeout": "25h"}, "spec.gracefulShutdownTimeout", "at most 24h"),
    "grace over all bounds": (
        {"gracefulShutdownTimeout": "9" * 31 + "h"},
        "spec.gracefulShutdownTimeout",
        "at most 24h",
    ),
    "drain over a day": ({"nodeDrainTimeout": "86401s"}, "spec.nodeDrainTimeout", "at most 24h"),
    "taint key": ({"nodeTaints": [taint("a b")]}, "spec.nodeTaints[0].key", "should match"),
    "reserved taint": ({"nodeTaints": [taint("node.kubernetes.io/x")]}, "spec.nodeTaints[0].key", "reserved prefixes"),
    "taint of Cluster API": (
        {"nodeTaints": [taint("a"), taint("node.cluster.x-k8s.io/x")]},
        "spec.nodeTaints[1].key",
        "reserved prefixes",
    ),
    "taint effect": ({"nodeTaints": [taint("a", "Never")]}, "spec.nodeTaints[0].effect", "supported values"),
    "taint value": ({"nodeTaints": [taint("a", value="x" * 64)]}, "spec.nodeTaints[0].value", "more than 63"),
    "taint twice": ({"nodeTaints": [taint("a"), taint("a", value="b")]}, "spec.nodeTaints", "twice"),
    "taints without number": ({"nodeTaints": [taint(f"k{n}") for n in range(65)]}, "spec.nodeTaints", "at most 64"),
    "commands without number": ({"killIfCommands": ["x"] * 101}, "spec.killIfCommands", "at most 100"),
    "empty command": ({"killIfCommands": [""]}, "spec.killIfCommands[0]", "at least 1"),
    "kata kind": ({"kata": {"kind": "Pod", "name": "a"}}, "spec.kata.kind", "supported values"),
}


@pytest.mark.contract("A1")
@pytest.mark.parametrize(("changes", "field", "part"), REFUSED_MACHINES.values(), ids=REFUSED_MACHINES.keys())
def test_a_machine_that_breaks_a_rule_is_refused_with_the_field_named(
    api: Api, changes: Json, field: str, part: str
) -> None:
    body = machine("sample", ANYWHERE, **changes)
    status, causes = refusal(api, body)
    assert status == 422
    assert part in causes[field]
    # The controller judges older objects by the same rules, and names the same field.
    with pytest.raises(InvalidObject) as caught:
        validate_spec(body["spec"])
    assert field in {problem.field for problem in caught.value.problems}


ACCEPTED_MACHINES: dict[str, Json] = {
    "no more than required": {},
    "any version of the group": {"schedule": reference(apiVersion="spotschedules.5spot.finos.org/v9zeta2")},
    "no grace, no drain": {"gracefulShutdownTimeout": "0s", "nodeDrainTimeout": "0s"},
    "a whole day": {"gracefulShutdownTimeout": "24h", "nodeDrainTimeout": "0001440m"},
    "the largest priority": {"priority": 255},
    "labels that reach the node": {
        "machineTemplate": {
            "labels": {"node-role.kubernetes.io/build": "", "node.cluster.x-k8s.io/pool": "a"},
            "annotations": {"example.com/note": "any text, at any length"},
            "version": "v1.34.4",
            "failureDomain": "a",
        }
    },
    "as many taints as may be": {"nodeTaints": [taint(f"k{n}") for n in range(64)]},
    "one key with several effects": {"nodeTaints": [taint("a"), taint("a", "NoExecute"), taint("b", value="c")]},
    "embedded labels": {"bootstrapSpec": bootstrap("k0smotron.io/v1beta1", metadata={"labels": {"a": "b"}})},
    "everything of the node agent": {
        "killIfCommands": ["x" * 256] * 100,
        "kubeconfigSecretRef": {"name": "a"},
        "kata": {"kind": "Secret", "name": "a"},
    },
}


@pytest.mark.contract("A1")
@pytest.mark.parametrize("changes", ACCEPTED_MACHINES.values(), ids=ACCEPTED_MACHINES.keys())
def test_a_machine_that_keeps_the_rules_is_taken_and_read_back(api: Api, changes: Json) -> None:
    created = api.create(machine("sample", ANYWHERE, **changes), dry_run=True)
    stored = validate(ScheduledMachineSpec, created["spec"])
    assert stored == validate_spec(machine("sample", ANYWHERE, **changes)["spec"])


def test_the_server_fills_in_the_defaults(api: Api) -> None:
    created = api.create(
        machine("sample", ANYWHERE, kata={"kind": "Secret", "name": "a"}, kubeconfigSecretRef={"name": "b"}),
        dry_run=True,
    )["spec"]
    assert {name: created[name] for name in ("enabled", "priority", "killSwitch")} == {
        "enabled": True,
        "priority": 50,
        "killSwitch": False,
    }
    assert created["gracefulShutdownTimeout"] == created["nodeDrainTimeout"] == "5m"
    assert created["kubeconfigSecretRef"] == {"name": "b", "key": "value"}
    assert created["kata"] == {
        "kind": "Secret",
        "name": "a",
        "namespace": "5spot-system",
        "key": "kata-containers.toml",
        "restartService": "k0sworker.service",
    }
    assert "nodeTaints" not in created
    assert "killIfCommands" not in created


@pytest.mark.parametrize("missing", ["schedule", "clusterName", "bootstrapSpec", "infrastructureSpec"])
def test_a_machine_without_a_required_field_is_refused(api: Api, missing: str) -> None:
    body = machine("sample", ANYWHERE)
    del body["spec"][missing]
    status, causes = refusal(api, body)
    assert status == 422
    assert "Required" in causes[f"spec.{missing}"]


def test_a_name_that_no_label_holds_is_refused_at_creation(api: Api) -> None:
    api.create(machine("a" * 63, ANYWHERE), dry_run=True)
    with pytest.raises(ApiError, match=r"metadata\.name must be at most 63 characters") as caught:
        api.create(machine("a" * 64, ANYWHERE), dry_run=True)
    assert caught.value.status == 422


def test_the_cluster_cannot_be_changed(api: Api, namespace: str) -> None:
    api.create(machine("sample", namespace))
    with pytest.raises(ApiError, match="clusterName is immutable") as caught:
        api.patch(*MACHINE, "sample", namespace, {"spec": {"clusterName": "other"}})
    assert caught.value.body["details"]["causes"][0]["field"] == "spec.clusterName"
    api.patch(*MACHINE, "sample", namespace, {"spec": {"priority": 1}})


@pytest.mark.contract("A2")
def test_a_reference_has_no_namespace_and_typing_errors_are_told(api: Api) -> None:
    with pytest.raises(ApiError, match=r'unknown field "spec\.schedule\.namespace"'):
        api.create(machine("sample", ANYWHERE, schedule=reference(namespace="other")), dry_run=True)
    with pytest.raises(ApiError, match=r'unknown field "spec\.killswitch"'):
        api.create(machine("sample", ANYWHERE, killswitch=True), dry_run=True)


def test_conditions_are_told_apart_by_type(api: Api, namespace: str) -> None:
    api.create(machine("sample", namespace))
    for manager, kind in (("one", "Ready"), ("two", "Elsewhere")):
        body = {
            "apiVersion": MACHINE[0],
            "kind": MACHINE[1],
            "metadata": {"name": "sample", "namespace": namespace},
            "status": {"conditions": [{"type": kind, "status": "True"}]},
        }
        api.patch(
            *MACHINE, "sample", namespace, body, how="apply", subresource="status", field_manager=f"manager-{manager}"
        )
    status = api.get(*MACHINE, "sample", namespace)["status"]
    assert {condition["type"] for condition in status["conditions"]} == {"Ready", "Elsewhere"}


def test_the_memory_of_a_reconcile_is_stored_whole(api: Api, namespace: str) -> None:
    api.create(machine("sample", namespace))
    child = {"apiVersion": "a/v1", "kind": "A", "name": "sample", "namespace": namespace, "uid": "u"}
    status = {
        "phase": "Active",
        "message": "m",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": "2027-01-01T00:00:00Z",
                "reason": "MachineReady",
                "message": "m",
                "observedGeneration": 1,
            }
        ],
        "inSchedule": True,
        "ready": False,
        "providerID": "remote://1",
        "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"},
        "machineRef": child,
        "bootstrapRef": child,
        "infrastructureRef": child,
        "observedGeneration": 1,
        "lastScheduledTime": "2027-01-01T00:00:00Z",
        "nextCleanup": "2027-01-01T00:00:00Z",
        "shutdownRequestedTime": "2027-01-01T00:00:00.000001Z",
        "spotSchedule": {
            "resolved": False,
            "active": True,
            "reason": "ProviderNotFound",
            "message": "m",
            "providerGeneration": 3,
            "lastTransitionTime": "2027-01-01T00:00:00Z",
            "reference": {"kind": "A", "name": "b"},
        },
        "replacements": {"count": 1, "lastTime": "2027-01-01T00:00:00Z", "uid": "u"},
    }
    assert api.patch_status(*MACHINE, "sample", namespace, status)["status"] == status


REFUSED_SCHEDULES: dict[str, tuple[Json, str, str]] = {
    "days by number": ({"daysOfWeek": ["1-7"]}, "spec.daysOfWeek[0]", "mon, tue, wed"),
    "long day": ({"daysOfWeek": ["mon", "sunday"]}, "spec.daysOfWeek[1]", "sun in lower case"),
    "upper case": ({"daysOfWeek": ["Mon"]}, "spec.daysOfWeek[0]", "lower case"),
    "hour 24": ({"hoursOfDay": ["9-24"]}, "spec.hoursOfDay[0]", "0 to 23"),
    "minutes": ({"hoursOfDay": ["9:30"]}, "spec.hoursOfDay[0]", "use windows"),
    "zone": ({"timezone": "W. Europe"}, "spec.timezone", "should match"),
    "span without length": (
        {"windows": [{"from": "mon 06:00", "until": "mon  06:00"}]},
        "spec.windows[0]",
        "from and until must differ",
    ),
    "abbreviated zone": ({"timezone": "CEST"}, "spec.timezone", "CEST is Central European Summer Time; write"),
    "offset for a zone": ({"timezone": "UTC-5"}, "spec.timezone", "UTC-5 is an offset, which does not follow summer"),
    "unit of a lead time": ({"leadTime": "15 min"}, "spec.leadTime", 'did you mean "15m"?'),
    "name of a day": ({"daysOfWeek": ["Monday"]}, "spec.daysOfWeek[0]", 'did you mean "mon"?'),
    "time without zero": (
        {"exceptions": [{"date": "2027-01-04", "windows": [{"start": "9:00", "end": "10:00"}]}]},
        "spec.exceptions[0].windows[0].start",
        'did you mean "09:00"?',
    ),
    "long zone": ({"timezone": "A" * 65}, "spec.timezone", "more than 64"),
    "no length": ({"windows": [{"days": ["mon"], "start": "06:00", "end": "06:00"}]}, "spec.windows[0]", "differ"),
    "half a window": ({"windows": [{"days": ["mon"], "end": "06:00"}]}, "spec.windows[0]", "either"),
    "both forms": (
        {"windows": [{"days": ["mon"], "start": "06:00", "end": "07:00", "from": "mon 06:00"}]},
        "spec.windows[0]",
        "either",
    ),
    "no days": ({"windows": [{"days": [], "start": "06:00", "end": "07:00"}]}, "spec.windows[0].days", "at least 1"),
    "start at 24:00": (
        {"windows": [{"days": ["mon"], "start": "24:00", "end": "06:00"}]},
        "spec.windows[0].start",
        "HH:MM",
    ),
    "short time": ({"windows": [{"days": ["mon"], "start": "6:00", "end": "9:00"}]}, "spec.windows[0].end", "HH:MM"),
    "moment": ({"windows": [{"from": "monday", "until": "fri 06:00"}]}, "spec.windows[0].from", "mon 06:00"),
    "month 13": ({"exceptions": [{"date": "2026-13-40"}]}, "spec.exceptions[0].date", "a date YYYY-MM-DD that exists"),
    "exception without length": (
        {"exceptions": [{"date": "2027-12-24", "windows": [{"start": "06:00", "end": "06:00"}]}]},
        "spec.exceptions[0].windows[0]",
        "differ",
    ),
    "date twice": ({"exceptions": [{"date": "2027-12-24"}, {"date": "2027-12-24"}]}, "spec.exceptions[1]", "Duplicate"),
    "no offset": ({"validFrom": "2027-01-01T00:00:00"}, "spec.validFrom", "date, time and offset"),
    "no such day": ({"validFrom": "2027-02-30T00:00:00Z"}, "spec.validFrom", "date, time and offset"),
    "clipped to nothing": (
        {"validFrom": "2027-01-01T01:00:00+01:00", "validUntil": "2027-01-01T00:00:00Z"},
        "spec",
        "validFrom must be before validUntil",
    ),
    "lead": ({"leadTime": "169h"}, "spec.leadTime", "at most 168h"),
}


@pytest.mark.contract("C10")
@pytest.mark.parametrize(("spec", "field", "part"), REFUSED_SCHEDULES.values(), ids=REFUSED_SCHEDULES.keys())
def test_a_schedule_that_breaks_a_rule_is_refused_with_the_field_named(
    api: Api, spec: Json, field: str, part: str
) -> None:
    status, causes = refusal(api, schedule("sample", ANYWHERE, spec))
    assert status == 422
    assert part in causes[field]
    with pytest.raises(InvalidObject):
        validate(TimeBasedSpotScheduleSpec, spec)


ACCEPTED_SCHEDULES: dict[str, Json] = {
    "empty": {},
    "existing grammar": {"daysOfWeek": ["mon-thu", "fri , sat", "sun-tue"], "hoursOfDay": ["08-11", "13 - 17, 22-6"]},
    "windows": {
        "windows": [
            {"days": ["mon-fri"], "start": "22:00", "end": "06:00"},
            {"days": ["sat"], "start": "00:00", "end": "24:00"},
            {"from": "mon 06:00", "until": "fri 24:00"},
        ]
    },
    "exceptions": {"exceptions": [{"date": "2028-02-29"}, {"date": "2027-12-24", "windows": []}]},
    "clipped": {"validFrom": "2027-01-01T00:00:00Z", "validUntil": "2027-01-01T00:00:00-01:00", "leadTime": "168h"},
    "as much as may be": {
        "daysOfWeek": ["mon-fri"] * 64,
        "hoursOfDay": ["9-17"] * 64,
        "windows": [{"days": ["mon-fri"] * 7, "start": "22:00", "end": "06:00"}] * 32,
        "exceptions": [
            {"date": f"{2100 + n}-01-01", "windows": [{"start": "22:00", "end": "06:00"}] * 4} for n in range(366)
        ],
    },
}


@pytest.mark.parametrize("spec", ACCEPTED_SCHEDULES.values(), ids=ACCEPTED_SCHEDULES.keys())
def test_a_schedule_that_keeps_the_rules_is_taken(api: Api, spec: Json) -> None:
    created = api.create(schedule("sample", ANYWHERE, spec), dry_run=True)
    assert created["spec"] == {"daysOfWeek": [], "hoursOfDay": [], "timezone": "UTC", "enabled": True, **spec}
    assert validate(TimeBasedSpotScheduleSpec, spec) == validate(TimeBasedSpotScheduleSpec, created["spec"])


@pytest.mark.contract("C9")
def test_a_schedule_status_has_a_verdict_by_default_and_may_say_never(api: Api, namespace: str) -> None:
    created = api.create(schedule("sample", namespace, {}))
    assert "status" not in created, "a default must not invent a verdict where there is no status"
    status = api.patch_status(*SCHEDULE, "sample", namespace, {"observedGeneration": 1})["status"]
    assert status == {"active": False, "observedGeneration": 1}
    body = api.get(*SCHEDULE, "sample", namespace)
    body["status"] = {"active": True, "nextTransitionTime": None}
    assert api.replace(body, subresource="status")["status"] == {"active": True, "nextTransitionTime": None}
