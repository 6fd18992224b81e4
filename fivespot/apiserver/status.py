"""Refusals: one exception that is a ``meta/v1`` Status, and the wordings of the real server (1.37)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from .messages import ApiResponse, json_response

__all__ = [
    "ApiFault",
    "FieldCause",
    "already_exists",
    "bad_request",
    "conflict",
    "expired",
    "forbidden",
    "internal",
    "invalid",
    "invalid_options",
    "method_not_allowed",
    "not_acceptable",
    "not_found",
    "not_implemented",
    "nothing_served",
    "too_large",
    "unsupported_media",
    "version_too_large",
]

_UNKNOWN: Final = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One thing wrong with an object.

    :param field: its path, such as ``spec.ports[0].name``.
    :param reason: a ``FieldValue...`` reason.
    """

    field: str
    reason: str
    message: str

    def text(self) -> str:
        """As it appears in the message of the Status."""
        return f"{self.field}: {self.message}"


class ApiFault(Exception):
    """A request that is refused; the server answers with :meth:`status`."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers
        self.metadata: dict[str, Any] = {}

    def status(self) -> dict[str, Any]:
        """The Status object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body

    def response(self) -> ApiResponse:
        """The answer that tells it."""
        return json_response(self.code, msgspec.json.encode(self.status()), self.headers)


def _details(group: str, kind: str, name: str, **extra: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    return {**details, **extra}


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> ApiFault:
    """404 for an object."""
    message = f'{_qualified(group, resource)} "{name}" not found'
    return ApiFault(404, "NotFound", message, _details(group, resource, name))


def nothing_served() -> ApiFault:
    """404 for a resource that a served group and version does not have."""
    return ApiFault(404, "NotFound", _UNKNOWN, {})


def already_exists(group: str, resource: str, name: str) -> ApiFault:
    """409 for a name that is taken."""
    message = f'{_qualified(group, resource)} "{name}" already exists'
    return ApiFault(409, "AlreadyExists", message, _details(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> ApiFault:
    """409 for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {_qualified(group, resource)} "{name}": {why}'
    return ApiFault(409, "Conflict", message, _details(group, resource, name))


def forbidden(group: str, resource: str, name: str, why: str, *causes: FieldCause) -> ApiFault:
    """403."""
    extra = {"causes": _causes(causes)} if causes else {}
    message = f'{_qualified(group, resource)} "{name}" is forbidden: {why}'
    return ApiFault(403, "Forbidden", message, _details(group, resource, name, **extra))


def invalid(group: str, kind: str, name: str, causes: Sequence[FieldCause]) -> ApiFault:
    """422 with what is wrong, field by field."""
    texts = [cause.text() for cause in causes]
    words = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{_qualified(group, kind)} "{name}" is invalid: {words}'
    return ApiFault(422, "Invalid", message, _details(group, kind, name, causes=_causes(causes)))


def invalid_options(kind: str, *causes: FieldCause) -> ApiFault:
    """422 for parameters that do not go together."""
    return invalid("meta.k8s.io", kind, "", causes)


def _causes(causes: Sequence[FieldCause]) -> list[dict[str, str]]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]


def bad_request(message: str) -> ApiFault:
    """400."""
    return ApiFault(400, "BadRequest", message)


def internal(message: str) -> ApiFault:
    """500 without a reason: how the real server passes on errors that it did not expect in a request."""
    return ApiFault(500, "", message)


def method_not_allowed() -> ApiFault:
    """405."""
    return ApiFault(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(available: str) -> ApiFault:
    """406."""
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return ApiFault(406, "NotAcceptable", message, {})


def unsupported_media(accepted: Sequence[str]) -> ApiFault:
    """415 with what would be accepted."""
    known = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return ApiFault(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> ApiFault:
    """413."""
    return ApiFault(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(message: str) -> ApiFault:
    """410: a version or a continue token whose history is gone."""
    return ApiFault(410, "Expired", message)


def version_too_large(asked: int, current: int) -> ApiFault:
    """504 for a version that has not happened yet."""
    words = "Too large resource version"
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": words}], "retryAfterSeconds": 1}
    message = f"Timeout: {words}: {asked}, current: {current}"
    return ApiFault(504, "Timeout", message, details, [("Retry-After", "1")])


def not_implemented(what: str) -> ApiFault:
    """501: part of the Kubernetes API that this server does not have, and says so."""
    return ApiFault(501, "NotImplemented", f"the embedded API server does not implement {what}", {})
