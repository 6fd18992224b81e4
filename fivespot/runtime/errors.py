"""The exceptions of the runtime, in one tree.

::

    FivespotError
    ├── ConfigError                  a kubeconfig, token or flag cannot be used; names the file and the cause
    ├── TransportError               no response: the server may or may not have acted
    │   ├── ConnectError             the request was never sent; safe to repeat
    │   │   └── ConnectDeadlineError also a DeadlineError: no connection within the limit
    │   ├── DeadlineError            a connect, read or total limit was exceeded
    │   └── BrokenStreamError        the connection ended in the middle of a response
    ├── ProtocolError                the response is not what the Kubernetes API promises
    │   └── UndecodableObjectError   one object in it cannot be decoded; the others can
    ├── ApiError                     the API server refused (carries HTTP status and reason)
    │   ├── BadRequestError          400
    │   ├── UnauthorizedError        401
    │   ├── ForbiddenError           403
    │   ├── NotFoundError            404, reason NotFound and the name of the object: it does not exist
    │   ├── NotServedError           any other 404: says nothing about the object; retry
    │   ├── MethodNotAllowedError    405
    │   ├── ConflictError            409, reason Conflict: the object has changed
    │   │   └── AlreadyExistsError   409, reason AlreadyExists
    │   ├── GoneError                410: a resource version or continue token is too old
    │   ├── UnsupportedMediaError    415
    │   ├── InvalidError             422: carries the causes with field paths
    │   ├── ThrottledError           429: carries Retry-After
    │   └── ServerError              5xx
    │       └── ServerTimeoutError   504
    ├── StaleReadError               an object or kind is not (or no longer) as it was read; read again
    ├── KindNotServedError           discovery knows no such kind
    ├── WatchEnded                   the end of a watch, with its reason
    ├── NotLeaderError               a write was not sent because the Lease is not provably held
    ├── TerminalError                raised by a reconciler: do not retry until something changes
    ├── QueueShutDownError           the work queue is closed
    ├── MemberEndedError             a task of the manager returned or was cancelled before it was stopped
    └── StopError                    names what did not stop within the grace period

:class:`~fivespot.runtime.client.WatchEnded` and :class:`~fivespot.runtime.manager.MemberEndedError` are defined beside
what raises them.
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
    "ConnectDeadlineError",
    "ConnectError",
    "DeadlineError",
    "FivespotError",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "KindNotServedError",
    "MethodNotAllowedError",
    "NotFoundError",
    "NotLeaderError",
    "NotServedError",
    "ProtocolError",
    "QueueShutDownError",
    "ServerError",
    "ServerTimeoutError",
    "StaleReadError",
    "StatusCause",
    "StopError",
    "TerminalError",
    "ThrottledError",
    "TransportError",
    "UnauthorizedError",
    "UndecodableObjectError",
    "UnsupportedMediaError",
    "api_error",
]


class FivespotError(Exception):
    """Base class of the runtime's errors."""


class ConfigError(FivespotError):
    """A kubeconfig, credential or flag cannot be used; the message names the file or flag and the cause."""


class TransportError(FivespotError):
    """No response arrived; whether the server acted is unknown unless a subclass says otherwise."""


class ConnectError(TransportError):
    """No connection could be made, so the request was not sent and can be repeated safely."""


class DeadlineError(TransportError):
    """A connect, read or total limit was exceeded."""


class ConnectDeadlineError(ConnectError, DeadlineError):
    """No connection was made within the connect limit, so the request was not sent."""


class BrokenStreamError(TransportError):
    """The connection ended in the middle of a response."""


class ProtocolError(FivespotError):
    """A response arrived, but it is not what the Kubernetes API promises."""


class UndecodableObjectError(ProtocolError):
    """One object of an answer or a watch cannot be decoded.

    :param namespace: of the object, as far as it can be read; "" otherwise.
    :param name: likewise.
    """

    def __init__(self, message: str, *, namespace: str = "", name: str = "") -> None:
        super().__init__(message)
        self.namespace = namespace
        self.name = name


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One entry of ``details.causes`` of a Kubernetes Status (API conventions, "Response status kind")."""

    reason: str
    message: str
    field: str


class ApiError(FivespotError):
    """The API server returned a failure.

    :param status: HTTP status code.
    :param reason: machine-readable reason of the Status body, or "" when the body was not a Status.
    :param message: the server's message, truncated.
    :param request: the failed request, such as ``create machines prod/web``.
    :param causes: field errors of a 422 (and of some 400).
    :param retry_after: seconds that the server asked to wait (header or Status), or None.
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
    """400: the request is malformed."""


class UnauthorizedError(ApiError):
    """401: the credentials are not accepted."""


class ForbiddenError(ApiError):
    """403: no permission, denied by admission, quota exceeded, or the namespace is terminating."""


class NotFoundError(ApiError):
    """404: the object does not exist. For a create it is the namespace that does not exist."""


class NotServedError(ApiError):
    """404 that says nothing about the object: the path is not served (yet), or a proxy answered.

    Raised for plain text, for a Status without reason NotFound, and for one that does not name the requested object.
    The object may well exist, so retry instead of concluding that it is gone.
    """


class MethodNotAllowedError(ApiError):
    """405: the resource does not support the verb."""


class ConflictError(ApiError):
    """409: the object has changed, or a precondition (uid, resourceVersion) does not hold."""


class AlreadyExistsError(ConflictError):
    """409: an object with that name exists."""


class GoneError(ApiError):
    """410: a resource version or a continue token is too old; list again."""


class UnsupportedMediaError(ApiError):
    """415: the server does not accept the content type."""


class InvalidError(ApiError):
    """422: the object fails validation (schema, CEL, admission); ``causes`` names the fields."""


class ThrottledError(ApiError):
    """429: too many requests, or an eviction that a disruption budget does not allow; see ``retry_after``."""


class ServerError(ApiError):
    """5xx: the server failed."""


class ServerTimeoutError(ServerError):
    """504: the server timed out, or its watch cache has not reached the requested version."""


class StaleReadError(FivespotError):
    """An object or kind is not (or no longer) as it was read: read again.

    Raised by a reconciler, it has the key run again quietly, as a :class:`ConflictError` has.
    """


class KindNotServedError(FivespotError):
    """No served version of the group has the kind, according to discovery."""


class NotLeaderError(FivespotError):
    """A leader-only write was not sent, or its connection was closed, because the Lease is not provably held."""


class TerminalError(FivespotError):
    """Raised by a reconciler when a retry cannot succeed until the object or a dependency changes."""


class QueueShutDownError(FivespotError):
    """The work queue is closed; raised in every waiting getter."""


class StopError(FivespotError):
    """Something did not stop within the grace period; the message names it."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
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
    names_object: bool = True,
) -> ApiError:
    """Create the subclass of :class:`ApiError` for an HTTP status and a Status reason.

    :param names_object: False if the Status does not name the requested object, so that a 404 says nothing about it.
    """
    error_type = _BY_STATUS.get(status) or (ServerError if status >= 500 else ApiError)
    if status == 404:
        error_type = NotFoundError if reason == "NotFound" and names_object else NotServedError
    elif status == 409 and reason == "AlreadyExists":
        error_type = AlreadyExistsError
    elif reason == "Expired":
        error_type = GoneError
    return error_type(status, reason, message, request=request, causes=causes, retry_after=retry_after)
