"""Tests of ``tests/server`` that need more than the server in memory has, and what; all others run on both servers.

``--server embedded`` runs these too, and they have to fail there: what passes is no entry of this list. Those that need
real time are not run, since they may pass by chance; of a file that is listed as a whole the first test is enough.
"""

from __future__ import annotations

REAL_TIME = "real time: "


def _of(file: str, reason: str, *tests: str) -> dict[str, str]:
    """Some tests of a file, or all of them."""
    path = f"tests/server/{file}"
    return {f"{path}::{test}": reason for test in tests} or {path: reason}


REAL_ONLY: dict[str, str] = {
    **_of("test_policy.py", "admission policies"),
    **_of("test_controller_policy.py", "admission policies"),
    **_of(
        "test_administrator_holds.py",
        "admission policies, and the log of the manager's process",
        "test_nothing_is_created_until_the_policy_is_bound",
        "test_a_binding_that_is_deleted_shows_and_holds_back_the_next_creation",
        "test_an_annotation_on_the_lease_stops_everything_but_the_kill_switch",
    ),
    **_of(
        "test_secure_metrics.py",
        "reviews of tokens and rights",
        "test_metrics_are_for_accounts_that_may_get_them",
    ),
    **_of(
        "test_rights.py",
        "RBAC, and options of kube-apiserver",
        "test_the_roles_without_wildcards_are_enough",
        "test_a_server_that_does_not_stream_lists_is_asked_for_lists",
        "test_the_right_on_finalizers_is_needed_where_owner_references_are_enforced",
    ),
    **_of(
        "contract/test_hostile_provider.py",
        f"{REAL_TIME}eight threads write as fast as one client may",
        "test_eight_providers_that_flap_harm_only_their_own_machines",
    ),
    **_of(
        "contract/test_secrets.py",
        "the log of the manager's process",
        "test_what_an_embedded_spec_holds_is_told_nowhere",
    ),
    **_of(
        "contract/test_flip_cost.py",
        f"{REAL_TIME}how long a flip takes",
        "test_a_flip_reaches_the_first_creation_without_waiting_for_a_poll",
    ),
    **_of(
        "contract/test_provider_scale.py",
        f"{REAL_TIME}the rates that a server reaches, and the CPU time of the manager's process",
        "test_thousands_rest_a_thousand_ring_at_once_and_a_broken_one_harms_nobody",
    ),
    **_of(
        "contract/test_timebasedspotschedule.py",
        "the log of the manager's process",
        "test_the_release_of_the_zone_data_is_told",
    ),
    **_of(
        "faults/test_server_restarts.py",
        f"{REAL_TIME}processes that are killed, etcd among them, each with what it had not written",
        "test_servers_killed_again_and_again_under_churn_lose_nothing_and_leave_nothing_behind",
    ),
    **_of(
        "test_client.py",
        "certificates of people, and RBAC",
        "test_a_kubeconfig_that_impersonates_acts_as_whom_it_names",
        "test_a_service_account_and_a_certificate_are_known_to_the_server",
    ),
    **_of(
        "test_control_plane.py",
        "admission policies",
        "test_an_admission_policy_is_type_checked_and_enforced",
    ),
    **_of(
        "test_control_plane.py",
        "certificates of people, and RBAC",
        "test_a_person_with_a_certificate_is_that_person",
        "test_a_service_account_has_the_rights_that_rbac_gives_it_and_no_others",
    ),
    **_of(
        "test_control_plane.py",
        "the programs of the real control plane",
        "test_all_of_it_listens_on_loopback_only",
        "test_the_server_comes_back_on_its_port_with_its_data",
    ),
    **_of(
        "test_manifests.py",
        "RBAC and admission policies: all of the manifests",
        "test_a_labelled_role_adds_kinds_of_another_group",
        "test_everything_applies_strictly_and_again_without_a_change",
        "test_the_policies_type_check_against_the_definitions",
        "test_the_service_account_may_do_its_work_and_no_more",
    ),
    **_of("test_provider_examples.py", "RBAC: the manifests of the examples"),
    **_of(
        "test_new_provider.py",
        "RBAC: the manifests of a new provider",
        "test_it_works_under_the_rights_of_its_own_manifests",
    ),
    **_of(
        "test_why.py",
        "certificates of people, and RBAC",
        "test_the_rights_of_a_person_in_one_namespace_are_enough",
    ),
}

LONG: dict[str, str] = {
    **_of("test_async_provider.py", "intervals between questions pass in real time"),
    **_of("test_manager_startup.py", "seconds for each start of the manager"),
    **_of("test_examples.py", "programs that run in real time; tests/simulation has their like in virtual time"),
    **_of("test_conformance.py", "the kit waits; tests/simulation/test_conformance.py has it in virtual time"),
    **_of("test_manager.py", "leases and the limits of a stop pass in real time"),
    **_of(
        "test_new_provider.py",
        "the tests of a new project, as a person runs them",
        "test_its_tests_pass_as_generated_and_every_rule_is_kept",
    ),
    **_of("test_provider_guide.py", "every command of the page, the kit's among them"),
    **_of("test_idle_cost.py", "two thousand machines rest for a minute"),
    **_of("faults/test_half_open.py", "the idle limit of a watch passes in real time"),
    **_of("faults/test_kind_churn.py", "the memory of a process over many kinds"),
    **_of("faults/test_leader.py", "leases pass in real time"),
}
"""Tests that pass on the server in memory too, and take long there; ``--long`` adds them."""
