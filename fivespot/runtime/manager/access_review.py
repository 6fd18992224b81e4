"""Decides who may read the metrics, as the API server decides everything else: by TokenReview and SubjectAccessReview.

Clients bring the token of a ServiceAccount or user. A ClusterRole with ``nonResourceURLs: ["/metrics"]`` and the verb
``get`` grants them the right.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
import structlog

from fivespot.runtime.clock import Clock
from fivespot.runtime.errors import ApiError, ForbiddenError, ProtocolError, TransportError
from fivespot.runtime.telemetry import LogLimiter

__all__ = ["REVIEW_PATHS", "Access", "AccessReview"]

_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_RIGHTS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEW_PATHS: Final = (_TOKENS, _RIGHTS)
"""The paths that are posted to. Nothing is stored there."""

_ALLOWED_FOR: Final = 60.0
_DENIED_FOR: Final = 10.0
"""Seconds for which an answer holds: a right that is revoked counts no longer than this."""
_REMEMBERED: Final = 256
_REVIEWS_PER_SECOND: Final = 5
"""Unknown tokens cost two requests to the API server each; a peer that makes tokens up must not flood it."""
_LOG_INTERVAL: Final = 60.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """The answer to one request.

    :param status: 200, or the HTTP status of the refusal.
    :param why: the reason of a refusal, for the peer.
    """

    status: int
    why: str = ""


class ReviewClient(Protocol):
    """The client verb that reviews use."""

    async def raw(self, method: str, path: str, *, body: bytes | None = None) -> bytes: ...


class AccessReview:
    """Answers whether the bearer of a token may ``get`` a path, and remembers answers for a while.

    Tokens are remembered by their hash alone.

    :param client: may create TokenReviews and SubjectAccessReviews.
    """

    def __init__(self, client: ReviewClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: OrderedDict[tuple[bytes, str], tuple[Access, float]] = OrderedDict()
        self._second = -1
        self._in_second = 0
        self._turns = asyncio.Semaphore(_REVIEWS_PER_SECOND)
        self._log_limiter = LogLimiter(_LOG_INTERVAL)

    async def check(self, authorization: str, path: str) -> Access:
        """Return whether a request with this Authorization header may read a path."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Access(401, "send the token of an account as Authorization: Bearer TOKEN")
        key = (hashlib.sha256(token.encode("latin-1", "replace")).digest(), path)
        known = self._known.get(key)
        if known is not None and self._clock.monotonic() < known[1]:
            return known[0]
        if not self._has_turn():
            return Access(429, "too many unknown tokens; try again in a second")
        try:
            async with self._turns:
                access = await self._review(token, path)
        except ForbiddenError as error:
            self._complain(error)
            return Access(500, "tokens cannot be checked: grant the manager TokenReviews and SubjectAccessReviews")
        except (ApiError, TransportError, ProtocolError, TimeoutError) as error:
            self._complain(error)
            return Access(503, "tokens cannot be checked at the moment")
        held_for = _ALLOWED_FOR if access.status == 200 else _DENIED_FOR
        self._known[key] = (access, self._clock.monotonic() + held_for)
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return access

    async def _review(self, token: str, path: str) -> Access:
        spec: dict[str, Any] = {"token": token}
        review = await self._post(_TOKENS, "authentication.k8s.io/v1", "TokenReview", spec)
        user = _mapping(review.get("user"))
        if review.get("authenticated") is not True or not user.get("username"):
            return Access(401, "the API server does not know this token")
        spec = {
            "user": user["username"],
            "groups": user.get("groups"),
            "uid": user.get("uid"),
            "extra": user.get("extra"),
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        asked = {name: value for name, value in spec.items() if value}
        review = await self._post(_RIGHTS, "authorization.k8s.io/v1", "SubjectAccessReview", asked)
        if review.get("allowed") is not True or review.get("denied") is True:
            return Access(403, f"{user['username']} may not get {path}; a ClusterRole with nonResourceURLs grants it")
        return Access(200)

    async def _post(self, path: str, api_version: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        body = msgspec.json.encode({"apiVersion": api_version, "kind": kind, "spec": spec})
        try:
            answer = msgspec.json.decode(await self._client.raw("POST", path, body=body))
        except msgspec.DecodeError as error:
            raise ProtocolError(f"POST {path}: the answer is no JSON") from error
        return _mapping(_mapping(answer).get("status"))

    def _has_turn(self) -> bool:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second <= _REVIEWS_PER_SECOND

    def _complain(self, error: Exception) -> None:
        suppressed = self._log_limiter.allow(type(error).__name__, self._clock.monotonic())
        if suppressed is not None:
            # Never the request: it holds the token.
            _log.warning("a token could not be checked", error=type(error).__name__, suppressed=suppressed)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
