"""The small parts of the kit: names, definitions, rights, steadiness, environment, and who looked at what."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from fivespot.contract import Reference
from fivespot.providers import sdk
from fivespot.providers.registry import SHIPPED, shipped_provider, shipped_providers
from fivespot.providers.sdk import (
    SCHEDULES,
    ApiModel,
    Column,
    Context,
    Dwell,
    Provider,
    Verdict,
    dwell,
    hysteresis,
    rbac_manifests,
    rbac_rules,
)
from fivespot.providers.sdk.decider import Prepared
from fivespot.providers.sdk.definition import metric_prefix, plural, short_names
from fivespot.providers.sdk.dependencies import Readers, ReadTarget
from fivespot.providers.sdk.due_batch import Together
from fivespot.providers.sdk.environment import in_pod, settings_from
from fivespot.providers.sdk.object_state import Decision
from fivespot.runtime.clock import LoopClock
from fivespot.runtime.errors import ConfigError
from fivespot.runtime.objects import GroupKind, Key, Resource

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class ToggleSpec(ApiModel):
    """Active while it is on."""

    on: bool
    """Whether it is on."""


def decide(spec: ToggleSpec, at: datetime) -> Verdict:
    return Verdict(spec.on)


TOGGLE = Provider("Toggle", spec=ToggleSpec, decide=decide)


# Names ---------------------------------------------------------------------------------------------------------------


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


def test_the_names_that_matter_are_those_of_the_existing_5_spot() -> None:
    assert sorted(SHIPPED) == [provider.kind for provider in shipped_providers()]
    names = {provider.kind: (provider.plural, provider.metrics) for provider in shipped_providers()}
    assert names["TimeBasedSpotSchedule"] == ("timebasedspotschedules", "fivespot_time_based")
    assert names["CapitalMarketsSchedule"] == ("capitalmarketsschedules", "fivespot_capital_markets")
    assert names["ManualSchedule"] == ("manualschedules", "fivespot_manual")
    assert shipped_provider("ManualSchedule").definition()["spec"]["names"]["shortNames"][0] == "ms"


# The provider --------------------------------------------------------------------------------------------------------


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
    assert schema["properties"]["spec"]["required"] == ["on"]
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
        columns=(Column("On", "boolean", ".spec.on"),),
        description="A switch.",
    ).definition()
    [version] = bare["spec"]["versions"]
    assert [column["name"] for column in version["additionalPrinterColumns"]][:3] == ["Active", "On", "NextTransition"]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["description"] == "A switch."
    assert set(schema["properties"]["spec"]["properties"]) == {"on"}
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
        return Verdict(spec.on)

    class Asker:
        async def __call__(self, spec: ToggleSpec, at: datetime, context: Context) -> Verdict:
            return Verdict(spec.on)

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


def test_a_verdict_names_its_reason_and_takes_no_instant_without_a_zone() -> None:
    assert (Verdict(True).reason, Verdict(False).reason) == ("Active", "Inactive")
    with pytest.raises(ValueError, match=r"Verdict\.until .* has no time zone"):
        Verdict(True, datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake


def test_a_context_reads_nothing_that_was_not_declared() -> None:
    context = Context("ns", "name")
    with pytest.raises(ValueError, match="declare SCHEDULES"):
        context.schedule("Kind", "name")
    with pytest.raises(ValueError, match="declare it in the provider's reads"):
        context.get(Resource("", "v1", "configmaps", "ConfigMap"), "name")


# Rights --------------------------------------------------------------------------------------------------------------


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


# Steadiness ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "active", "expected"),
    [(0.9, None, True), (0.8, False, True), (0.5, True, True), (0.5, False, False), (0.5, None, False),
     (0.2, True, False), (0.1, True, False)],
)  # fmt: skip
def test_between_two_thresholds_nothing_changes(value: float, active: bool | None, expected: bool) -> None:
    assert hysteresis(value, on=0.8, off=0.2, active=active) is expected
    # Mirrored: low values mean active.
    assert hysteresis(-value, on=-0.8, off=-0.2, active=active) is expected


def test_no_data_is_no_low_value() -> None:
    with pytest.raises(ValueError, match="not a number"):
        hysteresis(math.nan, on=1, off=0, active=True)
    with pytest.raises(ValueError, match="must differ"):
        hysteresis(0.5, on=1, off=1, active=True)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50), st.floats(0, 0.5), st.floats(0.5, 1))
def test_a_value_that_stays_within_the_band_flips_nothing(values: list[float], off: float, on: float) -> None:
    if off == on:
        return
    active: bool | None = None
    for value in values:
        before, active = active, hysteresis(value, on=on, off=off, active=active)
        if off < value < on:
            assert active is bool(before)


HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def test_a_state_lasts_for_its_least_time() -> None:
    def held(wanted: bool, minutes: int, active: bool | None = True) -> Dwell:
        at = NOON + timedelta(minutes=minutes)
        return dwell(wanted, at, active=active, since=NOON, least_active=HOUR, least_inactive=2 * HOUR)

    assert held(False, 30) == Dwell(True, NOON + HOUR)
    assert held(False, 60) == Dwell(False)
    assert held(True, 30) == Dwell(True)
    assert held(True, 90, active=False) == Dwell(False, NOON + 2 * HOUR)
    assert held(False, 1, active=None) == Dwell(False), "nothing is known, nothing is held"
    assert held(False, -30) == Dwell(False), "a start in the future is a clock that was set"
    assert dwell(False, NOON, active=True, since=None, least_active=HOUR) == Dwell(False)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_no_state_is_shorter_than_its_least_time(wishes: list[bool]) -> None:
    active, since, flips = False, NOON - 10 * HOUR, []
    for minute, wanted in enumerate(wishes):
        at = NOON + timedelta(minutes=minute)
        found = dwell(
            wanted,
            at,
            active=active,
            since=since,
            least_active=timedelta(minutes=7),
            least_inactive=timedelta(minutes=3),
        )
        if found.active is not active:
            flips.append((at, at - since, active))
            active, since = found.active, at
    assert all(lasted >= timedelta(minutes=7 if was else 3) for _, lasted, was in flips)


# Many at once --------------------------------------------------------------------------------------------------------


@pytest.mark.looptime
async def test_all_that_are_due_are_decided_at_the_first_look_and_once() -> None:
    asked: list[tuple[str, datetime]] = []
    together = Together(LoopClock(NOON), lambda key, at: asked.append((key.name, at)))
    keys = [Key("ns", f"k{number}") for number in range(6)]
    for number, key in enumerate(keys):
        together.expect(key, NOON + number * MINUTE)
    together.expect(keys[0], NOON + MINUTE)
    together.expect(keys[4], None)
    together.forget(keys[3])
    now = NOON + 4 * MINUTE
    await together.decide_due(now)
    assert sorted(asked) == [("k0", now), ("k1", now), ("k2", now)]
    await together.decide_due(now)
    assert len(asked) == 3
    together.expect(keys[0], NOON + MINUTE)
    await together.decide_due(now)
    assert len(asked) == 4, "it may be expected again"


def test_a_decision_is_good_until_something_may_be_different() -> None:
    spec = Prepared("uid", 1)
    decision = Decision(spec, NOON, Verdict(True, NOON + 40 * SECOND))
    assert decision.holds(spec, NOON)
    assert decision.holds(spec, NOON + 39 * SECOND)
    assert not decision.holds(spec, NOON + 40 * SECOND), "it changes then"
    assert not decision.holds(Prepared("uid", 1), NOON), "read anew"
    assert not decision.holds(spec, NOON - SECOND), "the clock was set"
    endless = Decision(spec, NOON, Verdict(True, again=NOON + 30 * SECOND))
    assert endless.holds(spec, NOON + 29 * SECOND)
    assert not endless.holds(spec, NOON + 30 * SECOND), "it wants to look again"
    assert not Decision(spec, NOON, Verdict(True)).holds(spec, NOON + HOUR)


@pytest.mark.looptime
async def test_what_is_no_longer_expected_does_not_pile_up() -> None:
    together = Together(LoopClock(NOON), lambda key, at: None)
    for number in range(10_000):
        together.expect(Key("ns", "one"), NOON + timedelta(seconds=number))
    assert len(together._queue) < 100


# Who looked at what --------------------------------------------------------------------------------------------------

KIND, OTHER = GroupKind("g", "Kind"), GroupKind("g", "Other")


def target(name: str, kind: GroupKind = KIND) -> ReadTarget:
    return ReadTarget(kind, Key("ns", name))


def test_those_who_looked_at_something_are_found_and_others_are_not() -> None:
    readers = Readers()
    one, two = Key("ns", "one"), Key("ns", "two")
    for reader, names in ((one, ["a", "b"]), (two, ["b"])):
        readers.begin(reader)
        for name in names:
            readers.looked(reader, target(name))
        readers.end(reader)
    assert set(readers.of(target("b"))) == {one, two}
    assert set(readers.of(target("a"))) == {one}
    assert readers.of(target("c")) == ()
    assert set(readers.of_kind(KIND)) == {one, two}
    assert set(readers.of_kind(OTHER)) == set()
    readers.begin(one)
    readers.looked(one, target("c", OTHER))
    assert set(readers.of(target("a"))) == {one}, "until the new decision is complete"
    readers.end(one)
    assert readers.of(target("a")) == ()
    assert readers.kinds() == {KIND, OTHER}
    readers.forget(one)
    assert readers.kinds() == {KIND}
    readers.forget(two)
    readers.forget(two)
    assert (readers.kinds(), readers.of(target("b"))) == (frozenset(), ())


# The environment -----------------------------------------------------------------------------------------------------


def test_in_a_pod_it_serves_and_stands_for_election_and_elsewhere_it_does_not() -> None:
    inside = settings_from({}, ["toggle", "bell"], pod=True, identity="me")
    assert inside.serving is not None
    assert (inside.serving.metrics_port, inside.serving.health_port, inside.serving.bind_address) == (
        *(8080, 8081, "0.0.0.0"),
    )
    assert inside.election is not None
    assert (inside.election.namespace, inside.election.name) == ("5spot-system", "5spot-bell-toggle-leader")
    assert (inside.election.identity, inside.election.members) == ("me", ("bell", "toggle"))
    outside = settings_from({}, ["toggle"], pod=False, identity="me")
    assert (outside.serving, outside.election) == (None, None)


def test_the_variables_of_the_manager_are_read() -> None:
    environ = {
        "METRICS_PORT": "0",
        "HEALTH_PORT": "9081",
        "ENABLE_LEADER_ELECTION": "true",
        "LEASE_NAME": "mine",
        "POD_NAMESPACE": "team",
        "POD_NAME": "pod-1",
        "LEASE_DURATION_SECONDS": "30",
        "LEASE_RENEW_DEADLINE_SECONDS": "20",
        "LEASE_RETRY_PERIOD_SECONDS": "4",
    }
    found = settings_from(environ, ["toggle"], pod=False, identity="me")
    assert found.serving is not None
    assert (found.serving.metrics_port, found.serving.health_port, found.serving.bind_address) == (
        *(0, 9081, "127.0.0.1"),
    )
    assert found.election is not None
    assert (found.election.namespace, found.election.name, found.election.identity) == ("team", "mine", "pod-1")
    assert found.election.timings.lease_duration == 30
    assert settings_from({"ENABLE_LEADER_ELECTION": "false"}, ["toggle"], pod=True, identity="me").election is None


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"METRICS_PORT": "http"}, "METRICS_PORT: 'http' is no port"),
        ({"HEALTH_PORT": "70000"}, "HEALTH_PORT: '70000' is no port"),
        ({"METRICS_PORT": "8081"}, "are both 8081; they must differ"),
        ({"ENABLE_LEADER_ELECTION": "maybe"}, "ENABLE_LEADER_ELECTION: 'maybe' is neither true nor false"),
        ({"LEASE_DURATION_SECONDS": "long"}, "LEASE_DURATION_SECONDS: 'long' is no number"),
        ({"LEASE_DURATION_SECONDS": "5"}, "LEASE_DURATION_SECONDS, LEASE_RENEW_DEADLINE_SECONDS"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        settings_from(environ, ["toggle"], pod=True, identity="me")


def test_a_pod_is_told_by_its_environment_unless_a_kubeconfig_is_named() -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert in_pod(pod, None)
    assert not in_pod({}, None)
    assert not in_pod(pod, "file")
    assert not in_pod({**pod, "KUBECONFIG": "file"}, None)


def test_a_reference_is_a_kind_and_a_name() -> None:
    assert str(Reference("Kind", "name")) == "Kind/name"


# The page ------------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[4] / "docs" / "provider-sdk.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


async def test_the_examples_of_the_page_are_providers() -> None:
    toggles, busy, _ = examples()
    toggle, spaces = _run(toggles, "TOGGLE")
    assert toggle.definition()["spec"]["names"]["plural"] == "toggles"
    assert toggle.decide(spaces["ToggleSpec"](on=True), NOON) == Verdict(True, reason="On")
    queue, spaces = _run(busy, "BUSY")
    assert (queue.asynchronous, queue.poll, queue.takes_context) == (True, 30, True)
    assert queue.definition()["spec"]["names"]["kind"] == "BusyQueue"
    length = 150.0

    async def length_of(name: str) -> float:
        return length

    spaces["length_of"] = length_of
    spec = spaces["BusySpec"](queue="builds")
    context = Context("ns", "q")
    assert await queue.decide(spec, NOON, context) == Verdict(True, reason="Busy")
    length = 0.0
    context = Context("ns", "q", active=True, since=NOON)
    held = await queue.decide(spec, NOON + 10 * MINUTE, context)
    assert held == Verdict(True, reason="Busy", again=NOON + 30 * MINUTE)
    assert await queue.decide(spec, NOON + 30 * MINUTE, context) == Verdict(False, reason="Idle")


def _run(text: str, name: str) -> tuple[Any, dict[str, Any]]:
    spaces: dict[str, Any] = {"__name__": "example"}
    exec(compile(text, str(PAGE), "exec"), spaces)
    return spaces[name], spaces


def test_the_page_names_every_parameter_of_a_provider_and_every_name_of_the_kit() -> None:
    text = PAGE.read_text()
    parameters = [field.name for field in fields(Provider) if field.init and field.name not in {"_", "status"}]
    assert [name for name in parameters if f"| `{name}` |" not in text] == []
    told_elsewhere = {"Dwell", "Folded", "Override", "Remembered", "broken_status", "decided_status", "OVERRIDDEN"}
    told_elsewhere |= {"DECISION_FAILED", "INVALID_SPEC", "UNREADABLE_PATIENCE"}
    assert [name for name in sdk.__all__ if name not in told_elsewhere and f"`{name}" not in text] == []
