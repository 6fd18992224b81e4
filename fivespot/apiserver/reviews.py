"""Reviews: who the client is, and what it may do. Everybody may do everything here."""

from __future__ import annotations

from typing import Any, Final

from .body import decode
from .json_codec import encode_json
from .messages import ApiRequest, ApiResponse, json_response
from .routes import resource_target
from .status import FieldCause, bad_request, invalid, method_not_allowed

__all__ = ["REVIEWS", "Reviews"]

Json = dict[str, Any]

_AUTHORIZATION: Final = "authorization.k8s.io"
_AUTHENTICATION: Final = "authentication.k8s.io"
REVIEWS: Final = {
    (_AUTHENTICATION, "selfsubjectreviews"): "SelfSubjectReview",
    (_AUTHENTICATION, "tokenreviews"): "TokenReview",
    (_AUTHORIZATION, "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    (_AUTHORIZATION, "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (_AUTHORIZATION, "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    (_AUTHORIZATION, "subjectaccessreviews"): "SubjectAccessReview",
}
"""The kinds by group and plural; each has version v1 and can only be created."""
_USER: Final = {"username": "embedded", "groups": ["system:masters", "system:authenticated"]}
_ATTRIBUTES: Final = ("nonResourceAttributes", "resourceAttributes")


class Reviews:
    """Answers creations of reviews.

    :param token: the bearer token of the server; "" if it has none and every token is valid.
    """

    def __init__(self, token: str) -> None:
        self._token = token

    def answer(self, request: ApiRequest) -> ApiResponse | None:
        """The answer to a request; None if it is for no review.

        :raises StatusError: 400, 405, 422.
        """
        if not request.path.startswith(("/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")):
            return None
        target = resource_target(request.path)
        kind = REVIEWS.get((target.group, target.plural)) if target is not None and target.version == "v1" else None
        if target is None or kind is None:
            return None
        if request.method != "POST" or target.name:
            raise method_not_allowed()
        body = decode(request.body, request.header("content-type"), kind).value
        if not isinstance(body, dict) or body.get("kind", kind) != kind:
            raise bad_request(f"the body is no {kind}")
        spec = body.get("spec") or {}
        if not isinstance(spec, dict):
            raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: spec is no object')
        status = self._status(target.group, kind, spec)
        type_ = {"kind": kind, "apiVersion": f"{target.group}/v1", "metadata": {}}
        return json_response(201, encode_json({**type_, **({"spec": spec} if spec else {}), "status": status}))

    def _status(self, group: str, kind: str, spec: Json) -> Json:
        if kind == "SelfSubjectReview":
            return {"userInfo": _USER}
        if kind == "TokenReview":
            if self._token and spec.get("token") != self._token:
                return {"user": {}, "error": "invalid bearer token"}
            return {"authenticated": True, "user": _USER}
        if kind == "SelfSubjectRulesReview":
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            return {
                "resourceRules": rules,
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        if sum(name in spec for name in _ATTRIBUTES) != 1:
            words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            value = encode_json(spec.get("resourceAttributes")).decode()
            raise invalid(group, "", "", [FieldCause("spec", "FieldValueInvalid", f"Invalid value: {value}: {words}")])
        return {"allowed": True}
