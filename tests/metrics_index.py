"""An index from the metrics of `docs/operations.md` to the tests that change them.

The test command refuses a metric that is in neither list, and an entry whose test does not exist.
"""

from __future__ import annotations


def _in(file: str, *tests: str) -> tuple[str, ...]:
    return tuple(f"{file}::{test}" for test in tests)


_TELEMETRY = "tests/unit/runtime/telemetry/test_metrics.py"
_MACHINES = "tests/unit/controllers/test_metrics.py"
_LIFE = _in("tests/server/contract/test_metrics.py", "test_a_machines_life_moves_the_metrics_that_tell_of_it")
_SCHEDULE = _in("tests/server/contract/test_metrics.py", "test_a_schedules_gauge_follows_it_and_goes_with_it")
_QUEUE = _in(_TELEMETRY, "test_queue_metrics_carry_the_names_that_dashboards_know")
_RESULTS = _in(_TELEMETRY, "test_results_of_runs_are_counted_as_controller_runtime_does")
_INFORMERS = _in(_TELEMETRY, "test_a_resource_counts_as_synced_only_when_all_its_informers_are")
_PROVIDERS = _in("tests/unit/providers/sdk/test_reconciler.py", "test_metrics_follow_the_objects")
_HOLDS = "tests/server/test_administrator_holds.py"
_MARKETS = "tests/server/contract/test_capitalmarketsschedule.py"
_PROCESS = _in("tests/unit/cli/test_process.py", "test_requests_are_counted_and_tell_that_the_server_answers")

