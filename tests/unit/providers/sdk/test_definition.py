"""The declaration of a provider: names that follow from the kind, the definition, and refusals of bad declarations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel

from fivespot.providers.sdk import (
    ApiModel,
    Column,
    Context,
    Provider,
    Verdict,
)
from fivespot.providers.sdk.definition import metric_prefix, plural, short_names


class ToggleSpec(ApiModel):
    """Active while it is on."""

    up: bool
    """Whether it is on."""


def decide(spec: ToggleSpec, at: datetime) -> Verdict:
    return Verdict(spec.up)


TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=decide)


@pytest.mark.parametrize(
    ("kind", "many", "short", "metrics"),
    [
        ("WeekSchedule", "weekschedules", ("ws",), "fivespot_week"),
        ("TimeBasedSpotSchedule", "timebasedspotschedules", ("tbss",), "fivespot_time_based"),
        ("CapitalMarketsSchedule", "capitalmarketsschedules", ("cms",), "fivespot_capital_markets"),
        ("MarketSchedule", "marketschedules", (), "fivespot_market"),
        ("Toggle", "toggles", (), "fivespot_toggle"),
        ("Policy", "policies", (), "fivespot_policy"),
        ("HTTPCheck2", "httpcheck2s", ("httpc",), "fivespot_http_check2"),
        ("Schedule", "schedules", (), "fivespot_schedule"),
        ("Wish", "wishes", (), "fivespot_wish"),
    ],
)
def test_names_follow_from_the_kind(kind: str, many: str, short: tuple[str, ...], metrics: str) -> None:
    assert (plural(kind), short_names(kind), metric_prefix(kind)) == (many, short, metrics)


def test_a_spec_a_decision_and_a_name_are_all_it_takes() -> None:
    definition = TOGGLE.definition()
    names = definition["spec"]["names"]
    assert names == {"kind": "Toggle", "listKind": "ToggleList", "plural": "toggles", "singular": "toggle"}
    assert definition["metadata"]["labels"] == {
        "clusterctl.cluster.x-k8s.io": "",
        "clusterctl.cluster.x-k8s.io/move": "",
    }
    [version] = definition["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        *("Active", "NextTransition", "Age", "Reason", "Message")
    ]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["description"] == "Active while it is on."
    assert schema["properties"]["spec"]["required"] == ["up"]
    status = schema["properties"]["status"]
    assert status["required"] == ["active"]
    assert "default" not in status["properties"]["active"]
    overrides = schema["properties"]["spec"]["properties"]["overrides"]
    assert overrides["x-kubernetes-list-map-keys"] == ["name"]
    assert overrides["items"]["required"] == ["name", "active"]
    assert "overrides" in status["properties"]
    assert (TOGGLE.asynchronous, TOGGLE.takes_context, TOGGLE.poll) == (False, False, None)


def test_columns_stand_between_the_verdict_and_its_next_change_and_overrides_can_be_left_out() -> None:
    bare = Provider(
        "Toggle",
        spec=ToggleSpec,
        decide=decide,
        overrides=False,
        columns=(Column("Up", "boolean", ".spec.up"),),
        description="A switch.",
    ).definition()
    [version] = bare["spec"]["versions"]
    assert [column["name"] for column in version["additionalPrinterColumns"]][:3] == ["Active", "Up", "NextTransition"]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A switch."
    assert set(schema["properties"]["spec"]["properties"]) == {"up"}
    assert "overrides" not in schema["properties"]["status"]["properties"]


def test_any_pydantic_model_is_a_spec() -> None:
    class Plain(BaseModel):
        level: int = 3

    definition = Provider("Plain", spec=Plain, decide=lambda spec, at: Verdict(spec.level > 1)).definition()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["properties"]["level"]["default"] == 3
    assert schema["description"] == "A schedule of kind Plain."


def test_how_a_decision_is_called_follows_from_its_form() -> None:
    async def asking(spec: ToggleSpec, at: datetime) -> Verdict:
        return Verdict(spec.up)

    class Asker:
        async def __call__(self, spec: ToggleSpec, at: datetime, context: Context) -> Verdict:
            return Verdict(spec.up)

    def found(decide: Any) -> tuple[bool, bool, float | None]:
        provider = Provider("Toggle", spec=ToggleSpec, decide=decide)
        return provider.asynchronous, provider.takes_context, provider.poll

    assert found(asking) == (True, False, 60.0)
    assert found(Asker()) == (True, True, 60.0)
    assert found(lambda spec, at, context: Verdict(True)) == (False, True, None)
    assert found(lambda *arguments: Verdict(True)) == (False, False, None)
    assert found(lambda spec, at, *, extra=1: Verdict(True)) == (False, False, None)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kind": "toggle"}, ValueError, "'toggle' cannot be a kind"),
        ({"kind": "T" * 64}, ValueError, "cannot be a kind"),
        ({"plural": "Toggles"}, ValueError, "'Toggles' cannot be used as plural"),
        ({"metrics": "a-b"}, ValueError, "'a-b' cannot be used as metrics"),
        ({"spec": dict}, TypeError, "is no pydantic model"),
        ({"decide": lambda spec: Verdict(True)}, TypeError, r"decide must take \(spec, at\)"),
        ({"decide": lambda a, b, c, d: Verdict(True)}, TypeError, r"decide must take \(spec, at\)"),
        ({"poll": 0.0}, ValueError, "must be above zero"),
        ({"timeout": 0.0}, ValueError, "must be above zero"),
        ({"workers": -1}, ValueError, "must be above zero"),
    ],
)
def test_what_cannot_be_a_provider_is_refused_where_it_is_written(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    given: dict[str, Any] = {"kind": "Toggle", "spec": ToggleSpec, "decide": decide, **options}
    with pytest.raises(error, match=words):
        Provider(**given)
