"""The definition that follows from a provider's models: what a reader of the contract relies on is in every one."""

from __future__ import annotations

from typing import Any

import pytest

from fivespot.providers.sdk import ApiModel, Provider, Verdict
from fivespot.providers.sdk.schema import spec_model


class TideSpec(ApiModel):
    """The tides of a harbour."""

    harbour: str
    """Name of the harbour."""


def definition(**options: Any) -> dict[str, Any]:
    return Provider("TideSchedule", spec=TideSpec, decide=lambda spec, at: Verdict(True), **options).definition()


def schema(**options: Any) -> dict[str, Any]:
    [version] = definition(**options)["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]
    return found


@pytest.mark.contract("A14")
def test_it_is_a_namespaced_kind_of_the_providers_group_with_a_status_of_its_own() -> None:
    found = definition()
    assert found["metadata"]["name"] == "tideschedules.spotschedules.5spot.finos.org"
    assert found["spec"]["scope"] == "Namespaced"
    [version] = found["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert (version["served"], version["storage"]) == (True, True)


@pytest.mark.contract("C9")
def test_active_is_a_required_boolean_without_a_default() -> None:
    status = schema()["status"]
    assert "active" in status["required"]
    assert status["properties"]["active"]["type"] == "boolean"
    assert "default" not in status["properties"]["active"]


def test_the_models_own_words_are_what_kubectl_explains() -> None:
    found = schema()
    assert found["spec"]["properties"]["harbour"]["description"] == "Name of the harbour."
    [version] = definition(description="Tides.")["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["description"] == "Tides."


def test_overrides_are_added_to_spec_and_status_or_to_neither() -> None:
    found = schema()
    assert found["spec"]["properties"]["overrides"]["x-kubernetes-list-map-keys"] == ["name"]
    assert "overrides" in found["status"]["properties"]
    without = schema(overrides=False)
    assert "overrides" not in without["spec"]["properties"]
    assert "overrides" not in without["status"]["properties"]


def test_a_model_with_a_field_of_that_name_keeps_its_own() -> None:
    class Own(ApiModel):
        overrides: tuple[str, ...] = ()

    assert spec_model(Own, overrides=True) is Own
    assert spec_model(TideSpec, overrides=False) is TideSpec
    assert set(spec_model(TideSpec, overrides=True).model_fields) == {"harbour", "overrides"}


def test_columns_show_the_verdict_first_and_details_only_when_wide() -> None:
    [version] = definition()["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Active", "NextTransition", "Age", "Reason", "Message"]
    assert [column.get("priority", 0) for column in columns] == [0, 0, 0, 1, 1]


@pytest.mark.contract("B6.3")
def test_clusterctl_moves_the_kind_along() -> None:
    labels = definition()["metadata"]["labels"]
    assert {"clusterctl.cluster.x-k8s.io", "clusterctl.cluster.x-k8s.io/move"} <= set(labels)
