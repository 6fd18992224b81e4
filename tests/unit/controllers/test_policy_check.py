"""Whether the admission policies are in force, read from the server and judged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import structlog

from fivespot.api import names
from fivespot.controllers.scheduledmachine.holds import Holds
from fivespot.controllers.scheduledmachine.policy_check import PolicyCheck, unbound_reason
from fivespot.runtime import ForbiddenError, Key, NotFoundError, Object, Resource, TransportError
from fivespot.runtime.clock import LoopClock
from fivespot.testing.cluster import START

NAME = names.ADMISSION_POLICY
Json = dict[str, Any]


def policy(**spec: Any) -> Json:
    return {"spec": {"failurePolicy": "Fail", "validations": [{"expression": "true"}], **spec}}


def binding(**spec: Any) -> Json:
    return {"spec": {"policyName": NAME, "validationActions": ["Deny"], **spec}}


@pytest.mark.parametrize(
    ("found", "bound", "words"),
    [
        (policy(), binding(), ""),
        (policy(), binding(validationActions=["Audit", "Deny"], matchResources={"matchPolicy": "Equivalent"}), ""),
        (None, binding(), f"ValidatingAdmissionPolicy {NAME} does not exist"),
        (policy(), None, f"ValidatingAdmissionPolicyBinding {NAME} does not exist"),
        (policy(), binding(policyName="other"), "binds another policy"),
        (policy(), binding(validationActions=["Warn", "Audit"]), "does not deny"),
        (policy(), binding(validationActions=None), "does not deny"),
        (policy(failurePolicy="Ignore"), binding(), "admits what it cannot judge"),
        (policy(validations=[]), binding(), "has no validations"),
        (policy(), binding(matchResources={"namespaceSelector": {"matchLabels": {"a": "b"}}}), "a part of the cluster"),
        (policy(), binding(matchResources={"excludeResourceRules": [{}]}), "a part of the cluster"),
        ({"spec": "x"}, {"spec": []}, "binds another policy"),
    ],
)
def test_a_policy_that_does_not_deny_everywhere_is_not_in_force(found: Json, bound: Json, words: str) -> None:
    reason = unbound_reason(NAME, found, bound, whole_cluster=True)
    assert words in reason
    assert bool(words) == bool(reason)


def test_the_binding_of_a_manager_of_some_namespaces_may_be_limited_to_them() -> None:
    limited = binding(matchResources={"namespaceSelector": {"matchLabels": {"a": "b"}}})
    assert unbound_reason(NAME, policy(), limited, whole_cluster=False) == ""


class Server:
    """Answers reads of policies and bindings."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.error: Exception | None = None
        self.reads = 0

    def install(self) -> None:
        for name in names.ADMISSION_POLICIES:
            self.objects[f"ValidatingAdmissionPolicy {name}"] = policy()
            self.objects[f"ValidatingAdmissionPolicyBinding {name}"] = binding(policyName=name)

    async def get(self, resource: Resource, key: Key) -> Object:
        self.reads += 1
        if self.error is not None:
            raise self.error
        found = self.objects.get(f"{resource.kind} {key.name}")
        if found is None:
            raise NotFoundError(404, "NotFound", "not found", request="get")
        metadata = {"name": key.name, "uid": "u", "resourceVersion": "1"}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **found}
        return Object.parse(json.dumps(body).encode())


@pytest.fixture
def server() -> Server:
    return Server()


def held(holds: Holds) -> bool:
    return holds.creation is not None


def check(server: Server, holds: Holds) -> PolicyCheck:
    return PolicyCheck(server, LoopClock(START), holds, whole_cluster=True)  # type: ignore[arg-type]


@pytest.mark.usefixtures("fivespot_cluster")
async def test_a_policy_that_is_applied_or_removed_later_is_noticed(server: Server) -> None:
    holds = Holds(require_policy=True)
    with structlog.testing.capture_logs() as logs:
        running = asyncio.create_task(check(server, holds).run())
        await asyncio.sleep(1)
        assert "does not exist" in holds.policy_note()
        server.install()
        await asyncio.sleep(6)
        assert not held(holds)
        assert holds.policy_note() == ""
        reads = server.reads
        await asyncio.sleep(600)
        assert server.reads - reads == 40, "four reads a minute while all is well"
        del server.objects[f"ValidatingAdmissionPolicyBinding {NAME}"]
        await asyncio.sleep(61)
        assert held(holds)
        await asyncio.sleep(7200)
        running.cancel()
    events = [entry["event"] for entry in logs]
    assert events[:3] == [
        "an admission policy is not in force",
        "the admission policies are in force",
        "an admission policy is not in force",
    ]
    assert events[3:] == ["an admission policy is not in force"] * 2, "a reminder every hour"


@pytest.mark.usefixtures("fivespot_cluster")
async def test_a_server_that_is_away_unbinds_nothing_and_one_that_forbids_reading_does(server: Server) -> None:
    holds = Holds(require_policy=True)
    server.install()
    running = asyncio.create_task(check(server, holds).run())
    await asyncio.sleep(1)
    server.error = TransportError("connection refused")
    await asyncio.sleep(61)
    assert not held(holds)
    server.error = ForbiddenError(403, "Forbidden", "no", request="get")
    await asyncio.sleep(61)
    assert held(holds)
    assert "cannot be read: grant get" in holds.policy_note()
    running.cancel()


@pytest.mark.usefixtures("fivespot_cluster")
async def test_until_the_first_answer_nothing_counts_as_bound(server: Server) -> None:
    holds = Holds(require_policy=True)
    server.error = TransportError("connection refused")
    running = asyncio.create_task(check(server, holds).run())
    await asyncio.sleep(1)
    assert held(holds)
    assert "connection refused" in holds.policy_note()
    running.cancel()
