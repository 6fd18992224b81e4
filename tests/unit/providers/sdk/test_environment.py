"""Settings of a program that runs providers, from its environment."""

from __future__ import annotations

import pytest

from fivespot.providers.sdk.environment import in_pod, settings_from
from fivespot.runtime.errors import ConfigError


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
