"""Every list that has an entry for each shipped kind, held against the one declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fivespot.cli.crds.definitions import definitions
from fivespot.cli.new_provider.project import name_project
from fivespot.cli.options import CONTROLLERS
from fivespot.providers.registry import SHIPPED, shipped_provider, shipped_providers
from fivespot.providers.sdk import rbac_rules
from fivespot.runtime import ConfigError
from fivespot.testing.conformance import subject

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
NAMES = {kind.lower() for kind in SHIPPED}
PLURALS = {provider.plural for provider in shipped_providers()}


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def status_rights(path: Path) -> set[str]:
    """The plurals whose status the roles of a manifest may patch."""
    return {
        resource.removesuffix("/status")
        for document in documents(path)
        for rule in document.get("rules", ())
        for resource in rule["resources"]
        if resource.endswith("schedules/status")
    }


def test_a_shipped_provider_is_of_the_kind_it_is_registered_for() -> None:
    assert [provider.kind for provider in shipped_providers()] == sorted(SHIPPED)


def test_names_are_those_of_the_existing_5_spot() -> None:
    names = {provider.kind: (provider.plural, provider.metrics) for provider in shipped_providers()}
    assert names["TimeBasedSpotSchedule"] == ("timebasedspotschedules", "fivespot_time_based")
    assert names["CapitalMarketsSchedule"] == ("capitalmarketsschedules", "fivespot_capital_markets")
    assert names["ManualSchedule"] == ("manualschedules", "fivespot_manual")
    assert shipped_provider("ManualSchedule").definition()["spec"]["names"]["shortNames"][0] == "ms"


def test_no_two_kinds_claim_the_same_name() -> None:
    names = [crd["spec"]["names"] for crd in definitions()]
    claimed = [name for entry in names for name in (entry["plural"], *entry.get("shortNames", ()))]
    assert len(claimed) == len(set(claimed))


def test_the_manager_runs_every_kind() -> None:
    assert {*NAMES, "scheduledmachine"} == set(CONTROLLERS)


def test_the_conformance_kit_has_samples_of_every_kind() -> None:
    assert set(subject.SHIPPED) == set(SHIPPED)


@pytest.mark.parametrize("kind", [*SHIPPED, "ScheduledMachine"])
def test_no_new_provider_takes_a_kind_of_ours(kind: str) -> None:
    with pytest.raises(ConfigError, match="comes with fivespot"):
        name_project(kind)


def test_every_definition_is_a_manifest_and_is_installed() -> None:
    files = {path.stem for path in (MANIFESTS / "crds").glob("*.yaml")}
    assert files == {*PLURALS, "scheduledmachines"}
    installed = documents(MANIFESTS / "kustomization.yaml")[0]["resources"]
    assert {f"crds/{plural}.yaml" for plural in files} <= set(installed)


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_kind_has_a_role_that_grants_what_its_provider_needs(kind: str) -> None:
    provider = shipped_provider(kind)
    path = MANIFESTS / "rbac" / f"{provider.name}-controller.yaml"
    assert f"rbac/{path.name}" in documents(MANIFESTS / "kustomization.yaml")[0]["resources"]
    role = next(document for document in documents(path) if document["kind"] == "ClusterRole")
    granted = {
        (group, resource) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
    }
    needed = {
        (group, resource)
        for rule in rbac_rules(provider)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        # Granted to the whole manager, in runtime.yaml.
        if group not in {"events.k8s.io", "apiextensions.k8s.io"}
    }
    assert granted == needed


def test_a_namespaced_manager_may_write_the_status_of_every_kind() -> None:
    assert status_rights(MANIFESTS / "namespaced" / "roles.yaml") == PLURALS


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_kind_has_a_page_that_the_index_links(kind: str) -> None:
    page = f"{kind.lower()}.md"
    assert (ROOT / "docs" / page).exists()
    assert f"[{kind}]({page})" in (ROOT / "docs" / "README.md").read_text()
