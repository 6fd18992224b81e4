"""The simulated core of `fivespot.testing.clusterapi` does what Cluster API's own does, as far as tests see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from controlplane import cluster_api_version
from e2e import test_drain, test_kill_switch, test_lifecycle, test_phases
from fivespot.testing.clusterapi import SIMULATED, SIMULATED_EARLIER
from support.environment import Environment
from support.log_folder import log_folder

pytestmark = pytest.mark.together

Case = Callable[[Environment], None]

_HOOKS = "machine.cluster.x-k8s.io/backup"

# What takes its time is seen in virtual time: tests/unit/testing/clusterapi.
CASES: dict[str, Case] = {
    "runs": partial(test_lifecycle.test_a_wanted_machine_is_adopted_runs_and_is_mirrored, family=SIMULATED),
    "runs, v1beta1": partial(
        test_lifecycle.test_a_wanted_machine_is_adopted_runs_and_is_mirrored, family=SIMULATED_EARLIER
    ),
    "ready": test_lifecycle.test_running_means_that_a_node_registered_and_ready_that_it_takes_work,
    "fails": test_lifecycle.test_what_a_provider_says_of_its_failure_is_in_the_message,
    "slow": test_lifecycle.test_an_infrastructure_that_takes_its_time_keeps_everything_until_it_is_gone,
    "flips": test_lifecycle.test_flips_in_quick_succession_converge_with_one_machine_at_a_time,
    "allowed": test_drain.test_a_drain_goes_on_once_the_budget_allows_it,
    "evicted": test_drain.test_pods_without_a_budget_are_evicted,
    "undrained": test_drain.test_a_timeout_of_nothing_does_not_drain_also_with_an_attached_volume,
    "killed": test_kill_switch.test_killed_it_goes_without_drain_and_without_grace,
    "killed midway": test_kill_switch.test_killed_in_the_middle_of_a_drain_it_waits_no_longer,
    "pre-drain hook": partial(
        test_kill_switch.test_lifecycle_hooks_are_respected_and_named,
        hook=f"pre-drain.delete.hook.{_HOOKS}",
        reason="WaitingForPreDrainHook",
    ),
    "pre-terminate hook": partial(
        test_kill_switch.test_lifecycle_hooks_are_respected_and_named,
        hook=f"pre-terminate.delete.hook.{_HOOKS}",
        reason="WaitingForPreTerminateHook",
    ),
    "deleted": test_phases.test_a_machine_that_somebody_deletes_is_drained_and_replaced_after_a_wait,
    "vanished": test_phases.test_a_machine_that_vanished_is_told_and_replaced_once_what_it_owned_is_gone,
}


@pytest.fixture(scope="module")
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """In place of the one with Cluster API's own core."""
    if tuple(map(int, cluster_api_version().split("."))) < (1, 11):
        pytest.skip("the simulated core knows v1beta2 only")
    with Environment(simulated=True) as simulated:
        yield simulated
        if request.session.testsfailed:
            simulated.keep_logs(log_folder() / "simulated-core")


@pytest.mark.parametrize("name", CASES)
def test_what_holds_with_the_real_core_holds_with_the_simulated_one(environment: Environment, name: str) -> None:
    CASES[name](environment)
