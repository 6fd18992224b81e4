"""Flags and variables of the manager."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fivespot.cli import options
from fivespot.runtime import ConfigError


@pytest.mark.parametrize(
    ("given_", "chosen"),
    [
        ((), options.CONTROLLERS),
        (("timebasedspotschedule",), ("timebasedspotschedule",)),
        (("timebasedspotschedule, scheduledmachine",), ("scheduledmachine", "timebasedspotschedule")),
        (("scheduledmachine", "scheduledmachine,"), ("scheduledmachine",)),
        (("all",), options.CONTROLLERS),
    ],
)
def test_controllers_are_given_with_commas_or_several_times_and_default_to_all(
    given_: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    assert options.controllers(given_) == chosen


@pytest.mark.parametrize("name", ["scheduledmachines", "ScheduledMachine", "ScheduledMachines"])
def test_an_unknown_controller_is_answered_with_the_nearest_and_all_known(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"'{name}'; did you mean scheduledmachine\? known: .*timebasedspot"):
        options.controllers([name])


def test_an_unknown_controller_like_no_other_gets_no_guess() -> None:
    with pytest.raises(ConfigError, match="unknown kind 'zzz'; known: "):
        options.controllers(["zzz"])


@pytest.mark.parametrize(
    ("given_", "chosen"), [((), None), ((" ",), None), (("b,a", "a"), ("a", "b")), (("team-7",), ("team-7",))]
)
def test_namespaces_default_to_all(given_: tuple[str, ...], chosen: tuple[str, ...] | None) -> None:
    assert options.namespaces(given_) == chosen


@pytest.mark.parametrize("name", ["Prod", "a.b", "-a", "a-", "a_b", "x" * 64, "ä"])
def test_what_cannot_be_a_namespace_is_quoted(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--namespaces: '{name}'"):
        options.namespaces([name])


@pytest.mark.parametrize(
    ("text", "version"),
    [(None, None), ("", None), ("v1beta2", "v1beta2"), ("cluster.x-k8s.io/v1beta1", "v1beta1"), ("v1", "v1")],
)
def test_the_version_of_cluster_api_may_come_with_its_group(text: str | None, version: str | None) -> None:
    assert options.api_version(text) == version


@given(st.from_regex(r"[a-z0-9/.-]+", fullmatch=True))
def test_any_text_is_a_version_or_refused_with_its_variable(text: str) -> None:
    refusal, version = "", None
    try:
        version = options.api_version(text)
    except ConfigError as error:
        refusal = str(error)
    assert "CAPI_MACHINE_API_VERSION" in refusal or version is None or version.startswith("v")


def test_a_provider_of_ones_own_runs_alone_unless_other_kinds_are_named() -> None:
    assert options.controllers([], alone=False) == ()
    assert options.controllers(["scheduledmachine"], alone=False) == ("scheduledmachine",)
    assert options.controllers(["all"], alone=False) == options.CONTROLLERS


def test_all_reconcilers_are_named_once_and_sorted() -> None:
    assert options.reconcilers(["scheduledmachine"], ["weekschedule", "dayschedule"]) == (
        *("dayschedule", "scheduledmachine", "weekschedule"),
    )
    with pytest.raises(ConfigError, match="--provider: manualschedule is among --controllers as well; leave manual"):
        options.reconcilers(["manualschedule", "scheduledmachine"], ["manualschedule"])
