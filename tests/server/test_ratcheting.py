"""Objects that are older than a rule: they can still be worked with, shut down and deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, ApiError, ControlPlane, read_crds
from support import eventually
from support.machines import (
    MACHINE,
    MARKET,
    SCHEDULE,
    bootstrap,
    infrastructure,
    machine,
    market,
    reference,
    schedule,
    taint,
    without_rules,
)

pytestmark = pytest.mark.server

Json = dict[str, Any]

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
NAMESPACE = "default"

OLD_MACHINES: dict[str, Json] = {
    "long-cluster-name": {"clusterName": "a" * 70},
    "cluster-name": {"clusterName": "-a"},
    "schedule-group": {"schedule": reference(apiVersion="batch/v1")},
    "schedule-kind": {"schedule": reference(kind="lower")},
    "schedule-name": {"schedule": reference(name="Upper")},
    "core-version": {"bootstrapSpec": bootstrap("v1")},
    "empty-kind": {"infrastructureSpec": infrastructure(kind="")},
    "embedded-name": {"bootstrapSpec": bootstrap(metadata={"name": "x", "namespace": "y"})},
    "reserved-labels": {"machineTemplate": {"labels": {"kubernetes.io/os": "x"}, "annotations": {"k8s.io/x": ""}}},
    "label-syntax": {"machineTemplate": {"labels": {"a b": "c d"}, "annotations": {"a b": ""}}},
    "many-labels": {"machineTemplate": {"labels": {f"k{n}": "" for n in range(65)}}},
    "embedded-labels": {"infrastructureSpec": infrastructure(metadata={"labels": {"cluster.x-k8s.io/x": ""}})},
    "empty-version": {"machineTemplate": {"version": "", "failureDomain": ""}},
    "priority": {"priority": 256},
    "grace": {"gracefulShutdownTimeout": "1h30m"},
    "long-grace": {"gracefulShutdownTimeout": "48h", "nodeDrainTimeout": "2881m"},
    "endless-grace": {"gracefulShutdownTimeout": "9" * 40 + "h"},
    "taint-key": {"nodeTaints": [taint("a b"), taint("node.kubernetes.io/x"), taint("node.cluster.x-k8s.io/x")]},
    "taint-value": {"nodeTaints": [taint("a", value="x" * 64)]},
    "taint-effect": {"nodeTaints": [taint("a", "Never")]},
    "taint-twice": {"nodeTaints": [taint("a"), taint("a", value="b")]},
    "many-taints": {"nodeTaints": [taint(f"k{n}") for n in range(65)]},
    "commands": {"killIfCommands": ["", "x" * 300, *["y"] * 100]},
    "kata": {"kata": {"kind": "Pod", "name": ""}, "kubeconfigSecretRef": {"name": "", "key": ""}},
    "n" * 70: {},
}

OLD_SCHEDULES: dict[str, Json] = {
    "days": {"daysOfWeek": ["1-7", "sunday"]},
    "hours": {"hoursOfDay": ["9-24", "9:30"]},
    "many-days": {"daysOfWeek": ["mon"] * 65, "hoursOfDay": ["9"] * 65},
    "zone": {"timezone": "W. Europe Standard Time"},
    "long-zone": {"timezone": "A" * 65},
    "no-length": {"windows": [{"days": ["mon"], "start": "06:00", "end": "06:00"}]},
    "half-a-window": {"windows": [{"days": [], "start": "6:00"}, {"from": "monday"}]},
    "exception": {"exceptions": [{"date": "2026-13-40", "windows": [{"start": "6", "end": "6"}]}]},
    "clip": {"validFrom": "soon", "validUntil": "later"},
    "clipped-to-nothing": {"validFrom": "2028-01-01T00:00:00Z", "validUntil": "2027-01-01T00:00:00Z"},
    "lead": {"leadTime": "1w"},
}

OLD_MARKETS: dict[str, Json] = {
    "sessions": {"sessions": [{"daysOfWeek": ["1-5"], "hoursOfDay": ["9:30-16"]}]},
    "session-forms": {"sessions": [{"open": "9:30", "hoursOfDay": ["9"], "breaks": [{"start": "noon", "end": ""}]}]},
    "holidays": {"holidays": ["2026-13-40", *["2026-12-25"] * 400]},
    "early-closes": {"earlyCloses": [{"date": "2026-13-40", "closeHour": 24}, {"date": "2026-12-24"}]},
    "special-sessions": {"specialSessions": [{"date": "soon", "open": "9", "close": "9"}], "breaks": "Never"},
}

JUDGED_AGAIN = {"clipped-to-nothing"}
"""Breaks a rule about the spec as a whole, which judges every change of the spec."""

FINALIZER = "5spot.finos.org/scheduledmachine"


@pytest.fixture(scope="module")
def api(module_control_plane: Callable[..., ControlPlane]) -> Api:
    """A server that took all those objects, and after that got the definitions of today."""
    earlier = map(without_rules, read_crds(MANIFESTS / "crds"))
    plane = module_control_plane(crds=earlier, install_crds=False, controller_manager=False, audit=False)
    bodies = [machine(name, NAMESPACE, **changes) for name, changes in OLD_MACHINES.items()]
    bodies += [schedule(name, NAMESPACE, spec) for name, spec in OLD_SCHEDULES.items()]
    bodies += [market(name, NAMESPACE, spec) for name, spec in OLD_MARKETS.items()]
    for body in bodies:
        body["metadata"]["finalizers"] = [FINALIZER]
    plane.api.create_many(bodies)
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "crds"))
    kinds = MACHINE, SCHEDULE, MARKET
    eventually(lambda: all(_is_judged(plane.api, kind) for kind in kinds), what="the rules are in force")
    return plane.api


def _is_judged(api: Api, kind: tuple[str, str]) -> bool:
    bad = {
        MACHINE: machine("bad", NAMESPACE, priority=256),
        SCHEDULE: schedule("bad", NAMESPACE, {"timezone": "1"}),
        MARKET: market("bad", NAMESPACE, {"timezone": "1"}),
    }[kind]
    try:
        api.create(bad, dry_run=True)
    except ApiError as error:
        return error.status == 422
    return False


CASES = [
    *((MACHINE, name, {"phase": "ShuttingDown", "message": "on its way"}) for name in OLD_MACHINES),
    *((SCHEDULE, name, {"active": False, "observedGeneration": 1}) for name in OLD_SCHEDULES),
    *((MARKET, name, {"active": False, "observedGeneration": 1}) for name in OLD_MARKETS),
]
EDITS = {MACHINE: {"enabled": False}, SCHEDULE: {"enabled": False}, MARKET: {"lateOpens": []}}


@pytest.mark.contract("B1.17")
@pytest.mark.parametrize(("kind", "name", "status"), CASES, ids=[f"{kind[1]}-{name}" for kind, name, _ in CASES])
def test_an_object_older_than_a_rule_takes_status_metadata_and_loses_its_finalizer(
    api: Api, kind: tuple[str, str], name: str, status: Json
) -> None:
    old = api.get(*kind, name, NAMESPACE)
    # It does break a rule of today: as a new object it is refused.
    again = {**old, "metadata": {"name": f"{name}-2"[-80:], "namespace": NAMESPACE}}
    with pytest.raises(ApiError) as caught:
        api.create(again, dry_run=True)
    assert caught.value.status == 422

    assert status.items() <= api.patch_status(*kind, name, NAMESPACE, status)["status"].items()
    metadata = {"labels": {"touched": "yes"}, "annotations": {"example.com/x": "y"}, "finalizers": [FINALIZER, "a.b/c"]}
    api.patch(*kind, name, NAMESPACE, {"metadata": metadata})
    if name not in JUDGED_AGAIN:
        api.patch(*kind, name, NAMESPACE, {"spec": EDITS[kind]})
    api.delete(*kind, name, NAMESPACE)
    deleting = api.patch_status(
        *kind, name, NAMESPACE, {**status, "conditions": [{"type": "Ready", "status": "False"}]}
    )
    removal = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": deleting["metadata"]["resourceVersion"]},
        {"op": "replace", "path": "/metadata/finalizers", "value": []},
    ]
    api.patch(*kind, name, NAMESPACE, removal, how="json")
    assert api.find(*kind, name, NAMESPACE) is None
