"""Which test proves which row of `docs/contract.md`.

The test command refuses a row that is missing here, an entry whose test does not exist, and a row of ``DUE`` that is
*later*.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Later:
    """Not proven yet, and why."""

    reason: str


Entries = tuple[str, ...] | Later


def _in(file: str, *tests: str) -> tuple[str, ...]:
    return tuple(f"{file}::{test}" for test in tests)


INDEX: dict[str, Entries] = {
    "A1": (
        *_in(
            "tests/server/test_admission.py",
            "test_a_machine_that_breaks_a_rule_is_refused_with_the_field_named",
            "test_a_machine_that_keeps_the_rules_is_taken_and_read_back",
        ),
    ),
    "A2": (
        *_in("tests/server/contract/test_a_verdict.py", "test_a2_a13_a_provider_of_another_namespace_decides_nothing"),
        *_in("tests/server/test_admission.py", "test_a_reference_has_no_namespace_and_typing_errors_are_told"),
    ),
    "A3": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a3_what_is_shown_of_a_provider_is_its_ready_condition_generation_and_instant",
            "test_a3_a_change_of_shown_values_alone_waits_for_the_next_real_change",
        ),
        *_in(
            "tests/server/contract/test_a_waiting.py",
            "test_a3_a8_shown_values_are_written_once_in_a_while_and_the_unresolved_counted_without_a_write",
        ),
    ),
    "A4": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a4_a9_active_means_that_the_machine_exists_and_inactive_that_it_does_not",
        ),
    ),
    "A5": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a5_ready_absent_or_true_counts_and_anything_else_holds_the_verdict",
            "test_a5_a8_a_provider_that_was_never_ready_means_inactive",
        ),
    ),
    "A6": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a6_the_kill_switch_overrules_disabled_and_disabled_overrules_the_schedule",
            "test_a6_nothing_overrules_an_inactive_schedule",
            "test_a6_precedence_holds_while_the_provider_is_unresolved",
        ),
    ),
    "A7": (
        *_in(
            "tests/server/contract/test_a_installed.py",
            "test_a7_a12_each_thing_that_is_missing_is_named_in_turn_until_the_machine_is_made",
            "test_a7_a_definition_that_is_there_but_not_installed_tells_what_it_misses",
            "test_a7_a12_a_definition_that_is_repaired_resolves_at_once",
        ),
    ),
    "A8": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a5_a8_a_provider_that_was_never_ready_means_inactive",
            "test_a8_a_provider_deleted_while_active_leaves_the_machine_and_says_so",
            "test_a8_an_inactive_verdict_is_held_too",
        ),
        *_in(
            "tests/server/contract/test_a_waiting.py",
            "test_a3_a8_shown_values_are_written_once_in_a_while_and_the_unresolved_counted_without_a_write",
        ),
    ),
    "A9": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a4_a9_active_means_that_the_machine_exists_and_inactive_that_it_does_not",
        ),
    ),
    "A10": (
        *_in(
            "tests/server/contract/test_a_installed.py",
            "test_a10_any_served_version_resolves_also_one_that_the_reference_does_not_name",
        ),
    ),
    "A11": (
        *_in(
            "tests/server/contract/test_a_verdict.py",
            "test_a11_an_observed_generation_that_is_behind_is_shown_and_rejects_nothing",
        ),
    ),
    "A12": (
        *_in(
            "tests/server/contract/test_a_installed.py",
            "test_a7_a12_each_thing_that_is_missing_is_named_in_turn_until_the_machine_is_made",
            "test_a7_a12_a_definition_that_is_repaired_resolves_at_once",
            "test_a12_a_kind_removed_and_installed_again_holds_and_then_decides",
            "test_a12_a_kind_comes_back_under_another_version_and_plural",
        ),
    ),
    "A13": (
        *_in(
            "tests/server/contract/test_a_hostile.py",
            "test_a13_garbage_in_active_or_ready_is_unresolved_and_elsewhere_ignored",
            "test_a13_a_status_that_is_no_object_is_a_missing_verdict",
            "test_a13_a_status_of_a_mebibyte_leaves_a_kibibyte_at_most_and_no_control_characters",
            "test_a13_eight_providers_that_flap_harm_only_their_own_machines",
        ),
        *_in("tests/server/contract/test_a_verdict.py", "test_a2_a13_a_provider_of_another_namespace_decides_nothing"),
    ),
    "A14": (
        *_in(
            "tests/server/contract/test_a_installed.py",
            "test_a14_a_third_partys_provider_needs_its_definition_its_controller_and_rights_for_itself",
        ),
        *_in("tests/server/test_new_provider.py", "test_it_works_under_the_rights_of_its_own_manifests"),
    ),
    "A15": (
        *_in(
            "tests/server/contract/test_a_unreadable.py",
            "test_a15_a_forbidden_list_begins_nothing_reports_nothing_at_first_and_delays_no_other_kind",
            "test_a15_a_restart_without_definitions_or_rights_leaves_every_machine_as_it_is",
        ),
        *_in(
            "tests/server/contract/test_a_waiting.py",
            "test_a15_a_failure_to_read_that_lasts_is_reported_as_unknown_and_holds_until_it_ends",
        ),
    ),
    "B1.1": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_1_b4_2_a_wanted_machine_is_adopted_runs_and_is_mirrored",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_1_a_wanted_machine_is_created_and_reported_active",
            "test_b1_1_the_machine_comes_last_and_pending_is_never_written",
            "test_b1_1_a_run_that_cannot_finish_says_pending_and_why",
        ),
    ),
    "B1.2": (
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_2_the_state_of_the_machine_is_mirrored",
            "test_b1_2_b1_10_a_template_kind_edited_while_active_waits_for_the_next_activation_and_leaks_nothing",
        ),
    ),
    "B1.3": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_3_b7_1_a_machine_that_somebody_deletes_is_drained_and_replaced_after_a_wait",
        ),
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_3_b1_21_flips_in_quick_succession_converge_with_one_machine_at_a_time",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_3_b1_4_b7_1_a_machine_deleted_by_other_hands_is_replaced_after_a_wait",
            "test_b1_3_b1_4_b1_21_wanted_again_while_our_own_shutdown_goes_on_it_comes_back_without_a_wait",
        ),
    ),
    "B1.4": (
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_3_b1_4_b7_1_a_machine_deleted_by_other_hands_is_replaced_after_a_wait",
            "test_b1_3_b1_4_b1_21_wanted_again_while_our_own_shutdown_goes_on_it_comes_back_without_a_wait",
        ),
    ),
    "B1.5": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_5_b2_3_after_a_change_of_kind_the_next_machine_is_of_the_new_one_and_the_old_leaks_nothing",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_5_b1_21_leftovers_of_an_older_template_go_before_a_machine_is_made_from_the_new_one",
            "test_b1_5_a_leftover_that_a_gone_machine_owned_is_not_used_again",
        ),
        *_in(
            "tests/unit/controllers/test_decide_up.py",
            "test_b1_5_what_a_machine_has_adopted_is_deleted_only_when_the_server_says_that_it_is_gone",
        ),
        *_in(
            "tests/server/contract/test_b2_leftovers.py",
            "test_b2_3_b1_5_wanted_again_after_a_change_of_kind_the_old_objects_go_before_new_ones_come",
        ),
    ),
    "B1.6": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_6_b7_1_a_machine_that_vanished_is_told_and_replaced_once_what_it_owned_is_gone",
            "test_b1_6_b7_1_a_machine_whose_objects_vanish_before_it_began_is_made_anew",
        ),
        *_in(
            "tests/server/contract/test_b1_lost.py",
            "test_b1_6_b7_1_a_machine_that_is_gone_is_told_once_and_replaced_after_a_wait",
            "test_b1_6_a_machine_that_is_gone_during_our_own_shutdown_is_not_lost",
        ),
        *_in(
            "tests/e2e/test_health.py",
            "test_b1_6_a_machine_that_other_hands_deleted_is_replaced",
        ),
    ),
    "B1.7": (
        *_in(
            "tests/simulation/test_late_watches.py",
            "test_b1_7_a_foreign_object_that_a_refusal_told_of_before_the_watch_did_is_not_waited_for_once_it_is_gone",
        ),
        *_in(
            "tests/server/contract/test_b1_b7_waiting.py",
            "test_b1_7_a_refused_creation_is_tried_again_after_waits_that_double_up_to_a_limit",
            "test_b1_7_a_right_that_is_missing_is_named_and_its_return_is_found_out",
            "test_b1_7_two_refusals_at_once_are_one_trouble_that_is_told_once",
        ),
        *_in(
            "tests/server/contract/test_b1_refused.py",
            "test_b1_7_a_name_that_a_foreign_object_has_is_an_error_until_that_is_gone",
            "test_b1_7_a_foreign_object_that_comes_while_the_machine_is_up_changes_nothing",
            "test_b1_7_an_admission_rule_in_the_way_is_quoted_and_asked_again_only_on_a_relevant_change",
            "test_b1_7_a_quota_in_the_way_may_pass_by_itself_and_does_not_stall",
            "test_b1_7_a_kind_that_is_not_installed_is_an_error_until_it_is",
        ),
    ),
    "B1.8": (
        *_in(
            "tests/server/contract/test_b1_lost.py",
            "test_b1_8_b7_1_a_machine_that_a_health_check_marked_is_deleted_and_replaced_after_a_wait",
        ),
        *_in(
            "tests/e2e/test_health.py",
            "test_b1_8_an_unhealthy_machine_is_replaced_under_the_brake",
            "test_b1_8_a_machine_that_is_not_to_be_remediated_is_left",
        ),
    ),
    "B1.9": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_9_b1_13_b1_20_disabling_takes_grace_in_which_nothing_is_touched",
        ),
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_9_b1_21_wanted_again_during_grace_nothing_was_touched",
            "test_b1_9_b1_10_when_grace_is_over_the_machine_goes_and_in_between_nothing_is_written",
            "test_b1_9_b1_20_disabled_and_enabled_again_during_grace_nothing_was_touched",
        ),
    ),
    "B1.10": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_10_b2_1_cluster_api_deletes_the_others_after_the_machine",
            "test_b1_10_an_infrastructure_that_takes_its_time_keeps_everything_until_it_is_gone",
        ),
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_9_b1_10_when_grace_is_over_the_machine_goes_and_in_between_nothing_is_written",
            "test_b1_10_b1_12_a_machine_out_of_schedule_is_deleted_and_then_what_is_left",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_2_b1_10_a_template_kind_edited_while_active_waits_for_the_next_activation_and_leaks_nothing",
        ),
    ),
    "B1.11": (
        *_in("tests/server/contract/test_b1_down.py", "test_b1_11_what_is_left_without_a_machine_is_deleted_at_once"),
    ),
    "B1.12": (
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_10_b1_12_a_machine_out_of_schedule_is_deleted_and_then_what_is_left",
        ),
    ),
    "B1.13": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_9_b1_13_b1_20_disabling_takes_grace_in_which_nothing_is_touched",
        ),
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_13_b1_20_disabling_takes_grace_and_drain_and_ends_in_disabled",
        ),
    ),
    "B1.14": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_14_b1_15_the_switch_ends_it_and_its_clearing_begins_it_anew",
        ),
        *_in(
            "tests/e2e/test_kill.py",
            "test_b2_6_b1_14_killed_it_goes_without_drain_and_without_grace",
        ),
        *_in(
            "tests/server/contract/test_b1_killed.py",
            "test_b1_14_b1_15_killed_it_goes_at_once_without_grace_or_drain",
            "test_b1_14_killed_while_leftovers_remain_says_so_until_they_are_gone",
        ),
    ),
    "B1.15": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_14_b1_15_the_switch_ends_it_and_its_clearing_begins_it_anew",
        ),
        *_in(
            "tests/server/contract/test_b1_killed.py",
            "test_b1_14_b1_15_killed_it_goes_at_once_without_grace_or_drain",
            "test_b1_15_killed_with_nothing_there_is_terminated_and_makes_nothing",
        ),
    ),
    "B1.16": (
        *_in(
            "tests/server/contract/test_b1_b7_waiting.py",
            "test_b1_16_a_delete_without_the_right_is_tried_again_by_itself",
            "test_b1_16_leftovers_that_may_not_be_deleted_are_an_error_and_tried_again",
        ),
        *_in(
            "tests/server/contract/test_b1_killed.py",
            "test_b1_16_a_delete_that_is_refused_is_an_error_and_tried_again_on_a_relevant_change",
            "test_b1_16_an_error_of_deletion_ends_when_the_machine_is_wanted_again",
        ),
    ),
    "B1.17": (
        *_in(
            "tests/server/contract/test_b1_older.py",
            "test_b1_17_b1_23_objects_of_an_older_release_are_kept_and_can_be_shut_down",
        ),
        *_in(
            "tests/server/test_ratcheting.py",
            "test_an_object_older_than_a_rule_takes_status_metadata_and_loses_its_finalizer",
        ),
    ),
    "B1.20": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_9_b1_13_b1_20_disabling_takes_grace_in_which_nothing_is_touched",
        ),
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_13_b1_20_disabling_takes_grace_and_drain_and_ends_in_disabled",
            "test_b1_9_b1_20_disabled_and_enabled_again_during_grace_nothing_was_touched",
        ),
    ),
    "B1.21": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_3_b1_21_flips_in_quick_succession_converge_with_one_machine_at_a_time",
        ),
        *_in(
            "tests/server/contract/test_b1_down.py",
            "test_b1_9_b1_21_wanted_again_during_grace_nothing_was_touched",
            "test_b1_21_grace_counts_from_when_down_was_first_wanted",
            "test_b1_21_deleting_the_scheduled_machine_skips_grace_and_keeps_the_drain",
            "test_b1_21_deleting_the_cluster_skips_grace",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_3_b1_4_b1_21_wanted_again_while_our_own_shutdown_goes_on_it_comes_back_without_a_wait",
            "test_b1_5_b1_21_leftovers_of_an_older_template_go_before_a_machine_is_made_from_the_new_one",
        ),
    ),
    "B1.22": (
        *_in(
            "tests/server/contract/test_b1_b7_waiting.py",
            "test_b1_22_a_reference_that_does_not_resolve_in_time_takes_the_machine",
        ),
        *_in(
            "tests/server/contract/test_b1_memory.py",
            "test_b1_22_a_changed_reference_that_never_resolved_gives_five_minutes_at_least_and_a_warning",
            "test_b1_22_a_longer_timeout_counts_and_the_old_reference_takes_it_back",
            "test_b1_22_down_for_another_cause_besides_takes_the_usual_grace",
            "test_b1_22_a_changed_reference_that_resolves_inactive_takes_the_usual_grace",
            "test_b1_22_a_reference_is_its_kind_and_name_and_not_its_version",
            "test_b1_22_b1_23_status_wiped_with_a_machine_made_for_another_reference_is_no_verdict",
        ),
    ),
    "B1.23": (
        *_in(
            "tests/server/contract/test_b1_memory.py",
            "test_b1_23_status_wiped_while_the_provider_is_unresolved_holds_the_machine",
            "test_b1_22_b1_23_status_wiped_with_a_machine_made_for_another_reference_is_no_verdict",
            "test_b1_23_status_wiped_while_down_makes_nothing_and_finds_what_is_left",
            "test_b1_23_a_verdict_without_a_reference_belongs_to_the_present_one",
        ),
        *_in(
            "tests/server/contract/test_b1_older.py",
            "test_b1_17_b1_23_objects_of_an_older_release_are_kept_and_can_be_shut_down",
        ),
    ),
    "B2.1": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_10_b2_1_cluster_api_deletes_the_others_after_the_machine",
        ),
        *_in(
            "tests/e2e/test_versions.py",
            "test_b2_1_the_older_version_serves_for_everything_with_its_own_form_of_references",
        ),
        *_in(
            "tests/server/contract/test_b2_version.py",
            "test_b2_1_the_three_objects_have_our_name_and_marks_and_only_the_machine_an_owner",
            "test_b2_1_the_version_is_the_one_asked_for_if_served_and_else_the_one_that_is_stored",
            "test_b2_1_the_stored_version_changes_while_the_manager_runs_and_conversion_dies",
        ),
    ),
    "B2.2": (
        *_in(
            "tests/server/contract/test_b2_leftovers.py",
            "test_b2_2_b2_3_b2_5_machines_of_5_spot_are_taken_over_and_lost_ones_are_cleaned_up",
        ),
        *_in(
            "tests/server/contract/test_b2_ownership.py",
            "test_b2_2_a_label_that_was_lost_is_put_back",
            "test_b2_2_a_foreign_bootstrap_or_infrastructure_object_is_never_touched",
            "test_b2_2_a_foreign_machine_is_never_touched",
            "test_b2_2_an_object_with_our_mark_is_ours_also_when_a_machine_of_our_name_controls_it",
            "test_b2_2_what_belongs_to_a_namesake_of_before_is_not_inherited",
            "test_b2_2_other_kinds_under_the_name_with_our_label_alone_are_left_alone",
        ),
    ),
    "B2.3": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_5_b2_3_after_a_change_of_kind_the_next_machine_is_of_the_new_one_and_the_old_leaks_nothing",
        ),
        *_in(
            "tests/server/contract/test_b2_leftovers.py",
            "test_b2_3_a_kind_that_changes_leaks_nothing",
            "test_b2_3_b1_5_wanted_again_after_a_change_of_kind_the_old_objects_go_before_new_ones_come",
            "test_b2_3_leftovers_that_neither_a_machine_nor_status_names_are_found_by_label",
            "test_b2_2_b2_3_b2_5_machines_of_5_spot_are_taken_over_and_lost_ones_are_cleaned_up",
        ),
    ),
    "B2.4": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b2_4_a_kind_that_cluster_api_would_never_let_go_is_refused_before_anything_is_made",
        ),
        *_in(
            "tests/server/contract/test_b2_templates.py",
            "test_b2_4_a_kind_without_the_contract_label_is_refused_before_anything_is_created",
            "test_b2_4_kinds_that_are_installed_and_labelled_later_are_used_at_once",
            "test_b2_4_what_is_not_served_is_named_with_what_is",
            "test_b2_4_templates_may_neither_use_reserved_prefixes_nor_name_their_objects",
            "test_b2_4_version_and_failure_domain_are_copied_to_the_machine",
            "test_b2_4_an_edit_while_active_waits_for_the_next_activation",
            "test_b2_4_an_edit_that_is_taken_back_leaves_the_machine_up_to_date",
        ),
        *_in("tests/server/test_policy.py", "test_each_rule_denies_with_the_field_named"),
    ),
    "B2.5": (
        *_in(
            "tests/e2e/test_drain.py",
            "test_b2_5_a_budget_holds_the_drain_until_the_timeout_and_then_the_machine_goes",
            "test_b2_5_a_drain_goes_on_once_the_budget_allows_it",
            "test_b2_5_pods_without_a_budget_are_evicted",
            "test_b2_5_a_pod_that_does_not_end_is_named",
            "test_b2_5_a_timeout_of_nothing_does_not_drain_also_with_an_attached_volume",
            "test_b2_5_an_attached_volume_is_waited_for_until_the_timeout",
        ),
        *_in(
            "tests/server/contract/test_b2_drain.py",
            "test_b2_5_the_drain_timeout_is_on_the_machine_from_its_creation",
            "test_b2_5_a_timeout_of_nothing_means_that_nothing_is_drained",
            "test_b2_5_a_machine_of_ours_is_not_told_again_before_its_deletion",
        ),
        *_in(
            "tests/server/contract/test_b2_leftovers.py",
            "test_b2_2_b2_3_b2_5_machines_of_5_spot_are_taken_over_and_lost_ones_are_cleaned_up",
        ),
    ),
    "B2.6": (
        *_in(
            "tests/e2e/test_kill.py",
            "test_b2_6_b1_14_killed_it_goes_without_drain_and_without_grace",
            "test_b2_6_killed_in_the_middle_of_a_drain_it_waits_no_longer",
            "test_b2_6_lifecycle_hooks_are_respected_and_named",
        ),
        *_in(
            "tests/server/contract/test_b2_drain.py",
            "test_b2_6_killed_one_patch_takes_the_drain_away_and_hooks_are_respected",
        ),
    ),
    "B2.7": (
        *_in(
            "tests/server/contract/test_b2_taints.py",
            "test_b2_7_taints_are_rehearsed_first_and_then_on_the_machine",
            "test_b2_7_without_taints_nothing_is_rehearsed",
            "test_b2_7_a_server_that_refuses_taints_is_an_error_and_nothing_is_created",
            "test_b2_7_a_server_that_drops_taints_is_an_error_and_nothing_is_created",
            "test_b2_7_b7_1_a_machine_that_loses_its_taints_after_all_is_deleted_and_the_next_is_braked",
        ),
        *_in(
            "tests/e2e/test_outages.py",
            "test_b2_7_b6_4_b3_4_taints_reach_the_node_and_cluster_api_may_go_down_come_back_and_be_uninstalled",
        ),
        *_in(
            "tests/e2e/test_taints.py",
            "test_b2_7_without_the_feature_gate_nothing_is_made",
        ),
    ),
    "B2.8": (
        *_in(
            "tests/server/contract/test_b2_late.py",
            "test_b2_8_a_late_delete_of_the_machine_hits_no_other_of_that_name",
            "test_b2_8_a_late_delete_of_a_leftover_hits_no_other_of_that_name",
            "test_b2_8_a_late_create_finds_the_name_taken_and_says_so",
            "test_b2_8_a_create_that_was_overtaken_by_the_schedule_is_taken_back",
            "test_b2_8_a_late_patch_changes_neither_another_object_nor_a_later_state",
            "test_b2_8_a_late_report_is_not_written_over_a_later_one",
            "test_b2_8_no_delete_without_a_uid_exists_in_the_code",
            "test_b2_8_every_patch_of_an_object_that_others_write_names_uid_and_version",
        ),
    ),
    "B3.1": (
        *_in(
            "tests/server/contract/test_b3_deletion.py",
            "test_b3_1_nothing_is_created_before_the_finalizer_is_on_it",
            "test_b3_1_a_machine_that_is_down_has_the_finalizer_too",
        ),
    ),
    "B3.2": (
        *_in(
            "tests/server/contract/test_b3_deletion.py",
            "test_b3_2_deletion_skips_grace_keeps_the_drain_and_lets_go_last",
            "test_b3_2_what_is_left_after_the_machine_is_waited_for",
            "test_b3_2_a_deleted_one_is_not_started_whatever_its_schedule_says",
        ),
        *_in(
            "tests/e2e/test_deletion.py",
            "test_b3_2_deleted_in_the_background_it_is_drained_and_goes_last",
            "test_b3_2_deleted_with_orphans_wanted_it_leaves_its_machine_alone",
        ),
    ),
    "B3.3": (
        *_in(
            "tests/server/contract/test_b3_alone.py",
            "test_b3_3_a_deletion_that_takes_too_long_is_said_once_and_forced_only_when_asked",
        ),
    ),
    "B3.4": (
        *_in(
            "tests/server/contract/test_b3_alone.py",
            "test_b3_4_without_cluster_api_nothing_is_waited_for_and_its_installation_is_noticed",
        ),
        *_in(
            "tests/e2e/test_outages.py",
            "test_b2_7_b6_4_b3_4_taints_reach_the_node_and_cluster_api_may_go_down_come_back_and_be_uninstalled",
        ),
    ),
    "B3.5": (
        *_in(
            "tests/server/contract/test_b3_deletion.py",
            "test_b3_5_a_finalizer_that_comes_while_ours_is_being_added_is_kept",
            "test_b3_5_the_finalizers_of_others_survive_although_they_change_while_ours_is_removed",
        ),
    ),
    "B3.6": (
        *_in(
            "tests/server/contract/test_b3_deletion.py", "test_b3_6_a_namespace_with_ten_live_machines_goes_by_itself"
        ),
        *_in(
            "tests/e2e/test_deletion.py",
            "test_b3_6_a_namespace_with_a_live_machine_ends",
        ),
    ),
    "B3.7": (
        *_in(
            "tests/server/contract/test_b3_deletion.py",
            "test_b3_7_deletion_in_the_foreground_ends_and_may_cut_the_drain_short_as_documented",
            "test_b3_7_a_machine_that_is_down_goes_in_the_foreground_too",
        ),
        *_in(
            "tests/e2e/test_deletion.py",
            "test_b3_7_deleted_in_the_foreground_it_ends_too",
            "test_b3_7_deleted_by_the_collector_in_the_foreground_the_drain_is_cut_short",
        ),
    ),
    "B4.1": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b4_1_what_a_provider_says_of_its_failure_is_in_the_message",
        ),
        *_in(
            "tests/server/contract/test_b4_ready.py",
            "test_b4_1_ready_means_settled_as_wanted_and_reconciling_that_it_is_on_the_way",
            "test_b4_1_an_unresolved_schedule_is_loud_though_the_machine_is_held",
            "test_b4_1_an_unknown_kind_is_stalled_until_it_is_corrected",
            "test_b4_1_a_foreign_name_is_stalled_until_it_is_free",
            "test_b4_1_a_creation_that_admission_refuses_is_stalled",
            "test_b4_1_a_quota_and_a_missing_cluster_may_pass_and_are_reconciling",
        ),
    ),
    "B4.2": (
        *_in(
            "tests/e2e/test_life.py",
            "test_b1_1_b4_2_a_wanted_machine_is_adopted_runs_and_is_mirrored",
            "test_b4_2_running_means_that_a_node_registered_and_ready_that_it_takes_work",
        ),
        *_in(
            "tests/server/contract/test_b4_ready.py", "test_b4_2_machine_ready_follows_the_machines_own_ready_condition"
        ),
    ),
    "B4.3": (
        *_in(
            "tests/server/contract/test_b4_conditions.py",
            "test_b4_3_scheduled_names_the_verdict_and_who_decided",
            "test_b4_3_up_to_date_compares_the_machine_with_the_spec",
            "test_b4_3_paused_is_there_while_it_applies",
            "test_b4_3_fields_that_are_kept_but_not_acted_on_are_listed_and_told_once",
        ),
    ),
    "B4.4": (
        *_in(
            "tests/server/contract/test_b4_conditions.py",
            "test_b4_4_a_conditions_time_moves_only_with_its_status",
            "test_b4_4_observed_generation_is_that_of_the_spec_that_was_looked_at",
            "test_b4_4_conditions_of_other_writers_survive",
        ),
    ),
    "B4.5": (
        *_in(
            "tests/server/contract/test_b4_status.py",
            "test_b4_5_fields_are_written_and_cleared_when_they_are_no_longer_true",
            "test_b4_5_what_somebody_else_wrote_is_put_right",
        ),
    ),
    "B4.6": (
        *_in(
            "tests/server/contract/test_b4_status.py",
            "test_b4_6_what_changes_nothing_is_not_written_and_an_edit_is_one_write",
            "test_b4_6_changes_that_come_together_are_never_more_writes_than_changes",
        ),
    ),
    "B4.7": (
        *_in(
            "tests/server/contract/test_b4_events.py",
            "test_b4_7_each_change_of_phase_is_an_event_of_the_controller",
            "test_b4_7_a_resolution_lost_and_regained_and_a_refusal_are_told",
            "test_b4_7_a_flapping_provider_cannot_flood_and_lost_events_delay_nothing",
        ),
    ),
    "B4.8": (
        *_in("tests/server/contract/test_b4_secrets.py", "test_b4_8_what_an_embedded_spec_holds_is_told_nowhere"),
        *_in("tests/server/test_why.py", "test_nothing_of_an_embedded_spec_is_told"),
    ),
    "B5.1": (
        *_in(
            "tests/server/contract/test_b5_flips.py",
            "test_b5_1_a_flip_reaches_the_first_creation_without_waiting_for_a_poll",
        ),
    ),
    "B5.2": (
        *_in(
            "tests/server/contract/test_b5_flips.py",
            "test_b5_2_on_costs_three_creations_one_status_write_and_one_event_at_most",
            "test_b5_2_off_costs_one_deletion_those_of_leftovers_and_a_status_write_for_each_step",
            "test_b5_2_off_and_on_again_within_grace_touches_no_machine",
            "test_b5_2_what_cluster_api_reports_costs_one_status_write_for_each_change_that_is_shown",
        ),
        *_in(
            "tests/unit/controllers/test_costs.py",
            "test_b5_2_what_cluster_api_reports_of_a_machine_on_its_way_may_wait",
            "test_b5_2_that_a_machine_is_ready_and_that_it_no_longer_is_waits_for_nothing",
            "test_b5_2_whatever_else_changes_is_written_at_once",
        ),
        *_in(
            "tests/simulation/test_costs.py",
            "test_b5_2_a_machine_that_comes_and_goes_at_once_costs_no_status_writes_on_its_way",
            "test_b5_2_what_mirrors_a_machine_on_its_way_is_written_once_a_second_at_most_and_never_lost",
        ),
    ),
    "B5.3": (
        *_in(
            "tests/server/contract/test_b5_downtime.py",
            "test_b5_3_missed_changes_are_made_up_for_once_and_missed_boundaries_not_replayed",
        ),
        *_in(
            "tests/unit/controllers/test_decide_schedule.py",
            "test_b5_3_what_was_held_over_a_restart_deletes_nothing_before_the_schedule_had_time_to_be_read",
        ),
        *_in(
            "tests/simulation/test_restart.py",
            "test_a_machine_that_is_wanted_again_survives_a_restart_after_its_grace",
        ),
    ),
    "B5.4": (
        *_in(
            "tests/server/contract/test_b8_operators.py",
            "test_b5_4_namespaces_take_turns_and_the_higher_priority_goes_first",
        ),
    ),
    "B6.1": (
        *_in(
            "tests/server/contract/test_b6_cluster.py",
            "test_b6_1_without_its_cluster_nothing_is_created_and_with_it_at_once",
            "test_b6_1_a_cluster_that_is_being_deleted_takes_its_machines_along_without_grace",
            "test_b6_1_a_deletion_that_is_under_way_ends_a_grace_period_and_is_stronger_than_an_unresolved_schedule",
            "test_b6_1_the_kill_switch_is_stronger_than_the_deletion_of_the_cluster",
        ),
        *_in(
            "tests/e2e/test_deletion.py",
            "test_b6_1_a_cluster_that_is_deleted_takes_its_machines_along_and_ends",
            "test_b6_1_a_machine_of_a_cluster_that_comes_later_is_made_when_it_comes",
        ),
    ),
    "B6.2": (
        *_in(
            "tests/server/contract/test_b6_cluster.py",
            "test_b6_2_while_paused_nothing_is_created",
            "test_b6_2_while_paused_nothing_is_deleted_or_changed",
            "test_b6_2_the_kill_switch_alone_acts_while_paused",
            "test_b6_2_a_deletion_under_pause_keeps_the_finalizer_also_when_nothing_is_left",
            "test_b6_2_leftovers_wait_for_the_end_of_a_pause",
            "test_b6_2_an_object_first_seen_under_pause_is_reported_and_not_marked",
        ),
        *_in(
            "tests/e2e/test_pause.py",
            "test_b6_2_paused_the_machine_stays_and_resumed_it_goes",
            "test_b6_2_a_kill_under_pause_is_asked_for_and_cluster_api_carries_it_out_once_resumed",
        ),
    ),
    "B6.3": (
        *_in(
            "tests/e2e/test_move.py",
            "test_b6_3_a_moved_cluster_keeps_its_machines_and_the_schedule_goes_on_deciding",
        ),
    ),
    "B6.4": (
        *_in(
            "tests/e2e/test_outages.py",
            "test_b2_7_b6_4_b3_4_taints_reach_the_node_and_cluster_api_may_go_down_come_back_and_be_uninstalled",
        ),
    ),
    "B7.1": (
        *_in(
            "tests/e2e/test_phases.py",
            "test_b1_3_b7_1_a_machine_that_somebody_deletes_is_drained_and_replaced_after_a_wait",
            "test_b1_6_b7_1_a_machine_that_vanished_is_told_and_replaced_once_what_it_owned_is_gone",
            "test_b1_6_b7_1_a_machine_whose_objects_vanish_before_it_began_is_made_anew",
        ),
        *_in(
            "tests/server/contract/test_b1_b7_waiting.py",
            "test_b7_1_each_replacement_waits_twice_as_long_until_readiness_has_lasted",
            "test_b7_1_the_brake_outlives_the_manager_and_a_loss_during_its_absence_counts",
            "test_b7_1_the_brake_is_on_for_whoever_deletes_machines_and_off_for_our_own_shutdown",
        ),
        *_in(
            "tests/server/contract/test_b1_lost.py",
            "test_b1_6_b7_1_a_machine_that_is_gone_is_told_once_and_replaced_after_a_wait",
            "test_b1_8_b7_1_a_machine_that_a_health_check_marked_is_deleted_and_replaced_after_a_wait",
        ),
        *_in(
            "tests/server/contract/test_b1_up.py",
            "test_b1_3_b1_4_b7_1_a_machine_deleted_by_other_hands_is_replaced_after_a_wait",
        ),
        *_in(
            "tests/server/contract/test_b2_taints.py",
            "test_b2_7_b7_1_a_machine_that_loses_its_taints_after_all_is_deleted_and_the_next_is_braked",
        ),
    ),
    "B8.1": (*_in("tests/server/test_manager.py", "test_a_dry_run_decides_and_writes_nothing"),),
    "B8.2": (
        *_in(
            "tests/server/contract/test_b8_operators.py",
            "test_b8_2_one_namespace_with_roles_alone_is_served_and_no_other_is_looked_at",
        ),
    ),
    "B8.3": (
        *_in(
            "tests/server/contract/test_b8_operators.py",
            "test_b8_3_deletions_by_schedule_wait_their_turn_and_the_kill_switch_does_not",
        ),
        *_in(
            "tests/unit/controllers/test_deletion_limiter.py",
            "test_b8_3_without_a_limit_nothing_waits",
            "test_b8_3_a_machine_keeps_its_turn_until_it_used_it",
            "test_b8_3_no_minute_sees_more_deletions_than_the_limit",
            "test_b8_3_a_deletion_by_schedule_waits_for_its_turn_and_says_so",
            "test_b8_3_the_kill_switch_does_not_wait",
        ),
    ),
    "C1": (
        *_in(
            "tests/server/contract/test_c_boundary.py",
            "test_c1_c9_a_window_opens_and_another_closes_at_the_full_minute",
        ),
        *_in(
            "tests/server/contract/test_c_schedules.py",
            "test_c1_c8_every_kind_of_rule_gives_its_verdict_and_the_exact_next_change",
        ),
        *_in(
            "tests/unit/schedule/test_oracle.py",
            "test_nights_over_every_change_of_2026_and_2027_in_every_kind_of_zone",
            "test_any_schedule_agrees_at_every_half_hour",
        ),
        *_in("tests/unit/schedule/test_golden.py", "test_transitions_are_the_golden_ones"),
    ),
    "C2": (
        *_in(
            "tests/server/contract/test_c2_markets.py",
            "test_c2_every_kind_of_entry_gives_its_verdict_and_the_exact_next_change",
            "test_c2_a_closure_that_nobody_planned_takes_the_machine_and_its_end_brings_it_back",
            "test_c2_a_steady_market_is_written_once",
            "test_c2_a_zone_that_does_not_exist_is_reported_and_active_stays_as_it_was",
            "test_c2_people_see_the_columns_of_the_existing_5_spot",
            "test_c2_what_the_schema_can_tell_is_refused_with_the_field_named",
            "test_c2_what_keeps_the_rules_is_taken",
            "test_c2_a_status_without_a_verdict_reads_as_inactive_as_in_the_existing_5_spot",
        ),
        *_in(
            "tests/server/contract/test_c_schedules.py",
            "test_c2_c8_c9_boundaries_where_the_clock_jumps",
        ),
        *_in(
            "tests/unit/schedule/test_market_oracle.py",
            "test_sessions_over_every_change_of_2026_and_2027_in_every_kind_of_zone",
            "test_any_calendar_agrees_at_every_half_hour",
        ),
        *_in("tests/unit/schedule/test_golden.py", "test_transitions_are_the_golden_ones"),
    ),
    "C3": (
        *_in(
            "tests/server/contract/test_c_manual.py",
            "test_c3_a_switch_gives_and_takes_a_machine",
            "test_c3_a_base_decides_and_what_it_says_is_followed_without_a_restart",
            "test_c3_a_base_of_a_kind_that_comes_and_goes",
            "test_c3_a_chain_that_returns_or_is_too_long_is_told_to_all_in_it",
            "test_c3_a_schedule_with_neither_or_both_is_refused_when_applied",
        ),
        *_in(
            "tests/unit/providers/manual/test_manual.py",
            "test_what_cannot_be_read_is_no_verdict_and_is_told_after_half_a_minute",
            "test_eight_bases_may_follow_one_another_and_no_more",
        ),
    ),
    "C4": Later("needs an iCalendar library, as an extra"),
    "C5": Later("asks the outside world; not written yet"),
    "C6": Later("not written yet; the kit has what it needs, for ManualSchedule reads others"),
    "C7": (
        *_in(
            "tests/server/contract/test_c_overrides.py",
            "test_c7_an_override_gives_and_takes_a_machine_and_goes_by_itself",
            "test_c7_the_latest_one_that_started_decides_whoever_owns_it",
            "test_c7_to_the_next_transition_is_the_default_and_is_fixed_at_the_start",
            "test_c7_a_disabled_time_based_schedule_is_not_overridden",
            "test_c7_overrides_that_cannot_be_are_refused_when_applied",
            "test_c7_a_typing_error_in_an_override_is_told_by_kubectl",
        ),
        *_in(
            "tests/unit/providers/sdk/test_overrides.py",
            "test_of_two_that_start_at_once_the_last_by_name_decides",
            "test_where_no_transition_comes_it_holds_until_it_is_removed_and_that_is_told",
            "test_a_start_is_remembered_and_lost_memory_starts_anew_with_an_event",
            "test_minute_by_minute_it_says_what_the_rules_say_and_when_that_changes",
        ),
    ),
    "C8": (
        *_in(
            "tests/server/contract/test_c_schedules.py",
            "test_c1_c8_every_kind_of_rule_gives_its_verdict_and_the_exact_next_change",
            "test_c8_the_release_of_the_zone_data_is_told",
            "test_c2_c8_c9_boundaries_where_the_clock_jumps",
        ),
        *_in(
            "tests/unit/schedule/test_oracle.py",
            "test_nights_over_every_change_of_2026_and_2027_in_every_kind_of_zone",
            "test_every_zone_changes_its_offset_when_the_oracle_says",
        ),
        *_in("tests/unit/schedule/test_golden.py", "test_transitions_are_the_golden_ones"),
    ),
    "C9": (
        *_in(
            "tests/server/test_conformance.py",
            "test_providers_that_keep_every_rule_pass_all_of_them_the_shipped_ones_among_them",
        ),
        *_in(
            "tests/server/contract/test_c_boundary.py",
            "test_c1_c9_a_window_opens_and_another_closes_at_the_full_minute",
        ),
        *_in(
            "tests/server/contract/test_c_schedules.py",
            "test_c2_c8_c9_boundaries_where_the_clock_jumps",
            "test_c9_a_steady_schedule_is_written_once_and_put_right_when_somebody_else_writes",
        ),
        *_in("tests/server/contract/test_c_manual.py", "test_c9_the_status_of_a_new_kind_has_no_verdict_by_default"),
        *_in(
            "tests/server/contract/test_c_scale.py",
            "test_c9_c10_thousands_rest_a_thousand_ring_at_once_and_a_broken_one_harms_nobody",
        ),
        *_in("tests/server/test_admission.py", "test_a_schedule_status_has_a_verdict_by_default_and_may_say_never"),
    ),
    "C10": (
        *_in(
            "tests/server/test_conformance.py",
            "test_providers_that_keep_every_rule_pass_all_of_them_the_shipped_ones_among_them",
        ),
        *_in(
            "tests/server/contract/test_c_schedules.py",
            "test_c10_a_bad_spec_is_refused_when_applied_where_the_schema_can_tell",
            "test_c10_another_bad_spec_is_reported_and_active_stays_as_it_was",
        ),
        *_in("tests/server/test_admission.py", "test_a_schedule_that_breaks_a_rule_is_refused_with_the_field_named"),
        *_in(
            "tests/unit/providers/sdk/test_reconciler.py",
            "test_trouble_is_told_on_the_object_and_leaves_active_as_it_was",
        ),
        *_in(
            "tests/server/contract/test_c_scale.py",
            "test_c9_c10_thousands_rest_a_thousand_ring_at_once_and_a_broken_one_harms_nobody",
        ),
    ),
}

DUE: tuple[str, ...] = tuple(row for row in INDEX if row[0] in "AB")
"""Rows that may not be *later* any more."""
