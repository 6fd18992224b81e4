"""The exceptions of the runtime, in one tree.

::

    FivespotError
    ├── ConfigError                  a kubeconfig, token or flag cannot be used; names file and cause
    ├── TransportError               no answer: the server may or may not have acted
    │   ├── ConnectError             the request was never sent; safe to repeat
    │   ├── DeadlineError            a connect, read or total limit passed
    │   └── BrokenStreamError        the connection ended in the middle of an answer
    ├── ProtocolError                an answer came, but it is not what the API promises
    ├── ApiError                     the API server refused (carries HTTP status and reason)
    │   ├── BadRequestError          400
    │   ├── UnauthorizedError        401
    │   ├── ForbiddenError           403
    │   ├── NotFoundError            404
    │   ├── MethodNotAllowedError    405
    │   ├── ConflictError            409, reason Conflict: the object has moved on
    │   │   └── AlreadyExistsError   409, reason AlreadyExists
    │   ├── GoneError                410: a version or continue token is too old
    │   ├── UnsupportedMediaError    415
    │   ├── InvalidError             422: carries the causes with field paths
    │   ├── ThrottledError           429: carries Retry-After
    │   └── ServerError              5xx
    │       └── ServerTimeoutError   504
    ├── KindNotServedError           discovery knows no such kind
    ├── NotSyncedError               a cache was asked before its first list was complete
    ├── TerminalError                a reconciler says: do not retry until something changes
    ├── QueueShutDownError           the work queue is closed
    └── StopError                    what did not stop within the grace period, by name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "BrokenStreamError",
    "ConfigError",
    "ConflictError",
    "ConnectError",
    "DeadlineError",
    "FivespotError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "KindNotServedError",
    "MethodNotAllowedError",
    "NotFoundError",
    "NotSyncedError",
    "ProtocolError",
    "QueueShutDownError",
    "ServerError",
    "ServerTimeoutError",
    "StatusCause",
    "StopError",
    "TerminalError",
    "ThrottledError",
    "TransportError",
    "UnauthorizedError",
    "UnsupportedMediaError",
    "api_error",
]


class FivespotError(Exception):
    """Base of every error that the runtime raises on purpose."""


class ConfigError(FivespotError):
    """A kubeconfig, credential or flag cannot be used. The text names the file or flag and the cause."""


class TransportError(FivespotError):
    """No answer came. Whether the server acted is unknown unless a subclass says otherwise."""


class ConnectError(TransportError):
    """No connection could be made, so the request was never sent and repeating it is safe."""


class DeadlineError(TransportError):
    """A connect, read or total limit passed."""


class BrokenStreamError(TransportError):
    """The connection ended in the middle of an answer."""


class ProtocolError(FivespotError):
    """An answer came, but it is not what the Kubernetes API promises."""


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One entry of ``details.causes`` of a Kubernetes Status (API conventions, "Response status kind")."""

    reason: str
    message: str
    field: str


class ApiError(FivespotError):
    """The API server answered with a failure.

    :param status: HTTP status code.
    :param reason: machine-readable reason of the Status body, or "" when the body was no Status.
    :param message: the server's words, cut to a bounded length.
    :param request: what was tried, such as ``create machines prod/web``.
    :param causes: field errors of a 422 (and of some 400).
    :param retry_after: seconds the server asked to wait (header or Status), or None.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        request: str,
        causes: Sequence[StatusCause] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{request}: {status} {reason or 'no reason'}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.request = request
        self.causes = tuple(causes)
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """400: the request cannot be understood."""


class UnauthorizedError(ApiError):
    """401: the credentials are not known."""


class ForbiddenError(ApiError):
    """403: not allowed, refused by admission, over quota, or the namespace is being deleted."""


class NotFoundError(ApiError):
    """404: no such object, or no such resource (then the body is plain text)."""


class MethodNotAllowedError(ApiError):
    """405: the resource does not have that verb."""


class ConflictError(ApiError):
    """409: the object has moved on, or a precondition (uid, resourceVersion) does not hold."""


class AlreadyExistsError(ConflictError):
    """409: an object of that name exists."""


class GoneError(ApiError):
    """410: a resource version or a continue token is too old; list again."""


class UnsupportedMediaError(ApiError):
    """415: the server does not take that content type."""


class InvalidError(ApiError):
    """422: schema, CEL or validation refused; ``causes`` names the fields."""


class ThrottledError(ApiError):
    """429: too many requests, or an eviction that a budget refuses; see ``retry_after``."""


class ServerError(ApiError):
    """5xx: the server failed."""


class ServerTimeoutError(ServerError):
    """504: the server gave up waiting, or its cache has not reached the asked version."""


class KindNotServedError(FivespotError):
    """Discovery was read and no served version has the kind."""


class NotSyncedError(FivespotError):
    """A cache was read before its first list was complete."""


class TerminalError(FivespotError):
    """Raised by a reconciler: retrying cannot help until the object or something it depends on changes."""


class QueueShutDownError(FivespotError):
    """The work queue is closed; raised to every waiting getter."""


class StopError(FivespotError):
    """Something did not stop within the grace period; the text names it."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    410: GoneError,
    415: UnsupportedMediaError,
    422: InvalidError,
    429: ThrottledError,
    504: ServerTimeoutError,
}


def api_error(
    status: int,
    reason: str,
    message: str,
    *,
    request: str,
    causes: Sequence[StatusCause] = (),
    retry_after: float | None = None,
) -> ApiError:
    """Choose the class of :class:`ApiError` for an HTTP status and a Status reason."""
    kind = _BY_STATUS.get(status) or (ServerError if status >= 500 else ApiError)
    if status == 409 and reason == "AlreadyExists":
        kind = AlreadyExistsError
    elif reason == "Expired":
        kind = GoneError
    return kind(status, reason, message, request=request, causes=causes, retry_after=retry_after)
