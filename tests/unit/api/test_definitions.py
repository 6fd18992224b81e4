"""The generated definitions: what must match to the byte, and that the committed files are the generated ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fivespot.api import names
from fivespot.api.scheduledmachine import definition as machine_definition
from fivespot.cli.crds.definitions import definitions, render, write
from fivespot.providers.registry import shipped_provider

MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def columns_of(definition: dict[str, Any], *, wide: bool) -> list[tuple[str, str, str]]:
    columns = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    return [(c["name"], c["type"], c["jsonPath"]) for c in columns if bool(c.get("priority")) == wide]


def test_committed_definitions_are_the_generated_ones() -> None:
    committed = {path.name: path.read_text() for path in (MANIFESTS / "crds").iterdir()}
    assert committed == render(), "run `./dev crds` and commit manifests/crds"


def test_writing_makes_the_folder_and_every_file(tmp_path: Path) -> None:
    written = write(tmp_path / "new" / "folder")
    assert {path.name: yaml.safe_load(path.read_text()) for path in written} == {
        f"{definition['spec']['names']['plural']}.yaml": definition for definition in definitions()
    }


def test_no_value_is_shared_by_a_yaml_anchor() -> None:
    assert not [line for text in render().values() for line in text.splitlines() if ": &id" in line or ": *id" in line]


def test_the_machine_kind_has_the_existing_names_and_columns() -> None:
    definition = machine_definition()
    assert definition["metadata"] == {
        "name": "scheduledmachines.5spot.finos.org",
        "labels": {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move-hierarchy": ""},
    }
    assert definition["spec"]["names"] == {
        "kind": "ScheduledMachine",
        "listKind": "ScheduledMachineList",
        "plural": "scheduledmachines",
        "singular": "scheduledmachine",
        "shortNames": ["sm"],
    }
    version = definition["spec"]["versions"][0]
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)
    assert columns_of(definition, wide=False) == [
        ("Phase", "string", ".status.phase"),
        ("Ready", "boolean", ".status.ready"),
        ("InSchedule", "boolean", ".status.inSchedule"),
        ("Enabled", "boolean", ".spec.enabled"),
        ("Schedule", "string", ".spec.schedule.kind"),
        ("KillSwitch", "boolean", ".spec.killSwitch"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    assert [name for name, _, _ in columns_of(definition, wide=True)] == ["Reason", "NextCleanup", "Message"]


def test_the_machine_spec_has_the_existing_fields_and_defaults() -> None:
    spec = schema_of(machine_definition())["properties"]["spec"]
    assert spec["required"] == ["schedule", "clusterName", "bootstrapSpec", "infrastructureSpec"]
    assert {name: field["default"] for name, field in spec["properties"].items() if "default" in field} == {
        "enabled": True,
        "priority": 50,
        "gracefulShutdownTimeout": "5m",
        "nodeDrainTimeout": "5m",
        "killSwitch": False,
    }
    assert set(spec["properties"]) == {
        *("schedule", "enabled", "clusterName", "bootstrapSpec", "infrastructureSpec", "machineTemplate", "priority"),
        *("gracefulShutdownTimeout", "nodeDrainTimeout", "killSwitch", "nodeTaints"),
        *("killIfCommands", "kubeconfigSecretRef", "kata"),
    }
    assert set(spec["properties"]["schedule"]["properties"]) == {"apiVersion", "kind", "name"}, "A2: no namespace"
    assert spec["properties"]["kubeconfigSecretRef"]["properties"]["key"]["default"] == "value"
    kata = spec["properties"]["kata"]["properties"]
    assert {name: field["default"] for name, field in kata.items() if "default" in field} == {
        "namespace": "5spot-system",
        "key": "kata-containers.toml",
        "restartService": "k0sworker.service",
    }


def test_the_machine_status_holds_the_memory_of_a_reconcile() -> None:
    status = schema_of(machine_definition())["properties"]["status"]
    members = status["properties"]
    assert set(members) == {
        *("phase", "message", "conditions", "inSchedule", "ready", "providerID", "nodeRef", "machineRef"),
        *("bootstrapRef", "infrastructureRef", "observedGeneration", "lastScheduledTime", "nextCleanup"),
        *("shutdownRequestedTime", "spotSchedule", "replacements"),
    }
    assert "required" not in status
    assert members["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert set(members["machineRef"]["properties"]) == {"apiVersion", "kind", "name", "namespace", "uid"}
    assert set(members["nodeRef"]["properties"]) == {"apiVersion", "kind", "name", "uid"}
    assert set(members["replacements"]["properties"]) == {"count", "lastTime", "uid"}
    assert set(members["spotSchedule"]["properties"]) == {
        *("resolved", "active", "reason", "message", "providerGeneration", "lastTransitionTime", "reference"),
        "referenceChangedTime",
    }
    assert set(members["spotSchedule"]["properties"]["reference"]["properties"]) == {"kind", "name"}


def test_the_time_based_kind_has_the_existing_names_columns_and_defaults() -> None:
    definition = shipped_provider("TimeBasedSpotSchedule").definition()
    assert definition["metadata"] == {
        "name": "timebasedspotschedules.spotschedules.5spot.finos.org",
        "labels": {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move": ""},
    }
    assert definition["spec"]["names"]["shortNames"] == ["tbss"]
    assert definition["spec"]["versions"][0]["name"] == "v1alpha1"
    assert columns_of(definition, wide=False) == [
        ("Active", "boolean", ".status.active"),
        ("Enabled", "boolean", ".spec.enabled"),
        ("Timezone", "string", ".spec.timezone"),
        ("NextTransition", "string", ".status.nextTransitionTime"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    spec, status = (schema_of(definition)["properties"][part] for part in ("spec", "status"))
    assert {name: field["default"] for name, field in spec["properties"].items() if "default" in field} == {
        "daysOfWeek": [],
        "hoursOfDay": [],
        "timezone": "UTC",
        "enabled": True,
    }
    assert "required" not in spec
    assert status["properties"]["active"] == {
        "description": status["properties"]["active"]["description"],
        "type": "boolean",
        "default": False,
    }
    assert set(status["properties"]) == {
        *("active", "conditions", "observedGeneration", "lastTransitionTime", "nextTransitionTime", "overrides")
    }
    assert status["properties"]["nextTransitionTime"]["nullable"] is True


def test_the_market_kind_has_the_existing_names_columns_and_defaults() -> None:
    definition = shipped_provider("CapitalMarketsSchedule").definition()
    assert definition["metadata"] == {
        "name": "capitalmarketsschedules.spotschedules.5spot.finos.org",
        "labels": {"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/move": ""},
    }
    assert definition["spec"]["names"]["shortNames"] == ["cms"]
    assert definition["spec"]["versions"][0]["name"] == "v1alpha1"
    assert columns_of(definition, wide=False) == [
        ("Active", "boolean", ".status.active"),
        ("Timezone", "string", ".spec.timezone"),
        ("NextTransition", "string", ".status.nextTransitionTime"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    spec, status = (schema_of(definition)["properties"][part] for part in ("spec", "status"))
    assert {name: field["default"] for name, field in spec["properties"].items() if "default" in field} == {
        "timezone": "UTC",
        "sessions": [],
        "holidays": [],
        "earlyCloses": [],
        "breaks": "Keep",
    }
    assert "required" not in spec
    session = spec["properties"]["sessions"]["items"]
    assert "required" not in session
    assert not [name for name, member in session["properties"].items() if "default" in member], "a second apply is none"
    early = spec["properties"]["earlyCloses"]["items"]
    assert early["required"] == ["date"]
    assert (early["properties"]["closeHour"]["minimum"], early["properties"]["closeHour"]["maximum"]) == (0, 23)
    # Entries may repeat: of those for one date the first counts.
    assert not {"x-kubernetes-list-type"} & set(spec["properties"]["earlyCloses"])
    assert spec["properties"]["holidays"]["maxItems"] == 366
    assert status["properties"]["active"]["default"] is False


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, member in schema.get("properties", {}).items():
        yield f"{path}.{name}", member
        yield from fields(member, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


@pytest.mark.parametrize("definition", definitions(), ids=lambda definition: definition["spec"]["names"]["plural"])
def test_every_field_is_explained(definition: dict[str, Any]) -> None:
    silent = [path for path, member in fields(schema_of(definition), "") if not member.get("description")]
    assert silent == [".metadata"]


@pytest.mark.parametrize("definition", definitions(), ids=lambda definition: definition["spec"]["names"]["plural"])
def test_every_string_and_list_of_a_spec_is_bounded(definition: dict[str, Any]) -> None:
    """The server estimates the cost of rules from these bounds, and a user's typing error cannot fill the store."""
    spec = schema_of(definition)["properties"]["spec"]
    unbounded = [
        path
        for path, member in fields(spec, "spec")
        if (member.get("type") == "string" and not {"maxLength", "enum"} & set(member))
        or (member.get("type") == "array" and "maxItems" not in member)
    ]
    assert unbounded == []


