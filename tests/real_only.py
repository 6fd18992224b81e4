"""Tests of ``tests/server`` that need more than the server in memory has, and what.

All others run on both servers (``--server embedded`` chooses the one in memory). The unit tests refuse an entry that
does not exist; ``tests/server/test_real_only.py`` lets some of these run on the server in memory, where they must fail.
"""

from __future__ import annotations


def _of(file: str, reason: str, *tests: str) -> dict[str, str]:
    """Some tests of a file, or all of them."""
    path = f"tests/server/{file}"
    return {f"{path}::{test}": reason for test in tests} or {path: reason}


REAL_ONLY: dict[str, str] = {
    **_of(
        "contract/test_a_installed.py",
        "RBAC: a provider has rights for its own kind alone",
        "test_a14_a_third_partys_provider_needs_its_definition_its_controller_and_rights_for_itself",
    ),
    **_of(
        "contract/test_a_hostile.py",
        "real time: eight threads write as fast as one client may",
        "test_a13_eight_providers_that_flap_harm_only_their_own_machines",
    ),
    **_of(
        "contract/test_b4_secrets.py",
        "the log of the manager's process",
        "test_b4_8_what_an_embedded_spec_holds_is_told_nowhere",
    ),
    **_of(
        "contract/test_b5_flips.py",
        "real time: how long a flip takes",
        "test_b5_1_a_flip_reaches_the_first_creation_without_waiting_for_a_poll",
    ),
    **_of(
        "contract/test_b8_operators.py",
        "RBAC: roles of one namespace",
        "test_b8_2_one_namespace_with_roles_alone_is_served_and_no_other_is_looked_at",
    ),
    **_of(
        "contract/test_c_scale.py",
        "RBAC, and real time: the CPU time of the manager's process",
        "test_c9_c10_thousands_rest_a_thousand_ring_at_once_and_a_broken_one_harms_nobody",
    ),
    **_of(
        "contract/test_c_schedules.py",
        "the log of the manager's process",
        "test_c8_the_release_of_the_zone_data_is_told",
    ),
}
