"""Refusals of the API server as people and the retries see them."""

from __future__ import annotations

import pytest

from fivespot.controllers.scheduledmachine.act import _refusal
from fivespot.runtime import ForbiddenError, InvalidError
from fivespot.runtime.errors import StatusCause

REQUEST = "create machines.cluster.x-k8s.io team-a/web-1"


@pytest.mark.contract("B4.1")
def test_a_namespace_that_terminates_and_a_quota_may_pass_and_are_not_stalled() -> None:
    cause = StatusCause("NamespaceTerminating", "namespace team-a is being terminated", "metadata.namespace")
    ending = ForbiddenError(403, "Forbidden", "team-a is being terminated", request=REQUEST, causes=[cause])
    quota = ForbiddenError(403, "Forbidden", "exceeded quota: c, used: 3", request=REQUEST)
    right = ForbiddenError(403, "Forbidden", "is forbidden: User x cannot create", request=REQUEST)
    assert not _refusal(ending, "MachineCreationFailed").stalled
    assert not _refusal(quota, "MachineCreationFailed").stalled
    assert _refusal(right, "MachineCreationFailed").stalled


def test_the_remedy_of_a_refused_deletion_is_no_edit_of_the_spec() -> None:
    error = InvalidError(422, "Invalid", "no", request="delete machines.cluster.x-k8s.io team-a/web-1")
    assert "correct the spec" not in _refusal(error, "MachineDeletionFailed").message