INDEX: dict[str, tuple[str, ...]] = {
    # The holds of administrators.
    "fivespot_admission_policy_bound": _in(_HOLDS, "test_nothing_is_created_until_the_policy_is_bound"),
    "fivespot_stopped": _in(_HOLDS, "test_an_annotation_on_the_lease_stops_everything_but_the_kill_switch"),
    # Of the machine controller, with the names of the existing 5-Spot.
    "fivespot_reconciliations_total": (
        *_in(_MACHINES, "test_runs_are_counted_and_timed_by_phase_and_failures_by_type_too"),
        *_LIFE,
    ),
    "fivespot_reconciliation_duration_seconds": (
        *_in(_MACHINES, "test_runs_are_counted_and_timed_by_phase_and_failures_by_type_too"),
        *_LIFE,
    ),
    "fivespot_machines_active": (
        *_in(_MACHINES, "test_machines_by_phase_are_counted_at_each_look_and_by_the_leader_only"),
        *_LIFE,
    ),
    "fivespot_machines_by_phase": (
        *_in(_MACHINES, "test_machines_by_phase_are_counted_at_each_look_and_by_the_leader_only"),
        *_LIFE,
    ),
    "fivespot_schedule_evaluations_total": (
        *_in(_MACHINES, "test_a_verdict_is_counted_by_what_it_says"),
        *_LIFE,
    ),
    "fivespot_kill_switch_activations_total": (
        *_in(_MACHINES, "test_a_kill_switch_counts_once_however_often_its_machine_is_reported"),
        *_LIFE,
    ),
    "fivespot_errors_total": (
        *_in(
            _MACHINES,
            "test_a_schedule_that_cannot_be_read_is_an_error_and_no_verdict",
            "test_runs_are_counted_and_timed_by_phase_and_failures_by_type_too",
        ),
        *_in(
            "tests/server/contract/test_unreadable_provider.py",
            "test_a_forbidden_list_begins_nothing_reports_nothing_at_first_and_delays_no_other_kind",
        ),
    ),
    "fivespot_finalizer_cleanup_timeouts_total": _in(
        "tests/server/contract/test_deletion_limits.py",
        "test_a_deletion_that_takes_too_long_is_said_once_and_forced_only_when_asked",
    ),
    "fivespot_spot_schedule_resolutions_total": (
        *_in(_MACHINES, "test_a_verdict_is_counted_by_what_it_says"),
        *_LIFE,
    ),
    "fivespot_spot_schedule_resolution_errors_total": (
        *_in(_MACHINES, "test_a_schedule_without_a_verdict_is_counted_by_its_reason_and_shown_until_it_has_one"),
        *_in(
            "tests/server/contract/test_unresolved_provider.py",
            "test_shown_values_are_written_once_in_a_while_and_the_unresolved_counted_without_a_write",
        ),
    ),
    "fivespot_spot_schedule_transitions_total": (
        *_in(_MACHINES, "test_a_verdict_that_differs_from_the_one_remembered_is_a_transition"),
        *_LIFE,
    ),
    "fivespot_scheduled_machines_unresolved": (
        *_in(_MACHINES, "test_a_schedule_without_a_verdict_is_counted_by_its_reason_and_shown_until_it_has_one"),
        *_in(
            "tests/server/contract/test_provider_verdict.py",
            "test_a_provider_deleted_while_active_leaves_the_machine_and_says_so",
        ),
    ),
    "fivespot_machine_replacements_total": (
        *_in(_MACHINES, "test_a_replacement_counts_by_its_reason"),
        *_in(
            "tests/server/contract/test_replacement.py",
            "test_a_machine_that_is_gone_is_told_once_and_replaced_after_a_wait",
        ),
    ),
    # Of the providers; one piece of code for all of them.
    "fivespot_time_based_active": (*_PROVIDERS, *_SCHEDULE),
    "fivespot_time_based_transitions_total": (*_PROVIDERS, *_SCHEDULE),
    "fivespot_capital_markets_active": (
        *_PROVIDERS,
        *_in(_MARKETS, "test_every_kind_of_entry_gives_its_verdict_and_the_exact_next_change"),
    ),
    "fivespot_capital_markets_transitions_total": (
        *_PROVIDERS,
        *_in(_MARKETS, "test_a_closure_that_nobody_planned_takes_the_machine_and_its_end_brings_it_back"),
    ),
    "fivespot_manual_active": _PROVIDERS,
    "fivespot_manual_transitions_total": _PROVIDERS,
    # Of the process.
    "fivespot_controller_info": _PROCESS,
    "fivespot_tzdata_info": (
        *_PROCESS,
        *_in("tests/server/contract/test_timebasedspotschedule.py", "test_the_release_of_the_zone_data_is_told"),
    ),
    "fivespot_clock_skew_seconds": _in(
        "tests/unit/runtime/manager/test_clock_skew.py",
        "test_a_clock_that_is_off_is_measured_logged_and_noted_while_the_process_stays_ready",
    ),
    "fivespot_is_leader": _in(
        "tests/unit/runtime/manager/test_manager.py",
        "test_a_standby_runs_caches_only_and_takes_over_after_a_clean_stop",
        "test_losing_the_lease_stops_the_controllers_and_winning_it_back_runs_them_again",
    ),
    "leader_election_master_status": _in(
        "tests/unit/runtime/manager/test_manager.py",
        "test_a_standby_runs_caches_only_and_takes_over_after_a_clean_stop",
    ),
    "fivespot_gc_pause_seconds": _in(
        "tests/unit/runtime/manager/test_gc_policy.py", "test_collector_settings_are_raised_measured_and_put_back"
    ),
    # Of the runtime.
    "fivespot_informer_synced": (*_INFORMERS, *_LIFE),
    "fivespot_informer_objects": _INFORMERS,
    "fivespot_informer_undecodable_objects": _in(
        "tests/unit/runtime/cache/test_shared_informer.py",
        "test_a_bad_object_is_counted_logged_and_shown_until_it_is_corrected",
    ),
    "fivespot_informer_relists_total": _INFORMERS,
    "fivespot_events_written_total": _in(
        "tests/unit/runtime/telemetry/test_events.py",
        "test_writes_are_counted_when_they_are_done_and_shown_while_they_are_under_way",
    ),
    "fivespot_event_writes_in_progress": _in(
        "tests/unit/runtime/telemetry/test_events.py",
        "test_writes_are_counted_when_they_are_done_and_shown_while_they_are_under_way",
    ),
    "fivespot_events_dropped_total": (
        *_in(
            "tests/unit/runtime/telemetry/test_events.py",
            "test_too_many_different_events_of_one_object_are_counted_as_dropped",
        ),
        *_in(
            "tests/server/contract/test_events.py",
            "test_a_flapping_provider_cannot_flood_and_lost_events_delay_nothing",
        ),
    ),
    "rest_client_requests_total": (
        *_in(_TELEMETRY, "test_requests_without_an_answer_are_told_apart_from_those_with_one"),
        *_PROCESS,
        *_LIFE,
    ),
    "controller_runtime_reconcile_total": (*_RESULTS, *_LIFE),
    "controller_runtime_reconcile_errors_total": _RESULTS,
    "controller_runtime_terminal_reconcile_errors_total": _RESULTS,
    "controller_runtime_reconcile_time_seconds": (*_RESULTS, *_LIFE),
    "controller_runtime_active_workers": (
        *_RESULTS,
        *_in(
            "tests/unit/runtime/reconcile/test_controller.py",
            "test_metrics_get_one_result_a_run_and_know_busy_workers",
        ),
    ),
    "controller_runtime_max_concurrent_reconciles": (*_RESULTS, *_LIFE),
    "workqueue_depth": _QUEUE,
    "workqueue_adds_total": (*_QUEUE, *_LIFE),
    "workqueue_retries_total": _QUEUE,
    "workqueue_queue_duration_seconds": (*_QUEUE, *_LIFE),
    "workqueue_work_duration_seconds": (*_QUEUE, *_LIFE),
    "workqueue_unfinished_work_seconds": _QUEUE,
    "workqueue_longest_running_processor_seconds": _QUEUE,
}

OTHERS: dict[str, str] = {}
"""Metrics that no test moves, and why not."""
