"""B4.8: an embedded spec may hold credentials. B4.6 and B2.8, where the bodies of our requests show them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from controlplane import ControlPlane
from harness import MANAGER_USER, ManagerProcess, install
from harness.providers import ProviderKind
from support import eventually, make_namespace
from support.machines import MACHINE, bootstrap, infrastructure
from support.measurements import log_bodies
from support.scenario import INFRASTRUCTURE, MACHINES, Scenario

MARK = "S3cr3tMarker"
"""Part of every credential here; it must come up nowhere."""

BOOTSTRAP_SPEC = {"token": f"{MARK}-token", "files": [{"content": f'#!/bin/sh\necho "{MARK}-script"\n'}]}
INFRASTRUCTURE_SPEC = {"size": "large", "userData": {"password": f"{MARK}-password"}}

CHOOSY: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "choosymachines.infrastructure.cluster.x-k8s.io",
        "labels": {"cluster.x-k8s.io/v1beta2": "v1beta1"},
    },
    "spec": {
        "group": "infrastructure.cluster.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "ChoosyMachine", "plural": "choosymachines"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "pin": {"type": "string", "pattern": "^[0-9]+$"},
                                    "mode": {"type": "string", "enum": ["a", "b"]},
                                    "port": {"type": "integer"},
                                    "key": {
                                        "type": "string",
                                        "maxLength": 200,
                                        "x-kubernetes-validations": [
                                            {
                                                "rule": "self.startsWith('ssh-')",
                                                "messageExpression": "'no key: ' + self",
                                            }
                                        ],
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""A kind that refuses the credentials that it is given: the API server quotes them in its answer."""


@pytest.mark.contract("B4.8")
@pytest.mark.timeout(240)
def test_what_an_embedded_spec_holds_is_told_nowhere(
    own_control_plane: Callable[..., ControlPlane], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = ("5spot.finos.org", "scheduledmachines"), ("5spot.finos.org", "scheduledmachines/status")
    log_bodies(monkeypatch, *ours, ("cluster.x-k8s.io", "machines"))
    plane = own_control_plane()
    install(plane)
    api = plane.api
    plane.install_crds([CHOOSY])
    provider = ProviderKind(api, "Played")
    provider.install()
    namespace = make_namespace(api, "secrets")
    provider.create(namespace, active=True)
    embedded = {
        "bootstrapSpec": bootstrap(spec=BOOTSTRAP_SPEC),
        "infrastructureSpec": infrastructure(spec=INFRASTRUCTURE_SPEC),
    }
    scenario = Scenario(api, namespace, provider)
    refused = Scenario(api, namespace, provider, "refused")
    with ManagerProcess(plane, "-vv") as manager:
        scenario.create(**embedded)
        scenario.wait_made()
        made = scenario.child(INFRASTRUCTURE)
        assert made is not None
        assert made["spec"] == INFRASTRUCTURE_SPEC, "it was passed on, whole"

        # Refused by the schema, which quotes what it refuses.
        for field, value in (
            ("pin", f"{MARK}-pin"),
            ("mode", f"{MARK}-mode"),
            ("port", f"{MARK}-port"),
            ("key", f"{MARK}-key"),
        ):
            spec = {field: value}
            choosy = infrastructure(kind="ChoosyMachine", spec=spec)
            if refused.find() is None:
                refused.create(**{**embedded, "infrastructureSpec": choosy})
            else:
                path = "/spec/infrastructureSpec/spec"
                change = [{"op": "replace", "path": path, "value": spec}]
                api.patch(*MACHINE, "refused", namespace, change, how="json")
            eventually(lambda field=field: f"spec.{field}" in refused.status["message"], what=f"{field} is refused")  # type: ignore[misc]
            status = refused.wait_phase("Error", "MachineCreationFailed")
            assert "create choosymachines" in status["message"]
            assert "(hidden)" in status["message"]

        # Shutdown, template edits, replacement: every other thing that is told.
        scenario.edit(infrastructureSpec=infrastructure(spec={**INFRASTRUCTURE_SPEC, "more": f"{MARK}-more"}))
        scenario.wait_condition("UpToDate", "False")
        scenario.hold_machine()
        scenario.active(False)
        scenario.wait_phase("ShuttingDown")
        seen = [manager.debug(view) for view in ("plans", "queues", "informers", "tasks")]
        scenario.let_machine_go()
        scenario.wait_phase("Inactive")
        eventually(lambda: len(scenario.events()) >= 3 and refused.events("MachineCreationFailed"), what="events")
        told = {
            "log": manager.log.read_text(),
            "events": json.dumps(api.list("events.k8s.io/v1", "Event", namespace)),
            "status": json.dumps([s.status for s in (scenario, refused)]),
            "debug": json.dumps([seen, [manager.debug(view) for view in ("plans", "queues", "informers", "tasks")]]),
            "metrics": json.dumps(list(manager.metrics())),
            "health": json.dumps([manager.health(path) for path in ("/readyz?verbose", "/healthz", "/health/status")]),
        }
    assert "choosymachines" in told["log"], "the refusals were logged"
    assert "choosymachines" in told["events"]
    assert [where for where, text in told.items() if MARK in text] == []

    # By the way, what the server was asked to write.
    bodies = [e for e in plane.audit() if e["user"]["username"] == MANAGER_USER and e["verb"] == "patch"]
    reports = [e for e in bodies if e["objectRef"].get("subresource") == "status"]
    assert len(reports) >= 6
    for event in reports:
        body = event["requestObject"]
        assert set(body) == {"metadata", "status"}
        assert set(body["metadata"]) == {"uid", "resourceVersion"}, "a patch that arrives late must fail"
    assert not [e for e in bodies if MARK in json.dumps(e)]
    deletes = [e for e in plane.audit() if e["user"]["username"] == MANAGER_USER and e["verb"] == "delete"]
    machines = [e for e in deletes if e["objectRef"]["resource"] == MACHINES[1].lower() + "s"]
    assert len(machines) == 1
    assert all(e["requestObject"]["preconditions"].get("uid") for e in machines), "never by name alone"
