"""Reading a stored ScheduledMachine: every field has a value, and no credentials are included."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.contract import Reference
from fivespot.controllers.scheduledmachine.spec import SpecView, read_spec
from fivespot.runtime import GroupKind
from support.machines import bootstrap, infrastructure, machine, taint


def read(**changes: Any) -> SpecView:
    return read_spec(machine("web-1", "team-a", **changes))


def test_an_ordinary_object_has_no_problems_and_the_defaults() -> None:
    found = read()
    assert found.problems == ()
    assert found.schedule == Reference("TimeBasedSpotSchedule", "hours")
    assert (found.enabled, found.kill_switch, found.priority, found.tainted) == (True, False, 50, False)
    assert found.grace == found.drain_timeout == timedelta(minutes=5)
    assert found.drains
    assert found.bootstrap is not None
    assert found.bootstrap.group_kind == GroupKind("bootstrap.cluster.x-k8s.io", "StandInBootstrap")
    assert found.infrastructure is not None
    assert str(found.infrastructure) == "StandInMachine (infrastructure.cluster.x-k8s.io/v1beta1)"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("0s", timedelta(0)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("24h", timedelta(hours=24)),
        ("00000000000m", timedelta(0)),
        ("0000000090s", timedelta(seconds=90)),
        ("25h", timedelta(hours=24)),
        ("9" * 5000 + "s", timedelta(hours=24)),
        ("٥m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=5)),
        ("", timedelta(minutes=5)),
        (7, timedelta(minutes=5)),
        (None, timedelta(minutes=5)),
    ],
)
def test_a_timeout_is_what_it_says_and_never_more_than_a_day(text: Any, length: timedelta) -> None:
    found = read(gracefulShutdownTimeout=text, nodeDrainTimeout=text)
    assert (found.grace, found.drain_timeout) == (length, length)


@pytest.mark.contract("B2.5")
def test_zero_means_do_not_drain() -> None:
    assert not read(nodeDrainTimeout="0s").drains
    assert read(nodeDrainTimeout="1s").drains


def test_fields_that_are_not_acted_on_are_listed() -> None:
    found = read(killIfCommands=["dd"], kata={"kind": "Secret", "name": "kata"}, kubeconfigSecretRef={"name": "k"})
    assert found.unsupported == ("killIfCommands", "kubeconfigSecretRef", "kata")
    assert read(killIfCommands=[]).unsupported == ()


def test_two_children_of_one_kind_are_a_problem_because_they_share_a_name() -> None:
    same = {"apiVersion": "k0smotron.io/v1beta1", "kind": "Both"}
    found = read(bootstrapSpec=bootstrap(**same), infrastructureSpec=infrastructure(**same))
    assert any("infrastructureSpec.kind" in problem for problem in found.problems)


@pytest.mark.contract("B1.17")
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"clusterName": "-"}, "spec.clusterName"),
        ({"bootstrapSpec": bootstrap("v1")}, "spec.bootstrapSpec.apiVersion"),
        ({"machineTemplate": {"labels": {"kubernetes.io/os": "linux"}}}, "spec.machineTemplate.labels"),
        ({"infrastructureSpec": infrastructure(metadata={"name": "mine"})}, "spec.infrastructureSpec.metadata"),
        ({"bootstrapSpec": bootstrap(metadata={"annotations": {"5spot.finos.org/x": ""}})}, "spec.bootstrapSpec"),
        ({"nodeTaints": [taint("a/b"), taint("a/b")]}, "spec.nodeTaints"),
        ({"nodeTaints": [taint("node.cluster.x-k8s.io/x")]}, "spec.nodeTaints"),
        ({"gracefulShutdownTimeout": "25h"}, "spec.gracefulShutdownTimeout"),
    ],
)
def test_what_breaks_a_rule_is_named_by_its_field(changes: dict[str, Any], named: str) -> None:
    problems = read(**changes).problems
    assert any(problem.startswith(named) for problem in problems), problems


@pytest.mark.contract("B4.8")
@pytest.mark.parametrize("where", ["bootstrapSpec", "infrastructureSpec"])
@pytest.mark.parametrize("body", ["s3cr3t-x", 31337001, True, ["s3cr3t-x"], {"spec": "s3cr3t-x"}, {"spec": 31337001}])
def test_problems_never_quote_an_embedded_spec(where: str, body: Any) -> None:
    whole = bootstrap() if where == "bootstrapSpec" else infrastructure()
    for value in (body, {**whole, "spec": body}):
        shown = repr(read(**{where: value}))
        assert "s3cr3t" not in shown
        assert "31337001" not in shown


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = (
    "schedule",
    "enabled",
    "clusterName",
    "bootstrapSpec",
    "infrastructureSpec",
    "machineTemplate",
    "priority",
    "gracefulShutdownTimeout",
    "nodeDrainTimeout",
    "killSwitch",
    "nodeTaints",
    "killIfCommands",
    "kata",
)


@given(st.dictionaries(st.sampled_from(_FIELDS), json_values), st.none() | json_values)
def test_no_stored_object_makes_the_reader_raise(changes: dict[str, Any], whole: Any) -> None:
    assert isinstance(read(**changes), SpecView)
    body = machine("web-1", "team-a") | {"spec": whole}
    assert read_spec(body).problems