def load(path: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all((MANIFESTS / path).read_text()) if document]


def rules_of(path: str) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for document in load(path)
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def grant(groups: str, resources: str, verbs: str) -> set[tuple[str, str, str]]:
    return {(g, r, v) for g in groups.split() for r in resources.split() for v in verbs.split()}


def test_the_machine_controller_has_exactly_its_rights() -> None:
    assert rules_of("rbac/scheduledmachine-controller.yaml") == (
        grant("5spot.finos.org", "scheduledmachines", "list watch patch")
        | grant("5spot.finos.org", "scheduledmachines/status", "patch")
        | grant("5spot.finos.org", "scheduledmachines/finalizers", "update")
        | grant("cluster.x-k8s.io", "machines", "get list watch create patch delete")
        | grant("cluster.x-k8s.io", "clusters", "list watch")
        | grant(
            "bootstrap.cluster.x-k8s.io infrastructure.cluster.x-k8s.io k0smotron.io",
            "*",
            "get list watch create delete",
        )
        | grant("spotschedules.5spot.finos.org", "*", "list watch")
        | grant("admissionregistration.k8s.io", "validatingadmissionpolicies validatingadmissionpolicybindings", "get")
    )


def test_the_other_roles_have_exactly_their_rights() -> None:
    assert rules_of("rbac/timebasedspotschedule-controller.yaml") == (
        grant("spotschedules.5spot.finos.org", "timebasedspotschedules", "list watch")
        | grant("spotschedules.5spot.finos.org", "timebasedspotschedules/status", "patch")
    )
    assert rules_of("rbac/capitalmarketsschedule-controller.yaml") == (
        grant("spotschedules.5spot.finos.org", "capitalmarketsschedules", "list watch")
        | grant("spotschedules.5spot.finos.org", "capitalmarketsschedules/status", "patch")
    )
    assert rules_of("rbac/manualschedule-controller.yaml") == (
        grant("spotschedules.5spot.finos.org", "*", "list watch")
        | grant("spotschedules.5spot.finos.org", "manualschedules/status", "patch")
    )
    assert rules_of("rbac/runtime.yaml") == (
        grant("apiextensions.k8s.io", "customresourcedefinitions", "get list watch")
        | grant("events.k8s.io", "events", "create patch")
    )
    assert rules_of("rbac/leader-election.yaml") == grant("coordination.k8s.io", "leases", "create get update")
    election = load("rbac/leader-election.yaml")[0]
    assert election["kind"] == "Role"
    assert [rule.get("resourceNames") for rule in election["rules"]] == [None, [names.LEADER_LEASE]]


