"""The simulated core of `fivespot.testing.clusterapi` passes the tests of the real one."""

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
    "ready": test_lifecycle.test_running_needs_a_registered_node_and_ready_a_ready_one,
    "fails": test_lifecycle.test_the_message_includes_the_failure_that_the_provider_reports,
    "slow": test_lifecycle.test_slow_infrastructure_keeps_the_other_objects_until_it_is_deleted,
    "flips": test_lifecycle.test_flips_in_quick_succession_converge_with_one_machine_at_a_time,
    "allowed": test_drain.test_a_drain_continues_once_the_budget_allows_it,
    "evicted": test_drain.test_pods_without_a_budget_are_evicted,
    "undrained": test_drain.test_a_drain_timeout_of_zero_skips_the_drain_and_the_wait_for_volumes,
    "killed": test_kill_switch.test_the_kill_switch_deletes_without_drain_or_grace,
    "killed midway": test_kill_switch.test_the_kill_switch_stops_a_drain_in_progress,
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
    "deleted": test_phases.test_a_machine_that_someone_deletes_is_drained_and_replaced_after_a_delay,
    "vanished": test_phases.test_a_lost_machine_is_reported_and_replaced_once_its_objects_are_deleted,
}


@pytest.fixture(scope="module")
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """An environment with the simulated core in place of Cluster API's own."""
    if tuple(map(int, cluster_api_version().split("."))) < (1, 11):
        pytest.skip("the simulated core knows v1beta2 only")
    with Environment(simulated=True) as simulated:
        yield simulated
        if request.session.testsfailed:
            simulated.keep_logs(log_folder() / "simulated-core")


@pytest.mark.parametrize("name", CASES)
def test_tests_of_the_real_core_pass_on_the_simulated_one(environment: Environment, name: str) -> None:
    CASES[name](environment)
