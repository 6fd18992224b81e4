"""Refusals and delays for requests to the embedded server.

The embedded server evaluates no rights and no admission rules. A test that needs an answer of theirs puts that answer
here, in the words of the real server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fivespot.apiserver import ApiRequest, ApiResponse, Handler, StatusError
from fivespot.testing.faults import Fault, Faults, RequestInfo, Rule
from harness import MANAGER_USER

_REASONS = {403: "Forbidden", 422: "Invalid", 500: "InternalError"}


@dataclass(frozen=True)
class RequestRule(Rule):
    """A rule about a group too.

    :param applies: a further condition.
    """

    group: str = ""
    applies: Callable[[RequestInfo], bool] = lambda seen: True

    def covers(self, seen: RequestInfo) -> bool:
        return super().covers(seen) and self.group in {"", seen.group} and self.applies(seen)


@dataclass(frozen=True)
class Refusal:
    """An error with a Status.

    :param message: gets what was asked for.
    :param passes: those that are not refused all the same.
    """

    code: int
    message: Callable[[RequestInfo], str]
    passes: Callable[[ApiRequest], bool] = lambda request: False

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if self.passes(request):
            return await handler(request)
        return StatusError(self.code, _REASONS[self.code], self.message(RequestInfo.of(request))).response()


@dataclass(frozen=True)
class EditedBody:
    """The server gets the request with another body, as if a mutating rule had changed it."""

    edit: Callable[[Any], None]
    dry_runs: bool = True

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        if request.parameter("dryRun") and not self.dry_runs:
            return await handler(request)
        body = json.loads(request.body)
        self.edit(body)
        changed = ApiRequest(request.method, request.path, request.query, request.headers, json.dumps(body).encode())
        return await handler(changed)


class RequestFaults:
    """A middleware; rules are put up and taken down from outside the loop.

    :param user: who sent a request.
    """

    def __init__(self, user: Callable[[ApiRequest], str]) -> None:
        self._user = user
        self._everybody: list[Rule] = []
        self._manager: list[Rule] = []
        self._scripts = Faults(), Faults()
        self.standing: dict[str, Callable[[], None]] = {}
        """What stands until it is replaced: by name, what takes it down."""

    def add(self, fault: Fault, *, manager_only: bool = False, **where: Any) -> Callable[[], None]:
        """Put a fault up; the function that is given takes it down, once or several times.

        :param where: which requests; see :class:`~fivespot.testing.faults.Rule` and :class:`RequestRule`.
        """
        rules = self._manager if manager_only else self._everybody
        rule = RequestRule(fault, **where)
        rules.append(rule)
        self._renew()

        def down() -> None:
            rules[:] = [each for each in rules if each is not rule]
            self._renew()

        return down

    @contextmanager
    def put(self, fault: Fault, *, manager_only: bool = False, **where: Any) -> Iterator[Callable[[], None]]:
        """The same inside a scope."""
        down = self.add(fault, manager_only=manager_only, **where)
        try:
            yield down
        finally:
            down()

    async def __call__(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        everybody, manager = self._scripts

        async def go_on(request: ApiRequest) -> ApiResponse:
            return await everybody(request, handler)

        return await (manager(request, go_on) if self._user(request) == MANAGER_USER else go_on(request))

    def _renew(self) -> None:
        # Replaced as a whole: a request on another thread sees the one or the other.
        self._scripts = Faults(*self._everybody), Faults(*self._manager)


def _object(seen: RequestInfo, name: str = "") -> str:
    plural = ".".join(filter(None, (seen.resource.partition("/")[0], seen.group)))
    named = name or seen.name
    return f'{plural} "{named}"' if named else plural


def forbidden(user: str) -> Refusal:
    """By RBAC."""

    def words(seen: RequestInfo) -> str:
        place = f'in the namespace "{seen.namespace}"' if seen.namespace else "at the cluster scope"
        what = f'cannot {seen.verb} resource "{seen.resource}" in API group "{seen.group}" {place}'
        return f'{_object(seen)} is forbidden: User "{user}" {what}'

    return Refusal(403, words)


FORBIDDEN = forbidden(MANAGER_USER)
"""By RBAC; for the manager alone."""


def denied(words: str) -> Refusal:
    """By an admission policy with these words."""
    rule = "ValidatingAdmissionPolicy 'refuse' with binding 'refuse' denied request"
    return Refusal(422, lambda seen: f"{_object(seen, 'web')} is forbidden: {rule}: {words}")


def over_quota(what: str) -> Refusal:
    """By a ResourceQuota ``machines`` that allows none."""
    figures = f"requested: {what}=1, used: {what}=0, limited: {what}=0"
    return Refusal(403, lambda seen: f"{_object(seen, 'web')} is forbidden: exceeded quota: machines, {figures}")


def webhook_failed() -> Refusal:
    """An admission webhook that nobody answers."""
    cause = 'Post "https://127.0.0.1:1/validate?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused'
    words = f'Internal error occurred: failed calling webhook "machines.example.com": failed to call webhook: {cause}'
    return Refusal(500, lambda seen: words)


def conversion_failed(group: str, plural: str, stored: str) -> Refusal:
    """A conversion webhook that nobody answers, for all versions but the one that objects are stored at."""
    cause = 'Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
    words = f"conversion webhook for {plural}.{group} failed: {cause}"
    unconverted = f"/apis/{group}/{stored}/"
    return Refusal(500, lambda seen: words, lambda request: bool(stored) and request.path.startswith(unconverted))
