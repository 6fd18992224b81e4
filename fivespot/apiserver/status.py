"""Error responses: an exception that carries a ``meta/v1`` Status, with kube-apiserver's messages (1.37)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from .json_codec import encode_json
from .messages import ApiResponse, json_response

__all__ = [
    "FieldCause",
    "StatusError",
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
    "version_required",
    "version_too_large",
]

_UNKNOWN: Final = "the server could not find the requested resource"


@dataclass(frozen=True, slots=True)
class FieldCause:
    """A validation error of one field.

    :param field: its path, such as ``spec.ports[0].name``.
    :param reason: a ``FieldValue...`` reason.
    """

    field: str
    reason: str
    message: str

    def text(self) -> str:
        """As it appears in the message of the Status."""
        return f"{self.field}: {self.message}"


class StatusError(Exception):
    """A refused request; the response is :meth:`status`."""

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
        """The error response."""
        return json_response(self.code, encode_json(self.status()), self.headers)


def _details(group: str, kind: str, name: str, **extra: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return {**details, **extra}


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    """404 for an object."""
    message = f'{_qualified(group, resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(group, resource, name))


def nothing_served() -> StatusError:
    """404 for a resource that does not exist in a served group and version."""
    return StatusError(404, "NotFound", _UNKNOWN, {})


def already_exists(group: str, resource: str, name: str) -> StatusError:
    """409 for a name that is taken."""
    message = f'{_qualified(group, resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    """409 for a precondition that does not hold."""
    message = f'Operation cannot be fulfilled on {_qualified(group, resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(group, resource, name))


def forbidden(group: str, resource: str, name: str, why: str, *causes: FieldCause) -> StatusError:
    """403."""
    extra = {"causes": _causes(causes)} if causes else {}
    message = f'{_qualified(group, resource)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, _details(group, resource, name, **extra))


def invalid(group: str, kind: str, name: str, causes: Sequence[FieldCause]) -> StatusError:
    """422 with a cause for each invalid field."""
    texts = [cause.text() for cause in causes]
    words = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{_qualified(group, kind)} "{name}" is invalid: {words}'
    return StatusError(422, "Invalid", message, _details(group, kind, name, causes=_causes(causes)))


def version_required(group: str, resource: str, name: str) -> StatusError:
    """422 for an update without a resourceVersion, of a kind that needs one."""
    words = "Invalid value: 0: must be specified for an update"
    return invalid(group, resource, name, [FieldCause("metadata.resourceVersion", "FieldValueInvalid", words)])


def invalid_options(kind: str, *causes: FieldCause) -> StatusError:
    """422 for parameters that do not go together."""
    return invalid("meta.k8s.io", kind, "", causes)


def _causes(causes: Sequence[FieldCause]) -> list[dict[str, str]]:
    return [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def internal(message: str) -> StatusError:
    """500 without a reason, as kube-apiserver reports unexpected errors."""
    return StatusError(500, "", message)


def method_not_allowed() -> StatusError:
    """405."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(available: str) -> StatusError:
    """406."""
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {available}")


def unsupported_media(accepted: Sequence[str]) -> StatusError:
    """415 with what would be accepted."""
    known = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {known}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """413."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(message: str) -> StatusError:
    """410: the history for a resourceVersion or continue token is compacted."""
    return StatusError(410, "Expired", message)


def version_too_large(asked: int, current: int) -> StatusError:
    """504 for a resourceVersion in the future."""
    words = "Too large resource version"
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": words}], "retryAfterSeconds": 1}
    message = f"Timeout: {words}: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, details, [("Retry-After", "1")])


def not_implemented(what: str) -> StatusError:
    """501: a part of the Kubernetes API that this server does not implement."""
    return StatusError(501, "NotImplemented", f"the embedded API server does not implement {what}", {})
