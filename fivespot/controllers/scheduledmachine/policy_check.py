"""Reads again and again whether the admission policies are in force: without them users get past RBAC, unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import structlog

from fivespot.api import names
from fivespot.runtime import ApiError, Client, ForbiddenError, Key, NotFoundError, Resource, TransportError
from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import NotServedError, ProtocolError

from .holds import Holds

__all__ = ["PolicyCheck", "unbound_reason"]

POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)

_INTERVAL: Final = 60.0
_WHILE_UNBOUND: Final = 5.0
_REMINDER: Final = 3600.0
"""Seconds after which an unchanged problem is logged again."""
_NARROWING: Final = ("namespaceSelector", "objectSelector", "resourceRules", "excludeResourceRules")

_log = structlog.get_logger("fivespot.scheduledmachine")


def unbound_reason(
    name: str, policy: Mapping[str, Any] | None, binding: Mapping[str, Any] | None, *, whole_cluster: bool
) -> str:
    """The reason why a policy is not in force everywhere that the manager works; "" if it is.

    :param policy: the ValidatingAdmissionPolicy as stored, None if there is none; ``binding`` likewise.
    :param whole_cluster: False where the manager keeps to some namespaces, to which a binding may be limited.
    """
    if policy is None:
        return f"ValidatingAdmissionPolicy {name} does not exist"
    if binding is None:
        return f"ValidatingAdmissionPolicyBinding {name} does not exist, so the policy of that name is not in force"
    bound, rules = _mapping(binding.get("spec")), _mapping(policy.get("spec"))
    if bound.get("policyName") != name:
        return f"ValidatingAdmissionPolicyBinding {name} binds another policy"
    actions = bound.get("validationActions")
    if not isinstance(actions, list) or "Deny" not in actions:
        return f"ValidatingAdmissionPolicyBinding {name} does not deny (validationActions)"
    if rules.get("failurePolicy", "Fail") != "Fail":
        return f"ValidatingAdmissionPolicy {name} admits what it cannot judge (failurePolicy)"
    if not rules.get("validations"):
        return f"ValidatingAdmissionPolicy {name} has no validations"
    if whole_cluster and any(_mapping(bound.get("matchResources")).get(part) for part in _NARROWING):
        return f"ValidatingAdmissionPolicyBinding {name} is limited to a part of the cluster (matchResources)"
    return ""


class PolicyCheck:
    """A runnable that keeps :class:`Holds` informed about the admission policies.

    :param whole_cluster: as :func:`unbound_reason` takes it.
    """

    def __init__(self, client: Client, clock: Clock, holds: Holds, *, whole_cluster: bool) -> None:
        self._client = client
        self._clock = clock
        self._holds = holds
        self._whole_cluster = whole_cluster
        self._logged: Mapping[str, str] = {}
        self._logged_at = 0.0

    async def run(self) -> None:
        """Check until cancelled: every minute, and every 5 seconds while a policy is not in force."""
        while True:
            found = {name: await self._problem(name) for name in names.ADMISSION_POLICIES}
            self._log(found)
            self._holds.policies_observed(found)
            await asyncio.sleep(_WHILE_UNBOUND if any(found.values()) else _INTERVAL)

    async def _problem(self, name: str) -> str:
        try:
            policy, binding = await self._find(POLICIES, name), await self._find(BINDINGS, name)
        except ForbiddenError:
            return f"whether ValidatingAdmissionPolicy {name} is bound cannot be read: grant get on it and its binding"
        except NotServedError:
            return f"ValidatingAdmissionPolicy {name} does not exist: the API server does not serve that kind"
        except (ApiError, TransportError, ProtocolError, TimeoutError) as error:
            # A server that is away for a moment does not unbind a policy that was seen.
            known = self._holds.unbound.get(name)
            return known if known is not None else f"whether ValidatingAdmissionPolicy {name} is bound: {error}"
        return unbound_reason(name, policy, binding, whole_cluster=self._whole_cluster)

    async def _find(self, resource: Resource, name: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = (await self._client.get(resource, Key("", name))).decode()
        except NotFoundError:
            return None
        return found

    def _log(self, found: Mapping[str, str]) -> None:
        now = self._clock.monotonic()
        problems = {name: problem for name, problem in found.items() if problem}
        if problems == self._logged and (not problems or now - self._logged_at < _REMINDER):
            return
        if problems:
            _log.warning("an admission policy is not in force", problems=problems)
        else:
            _log.info("the admission policies are in force")
        self._logged, self._logged_at = problems, now


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
