"""An index from faults that other controllers have met in the field to the tests that rule them out here.

A row is a kind of fault, by the public reports that it was learned from. The test command refuses an entry whose test
does not exist, and a row that has neither a test nor a reason.
"""

from __future__ import annotations

from typing import NamedTuple


class Untested(NamedTuple):
    """No test, and why."""

    reason: str


class Row(NamedTuple):
    """The reports, and the tests."""

    reports: str
    tests: tuple[str, ...] | Untested


INDEX: dict[str, Row] = {
    "P-W 1": Row(
        "nolar/kopf#585, #957, #614, zalando-incubator/kopf#232",
        (
            "tests/server/faults/test_half_open.py::test_an_event_that_a_dead_connection_swallowed_is_delivered_within_the_idle_limit",
            "tests/unit/runtime/cache/test_faults.py::test_a_half_open_connection_is_noticed_within_the_idle_limit",
            "tests/unit/runtime/client/test_http.py::test_a_half_open_watch_ends_at_its_idle_limit",
        ),
    ),
    "P-W 2": Row(
        "kubernetes-client/python#2462 (PR#2527), #2067",
        (
            "tests/server/faults/test_half_open.py::test_an_event_that_a_dead_connection_swallowed_is_delivered_within_the_idle_limit",
            "tests/unit/runtime/cache/test_faults.py::test_a_half_open_connection_is_noticed_within_the_idle_limit",
            "tests/unit/runtime/client/test_http.py::test_the_kernel_looks_after_idle_connections",
        ),
    ),
    "P-W 3": Row(
        "kubernetes/client-go#374, kubernetes#95981",
        (
            "tests/unit/runtime/client/test_http.py::test_the_kernel_looks_after_idle_connections",
            "tests/unit/runtime/client/test_pool.py::test_a_read_on_a_dead_idle_connection_is_answered_over_a_new_one_within_seconds",
        ),
    ),
    "P-W 5": Row(
        "kubernetes#76624",
        (
            "tests/unit/runtime/cache/test_faults.py::test_what_cannot_be_read_leads_to_a_list_and_never_into_the_store",
            "tests/unit/runtime/client/test_watch.py::test_every_end_has_a_reason",
        ),
    ),
    "P-W 6": Row(
        "kubernetes#123072",
        (
            "tests/unit/testing/faults/test_script.py::test_an_event_that_was_lost_is_made_up_for_by_the_next_list",
            "tests/unit/runtime/cache/test_store.py::test_a_relist_tells_of_missed_deletions_with_the_last_known_object",
        ),
    ),
    "P-W 8": Row(
        "fabric8io/kubernetes-client#1214",
        ("tests/unit/runtime/cache/test_store.py::test_versions_are_compared_as_numbers",),
    ),
    "P-W 9": Row(
        "kubernetes#73845",
        ("tests/unit/runtime/cache/test_store.py::test_an_event_told_twice_or_older_is_ignored",),
    ),
    "P-W 10": Row(
        "kube-rs#1844 / #1882",
        ("tests/unit/runtime/cache/test_reflector_state.py::test_a_reconnect_never_asks_for_initial_events",),
    ),
    "P-W 11": Row(
        "kube-rs#1524 / #1525",
        (
            "tests/unit/runtime/cache/test_faults.py::test_lists_come_in_pages_and_restart_when_a_token_expires",
            "tests/unit/runtime/cache/test_reflector_state.py::test_a_paged_list_goes_through_all_pages_an_empty_one_in_the_middle_included",
            "tests/unit/runtime/client/test_client.py::test_a_list_reads_all_pages_even_past_an_empty_one",
        ),
    ),
    "P-W 12": Row(
        "kube-rs#1615",
        (
            "tests/unit/runtime/cache/test_faults.py::test_an_expired_version_leads_to_one_list_whatever_the_shape",
            "tests/unit/runtime/client/test_http.py::test_every_shape_of_a_410_means_expired",
            "tests/unit/runtime/client/test_watch.py::test_every_end_has_a_reason",
        ),
    ),
    "P-W 13": Row(
        "kube-rs#717",
        (
            "tests/unit/runtime/cache/test_faults.py::test_a_throttled_watch_waits_as_long_as_asked",
            "tests/unit/runtime/cache/test_reflector_state.py::test_no_request_comes_before_the_server_wants_it",
            "tests/unit/runtime/client/test_retry.py::test_sixty_throttled_clients_do_not_come_back_together",
        ),
    ),
    "P-W 14": Row(
        "kube-rs#1897",
        (
            "tests/unit/runtime/cache/test_reflector_state.py::test_a_crowd_of_informers_does_not_come_back_together",
            "tests/unit/runtime/client/test_retry.py::test_sixty_throttled_clients_do_not_come_back_together",
            "tests/unit/runtime/test_backoff.py::test_jitter_spreads_waits_over_its_whole_range",
        ),
    ),
    "P-W 16": Row(
        "kube-rs#1576 / #1577",
        (
            "tests/simulation/test_field_faults.py::test_a_machine_deleted_during_downtime_is_not_waited_for",
            "tests/unit/runtime/client/test_client.py::test_deleting_a_missing_object_succeeds_and_an_unserved_resource_is_an_error",
        ),
    ),
    "P-W 17": Row(
        "kr8s-org/kr8s#476",
        (
            "tests/unit/runtime/cache/test_faults.py::test_what_cannot_be_read_leads_to_a_list_and_never_into_the_store",
            "tests/unit/runtime/client/test_watch.py::test_every_end_has_a_reason",
        ),
    ),
    "P-W 18": Row(
        "tomplus/kubernetes_asyncio#136, #134, #320/#321",
        ("tests/simulation/test_field_faults.py::test_watches_of_every_projection_resume_and_deliver_no_change_twice",),
    ),
    "P-W 19": Row(
        "tomplus/kubernetes_asyncio#325",
        (
            "tests/unit/runtime/cache/test_faults.py::test_a_watch_outlives_a_day_of_hourly_events",
            "tests/unit/runtime/client/test_http.py::test_a_watch_outlives_its_idle_limit_while_something_comes",
        ),
    ),
    "P-W 21": Row(
        "kubernetes-client/python#972, #728",
        (
            "tests/unit/runtime/cache/test_faults.py::test_a_connection_cut_in_the_middle_of_a_line_loses_nothing",
            "tests/unit/runtime/client/test_http.py::test_a_line_that_is_cut_is_never_taken_for_whole",
        ),
    ),
    "P-W 22": Row(
        "kubernetes-client/python-base#227",
        ("tests/unit/runtime/client/test_watch.py::test_every_end_has_a_reason",),
    ),
    "P-W 24": Row(
        "kubernetes#129408, #135895; antrea-io/antrea#8123; derailed/k9s#4186",
        (
            "tests/unit/runtime/cache/test_faults.py::test_without_streaming_lists_pages_are_used_and_the_resource_is_remembered",
            "tests/unit/runtime/cache/test_reflector_state.py::test_a_streaming_list_that_never_ends_is_given_up",
        ),
    ),
    "P-W 26": Row(
        "nolar/kopf#980",
        (
            "tests/unit/runtime/client/test_rotation.py::test_new_credentials_leave_live_watches_alone_and_open_the_next_ones",
            "tests/unit/runtime/client/test_http.py::test_a_watch_refused_with_401_is_opened_again",
        ),
    ),
    "P-W 27": Row(
        "nolar/kopf#926, kubernetes_asyncio#205, kr8s#536 (fails at 61 min), client-go#1381",
        (
            "tests/unit/runtime/client/test_auth.py::test_a_changed_file_is_seen_within_a_minute",
            "tests/unit/runtime/client/test_kubeconfig.py::test_in_a_pod_the_service_account_is_used_and_its_token_read_again",
        ),
    ),
    "P-W 28": Row(
        "kubernetes-client/python#2585 (36.0)",
        (
            "tests/unit/runtime/client/test_kubeconfig.py::test_a_token",
            "tests/unit/runtime/client/test_kubeconfig.py::test_a_token_file_that_ends_in_a_newline_and_is_relative",
            "tests/unit/runtime/client/test_kubeconfig.py::test_a_name_and_password",
            "tests/unit/runtime/client/test_kubeconfig.py::test_a_client_certificate_inline_or_by_file",
            "tests/unit/runtime/client/test_kubeconfig.py::test_an_exec_plugin_that_gives_a_token",
            "tests/unit/runtime/client/test_kubeconfig.py::test_a_valid_oidc_token_is_used_as_it_is",
            "tests/unit/runtime/client/test_kubeconfig.py::test_in_a_pod_the_service_account_is_used_and_its_token_read_again",
            "tests/unit/runtime/client/test_kubeconfig.py::test_nobody_at_all_is_warned_about",
        ),
    ),
    "P-W 29": Row(
        "nolar/kopf#1088 (PR#1225)",
        (
            "tests/simulation/test_field_faults.py::test_a_manager_of_one_namespace_works_until_the_namespace_is_deleted",
            "tests/server/contract/test_deletion.py::test_a_namespace_with_ten_live_machines_goes_by_itself",
        ),
    ),
    "P-W 30": Row(
        "kubernetes#79610, controller-runtime#2589",
        (
            "tests/server/test_cache.py::test_a_kind_comes_goes_and_comes_back_with_other_versions",
            "tests/server/test_controller.py::test_a_kind_that_is_installed_later_and_removed_again",
            "tests/unit/runtime/cache/test_faults.py::test_a_resource_that_is_not_served_is_awaited_quietly_and_tried_when_its_definition_changes",
        ),
    ),
    "P-W 32": Row(
        "openkruise/kruise#1785",
        ("tests/unit/runtime/cache/test_store.py::test_an_own_creation_that_never_shows_up_goes_with_the_next_list",),
    ),
    "P-W 34": Row(
        "java-operator-sdk#3448, #3491",
        (
            "tests/unit/runtime/cache/test_store.py::test_a_foreign_write_between_two_of_ours_is_seen",
            "tests/unit/runtime/reconcile/test_triggers.py::test_changes_that_the_controller_wrote_are_dropped_and_those_of_all_others_pass",
        ),
    ),
    "P-W 35": Row(
        "controller-runtime#403, #1464, #1622",
        (
            "tests/unit/runtime/cache/test_cache.py::test_our_own_writes_are_read_at_once_and_told_once",
            "tests/simulation/test_random_days.py::test_a_random_day_violates_no_invariant_and_settles",
        ),
    ),
    "P-W 37": Row(
        "controller-runtime#3445 (#3422)",
        ("tests/unit/runtime/cache/test_store.py::test_an_index_may_be_added_at_any_time_and_is_always_complete",),
    ),
    "P-W 38": Row(
        "controller-runtime#3195",
        ("tests/unit/runtime/cache/test_cache.py::test_a_cache_bound_to_namespaces_watches_only_them",),
    ),
    "P-W 39": Row(
        "crossplane-contrib/provider-kubernetes PR#425",
        ("tests/unit/runtime/cache/test_memory.py::test_an_object_costs_its_kept_bytes_and_about_a_kilobyte",),
    ),
    "P-W 40": Row(
        "kube-rs#1836/#1838",
        ("tests/unit/runtime/cache/test_store.py::test_churn_leaves_nothing_behind",),
    ),
    "P-W 81": Row(
        "projectcalico/calico#12741, kumahq/kuma#17065, kubestellar#3857, aws-load-balancer-controller PR#4879",
        ("tests/unit/runtime/cache/test_store.py::test_a_relist_tells_of_missed_deletions_with_the_last_known_object",),
    ),
    "P-W 82": Row(
        "Bare aiohttp ClientTimeout()",
        ("tests/unit/runtime/client/test_client.py::test_every_request_has_explicit_limits",),
    ),
    "P-Q 41": Row(
        "controller-runtime#3538/#3540, #3239",
        ("tests/unit/runtime/workqueue/test_queue.py::test_shutdown_wakes_every_getter_at_whatever_moment",),
    ),
    "P-Q 42": Row(
        "controller-runtime#3330, #3060",
        (
            "tests/unit/runtime/workqueue/test_model.py::depth_counts_ready_keys_only",
            "tests/unit/runtime/workqueue/test_model.py::metrics_agree",
            "tests/unit/runtime/workqueue/test_queue.py::test_within_a_namespace_the_highest_priority_goes_first_then_the_oldest",
            "tests/unit/runtime/workqueue/test_queue.py::test_namespaces_take_turns_whatever_their_size_and_priority",
            "tests/unit/runtime/workqueue/test_queue.py::test_metrics_tell_waits_works_and_what_is_unfinished",
        ),
    ),
    "P-Q 43": Row(
        "controller-runtime#392",
        ("tests/unit/runtime/reconcile/test_controller.py::test_a_failing_key_backs_off_alone_and_success_forgets",),
    ),
    "P-Q 45": Row(
        "operator-sdk#4209",
        ("tests/unit/runtime/test_backoff.py::test_waits_double_up_to_the_cap_like_client_go",),
    ),
    "P-Q 46": Row(
        "kube-rs#1324",
        (
            "tests/unit/runtime/workqueue/test_queue.py::test_each_of_three_keys_readded_while_another_runs_gets_its_turn",
        ),
    ),
    "P-Q 47": Row(
        "kube-rs#925/#932",
        (
            "tests/unit/runtime/reconcile/test_controller.py::test_ten_thousand_keys_that_all_ask_to_be_repeated_keep_going",
        ),
    ),
    "P-Q 48": Row(
        "kube-rs#1772, #1489",
        (
            "tests/unit/runtime/reconcile/test_controller.py::test_odd_repeat_times_mean_at_once_or_never",
            "tests/unit/runtime/workqueue/test_queue.py::test_a_delay_of_ten_years_ends_after_ten_years",
        ),
    ),
    "P-Q 49": Row(
        "java-operator-sdk#3525",
        (
            "tests/unit/runtime/reconcile/test_controller.py::test_events_run_a_failing_key_at_once_and_keep_its_deadline",
            "tests/unit/runtime/reconcile/test_controller.py::test_however_a_run_ends_its_key_is_handed_back_and_its_worker_changed_world",
            "tests/unit/runtime/workqueue/test_queue.py::test_events_run_a_failing_key_at_once_but_change_neither_its_count_nor_its_deadline",
        ),
    ),
    "P-Q 51": Row(
        "java-operator-sdk#3380",
        (
            "tests/unit/runtime/workqueue/test_queue.py::test_events_run_a_failing_key_at_once_but_change_neither_its_count_nor_its_deadline",
        ),
    ),
    "P-Q 52": Row(
        "java-operator-sdk#3529",
        (
            "tests/unit/test_house_rules.py::test_time_randomness_and_tasks_go_through_the_seams",
            "tests/simulation/test_long_runs.py::test_a_month_of_working_days",
        ),
    ),
    "P-Q 53": Row(
        "kube-rs#318, #1247",
        (
            "tests/unit/runtime/reconcile/test_controller.py::test_a_start_costs_one_run_per_key_however_many_sources_name_it",
        ),
    ),
    "P-Q 54": Row(
        "kopf queueing source note",
        (
            "tests/unit/runtime/workqueue/test_queue.py::test_a_timeout_that_races_with_an_add_loses_no_key",
            "tests/unit/runtime/workqueue/test_queue.py::test_a_cancellation_that_races_with_an_add_loses_no_key_and_stops_no_other_getter",
        ),
    ),
    "P-Q 55": Row(
        "Yield inside a timeout/cancel scope in an async generator",
        ("tests/unit/test_house_rules.py::test_nothing_yields_inside_a_timeout_or_task_group",),
    ),
    "P-Q 56": Row(
        "nolar/kopf#1212 (PR#1213)",
        (
            "tests/simulation/test_field_faults.py::test_a_thousand_events_recorded_while_stopping_do_not_delay_the_stop",
            "tests/unit/runtime/telemetry/test_events.py::test_recording_works_while_nothing_writes_and_memory_stays_bounded",
            "tests/unit/runtime/telemetry/test_events.py::test_flushing_waits_for_what_the_server_has_not_heard_of_and_not_longer",
        ),
    ),
    "P-Q 57": Row(
        "nolar/kopf#1266 (PR#1272)",
        (
            "tests/unit/runtime/reconcile/test_controller.py::test_a_run_that_swallows_the_stop_is_the_last_of_its_worker",
        ),
    ),
    "P-LE 58": Row(
        "kubernetes#65090 (PR#65094), #95319",
        (
            "tests/server/faults/test_leader.py::test_a_leader_cut_off_stops_before_its_lease_can_be_taken_and_leads_again_when_the_network_heals",
            "tests/unit/runtime/manager/test_election.py::test_a_renewal_that_hangs_ends_the_work_by_the_deadline",
        ),
    ),
    "P-LE 59": Row(
        "client-go#448, kubernetes PR#120824",
        ("tests/unit/runtime/manager/test_election.py::test_clocks_that_are_an_hour_apart_change_nothing",),
    ),
    "P-LE 61": Row(
        "kubernetes#114872",
        (
            "tests/unit/runtime/manager/test_election.py::test_a_candidate_waits_for_the_duration_of_the_holder",
            "tests/unit/runtime/manager/test_lease.py::test_a_held_lease_is_free_after_the_holders_duration_counted_from_the_first_sight_here",
        ),
    ),
    "P-LE 62": Row(
        "kubernetes-client/python#2075 (PR#2670)",
        ("tests/unit/runtime/manager/test_election.py::test_work_that_dies_lets_the_lease_go_and_its_error_through",),
    ),
    "P-LE 64": Row(
        "kubernetes_asyncio 35 elector",
        (
            "tests/unit/runtime/manager/test_election.py::test_whatever_a_request_raises_work_ends_by_the_deadline_and_begins_again_afterwards",
            "tests/unit/runtime/manager/test_election.py::test_an_unforeseen_error_ends_the_work_and_is_raised",
        ),
    ),
    "P-LE 65": Row(
        "controller-runtime#2719",
        (
            "tests/unit/runtime/manager/test_election.py::test_a_standby_that_is_stopped_at_any_moment_never_begins_to_work",
        ),
    ),
    "P-LE 66": Row(
        "controller-runtime#3298",
        (
            "tests/unit/runtime/manager/test_election.py::test_a_process_that_is_cut_off_for_long_is_not_ready_and_says_why",
        ),
    ),
    "P-LE 67": Row(
        "volcano-sh/kthena#1793",
        (
            "tests/unit/runtime/manager/test_election.py::test_a_lease_taken_by_other_hands_ends_the_work_at_the_next_renewal",
            "tests/unit/runtime/manager/test_election.py::test_never_two_leaders_whatever_the_network_does_and_one_again_when_it_is_well",
            "tests/simulation/test_checker.py::test_a_mutant_is_detected",
        ),
    ),
    "P-LE 69": Row(
        "java-operator-sdk#3383, #3526",
        (
            "tests/unit/runtime/manager/test_runnable_group.py::test_closing_twice_and_being_cancelled_meanwhile_still_stops_everything_once",
            "tests/unit/runtime/manager/test_manager.py::test_a_stop_before_and_during_the_start_is_clean",
        ),
    ),
    "P-LE 70": Row(
        "controller-runtime#3247, #1784",
        (
            "tests/unit/runtime/manager/test_election.py::test_work_that_does_not_stop_after_the_loss_ends_the_process_with_its_name",
            "tests/unit/runtime/manager/test_runnable_group.py::test_what_does_not_stop_in_time_is_named_and_left_behind",
        ),
    ),
    "P-LE 71": Row(
        "nolar/kopf#734",
        (
            "tests/unit/runtime/manager/test_election.py::test_the_lease_of_a_killed_process_is_taken_over_in_its_duration",
            "tests/simulation/test_random_days.py::test_a_random_day_violates_no_invariant_and_settles",
        ),
    ),
    "P-C 72": Row(
        "nolar/kopf PR#1229",
        (
            "tests/unit/runtime/client/test_responses.py::test_every_failing_answer_becomes_a_typed_error_whatever_its_body",
        ),
    ),
    "P-C 74": Row(
        "java-operator-sdk#3530",
        (
            "tests/unit/runtime/reconcile/test_finalizers.py::test_an_object_that_is_gone_needs_no_removal_and_can_take_no_finalizer",
        ),
    ),
    "P-C 75": Row(
        "zalando-incubator/kopf#75, nolar/kopf#1104",
        (
            "tests/server/contract/test_deletion.py::test_nothing_is_created_before_the_finalizer_is_on_it",
            "tests/server/contract/test_deletion_limits.py::test_a_deletion_that_takes_too_long_is_said_once_and_forced_only_when_asked",
            "tests/unit/controllers/test_deletion.py::test_the_finalizer_is_forced_off_only_when_asked_for",
        ),
    ),
    "P-C 76": Row(
        "kubernetes#140393, #81779; nolar/kopf PR#1258",
        (
            "tests/unit/runtime/telemetry/test_correlation.py::test_100k_identical_events_cost_no_more_than_25_writes_and_one_more_per_5_minutes",
            "tests/unit/runtime/telemetry/test_correlation.py::test_memory_and_writes_stay_within_the_limits_whatever_happens",
            "tests/unit/runtime/telemetry/test_events.py::test_a_flood_of_identical_events_is_few_writes_and_blocks_nobody",
        ),
    ),
    "P-C 77": Row(
        "tomplus/kubernetes_asyncio#103, kubernetes-client/python#545, #411/#576",
        (
            "tests/unit/runtime/cache/test_cache.py::test_leaving_the_cache_closes_every_watch",
            "tests/unit/runtime/client/test_http.py::test_all_requests_share_one_session_and_watches_do_not_starve_it",
        ),
    ),
    "P-C 78": Row(
        "kube-rs#1950, #831",
        (
            "tests/unit/runtime/client/test_auth.py::test_loading_does_not_hold_up_the_loop",
            "tests/unit/runtime/client/test_http.py::test_a_hundred_401s_at_once_cost_one_load",
        ),
    ),
    "P-C 79": Row(
        "aws/kubernetes cert or CA rotation (kube-rs#1962, CG 1.36)",
        ("tests/unit/runtime/client/test_kubeconfig.py::test_a_renewed_ca_and_server_certificate_are_taken_up",),
    ),
}
