"""Process settings: one parser for the variables of every way to start a manager."""

from __future__ import annotations

import pytest

from fivespot.runtime import ConfigError
from fivespot.settings import in_pod, lease_name, program_settings


def test_in_a_pod_it_serves_and_stands_for_election_and_elsewhere_it_does_not() -> None:
    inside = program_settings({}, ["toggle", "bell"], in_cluster=True, identity="me")
    assert inside.serving is not None
    assert (inside.serving.metrics_port, inside.serving.health_port, inside.serving.bind_address) == (
        *(8080, 8081, ""),
    )
    assert inside.election is not None
    assert (inside.election.namespace, inside.election.name) == ("5spot-system", "5spot-bell-toggle-leader")
    assert (inside.election.identity, inside.election.members) == ("me", ("bell", "toggle"))
    outside = program_settings({}, ["toggle"], in_cluster=False, identity="me")
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
    found = program_settings(environ, ["toggle"], in_cluster=False, identity="me")
    assert found.serving is not None
    assert (found.serving.metrics_port, found.serving.health_port, found.serving.bind_address) == (
        *(0, 9081, "127.0.0.1"),
    )
    assert found.election is not None
    assert (found.election.namespace, found.election.name, found.election.identity) == ("team", "mine", "pod-1")
    assert found.election.timings.lease_duration == 30
    assert (
        program_settings({"ENABLE_LEADER_ELECTION": "false"}, ["toggle"], in_cluster=True, identity="me").election
        is None
    )


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"METRICS_PORT": "http"}, "METRICS_PORT: 'http' is no port"),
        ({"HEALTH_PORT": "70000"}, "HEALTH_PORT: '70000' is no port"),
        ({"METRICS_PORT": "8081"}, "are both 8081; they must differ"),
        ({"ENABLE_LEADER_ELECTION": "maybe"}, "ENABLE_LEADER_ELECTION: 'maybe' is neither true nor false"),
        ({"LEASE_DURATION_SECONDS": "long"}, "LEASE_DURATION_SECONDS: 'long' is no number of seconds above 0"),
        ({"LEASE_RETRY_PERIOD_SECONDS": "-1"}, "LEASE_RETRY_PERIOD_SECONDS: '-1' is no number of seconds above 0"),
        ({"LEASE_RETRY_PERIOD_SECONDS": "inf"}, "LEASE_RETRY_PERIOD_SECONDS: 'inf' is no number of seconds above 0"),
        ({"LEASE_DURATION_SECONDS": "5"}, "LEASE_DURATION_SECONDS, LEASE_RENEW_DEADLINE_SECONDS"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        program_settings(environ, ["toggle"], in_cluster=True, identity="me")


def test_a_pod_is_told_by_its_environment_unless_a_kubeconfig_is_named() -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert in_pod(pod, None)
    assert not in_pod({}, None)
    assert not in_pod(pod, "file")
    assert not in_pod({**pod, "KUBECONFIG": "file"}, None)


@pytest.mark.parametrize(
    ("given", "controllers", "name"),
    [
        ("", ["timebasedspotschedule", "scheduledmachine"], "5spot-leader"),
        ("", ["timebasedspotschedule"], "5spot-timebasedspotschedule-leader"),
        ("", ["timebasedspotschedule", "manualschedule"], "5spot-manualschedule-timebasedspotschedule-leader"),
        ("mine", ["scheduledmachine"], "mine"),
        ("", ["scheduledmachine"], "5spot-leader"),
    ],
)
def test_the_lease_is_the_one_of_5_spot_when_machines_are_among_the_work(
    given: str, controllers: list[str], name: str
) -> None:
    assert lease_name(given, controllers) == name
