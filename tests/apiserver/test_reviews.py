"""Reviews: who the client is, and what it may do."""

from __future__ import annotations

import pytest

from support.targets import Target

ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
GROUP = "authorization.k8s.io/v1"


def access(**spec: object) -> dict[str, object]:
    return {"apiVersion": GROUP, "kind": "SelfSubjectAccessReview", "spec": spec}


def test_an_administrator_may_do_everything(target: Target, ns: str) -> None:
    asked = {"verb": "get", "resource": "configmaps", "namespace": ns}
    answer = target.create(ACCESS, access(resourceAttributes=asked))
    assert answer.status == 201
    assert answer.body["status"]["allowed"] is True
    assert answer.body["spec"] == {"resourceAttributes": asked}
    assert target.create(ACCESS, access(nonResourceAttributes={"verb": "get", "path": "/x"})).ok()["status"]["allowed"]


@pytest.mark.parametrize("spec", [{}, {"resourceAttributes": {}, "nonResourceAttributes": {}}], ids=["none", "both"])
def test_a_review_asks_for_exactly_one_thing(target: Target, spec: dict[str, object]) -> None:
    refused = target.create(ACCESS, access(**spec))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert "exactly one of nonResourceAttributes or resourceAttributes must be specified" in refused.message


def test_the_rules_of_an_administrator_cover_everything(target: Target, ns: str) -> None:
    body = {"apiVersion": GROUP, "kind": "SelfSubjectRulesReview", "spec": {"namespace": ns}}
    rules = target.create(RULES, body).ok()["status"]["resourceRules"]
    assert any(rule["verbs"] == rule["resources"] == ["*"] for rule in rules)


def test_a_client_learns_who_it_is(target: Target) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert "system:masters" in target.create(WHO, body).ok()["status"]["userInfo"]["groups"]


def test_reviews_are_only_created(target: Target) -> None:
    assert target.get(ACCESS).status == 405