def test_every_role_is_bound_to_the_one_service_account() -> None:
    documents = [document for path in sorted((MANIFESTS / "rbac").iterdir()) for document in load(f"rbac/{path.name}")]
    roles = {(d["kind"], d["metadata"]["name"]) for d in documents if d["kind"] in {"Role", "ClusterRole"}}
    bindings = [d for d in documents if d["kind"].endswith("Binding")]
    assert {(d["roleRef"]["kind"], d["roleRef"]["name"]) for d in bindings} == roles
    account = {"kind": "ServiceAccount", "name": "5spot-controller", "namespace": names.SYSTEM_NAMESPACE}
    assert all(d["subjects"] == [account] for d in bindings)


def test_the_policy_knows_the_same_groups_and_prefixes_as_the_code() -> None:
    text = (MANIFESTS / "admission/policy.yaml").read_text()
    for group in {*names.BOOTSTRAP_GROUPS, *names.INFRASTRUCTURE_GROUPS}:
        assert f"'{group}'" in text
    for prefix in names.RESERVED_PREFIXES:
        assert f"key.startsWith('{prefix}')" in text
    for prefix in names.RESERVED_TAINT_PREFIXES:
        assert f"taint.key.startsWith('{prefix}')" in text


def test_the_pod_is_confined() -> None:
    pod = load("manager/deployment.yaml")[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65534
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "128Mi"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]


def test_service_monitor_disruption_budget_and_network_policy_select_the_pod() -> None:
    labels = load("manager/deployment.yaml")[0]["spec"]["template"]["metadata"]["labels"]
    service = load("manager/service.yaml")[0]
    monitor = load("monitoring/service-monitor.yaml")[0]
    assert service["metadata"]["name"] == "controller"
    assert service["spec"]["selector"] == labels
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    budget = load("manager/pod-disruption-budget.yaml")[0]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["maxUnavailable"] == 1, "a drain of the single replica's node must not be blocked"
    assert load("manager/network-policy.yaml")[0]["spec"]["podSelector"]["matchLabels"] == labels


def test_the_kustomization_leaves_nothing_out() -> None:
    listed = set(load("kustomization.yaml")[0]["resources"])
    folders = ("crds", "rbac", "admission", "manager")
    assert listed == {str(path.relative_to(MANIFESTS)) for name in folders for path in (MANIFESTS / name).iterdir()}
