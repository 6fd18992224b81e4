"""The parts of the real server's audit log that tests read, for the embedded one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from controlplane import server as real_server
from controlplane.audit import COMPLETE, STARTED
from fivespot.apiserver import ApiRequest, ApiResponse, Handler

__all__ = ["Audit", "reference_of", "verb_of"]

Json = dict[str, Any]

_PATH = re.compile(
    r"/apis?(?:/(?P<apiGroup>[^/]+\.[^/]+|apps|batch))?/(?P<apiVersion>v[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[^/?]+)(?:/(?P<name>[^/?]+))?(?:/(?P<subresource>[^/?]+))?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Audit:
    """Notes requests as a middleware of the server.

    :param now: the wall clock.
    :param user: who sent a request.
    """

    def __init__(self, now: Callable[[], datetime], user: Callable[[ApiRequest], str]) -> None:
        self._now = now
        self._user = user
        self._events: list[Json] = []
        # As `log_bodies` has it for the real server.
        self._whole = {
            (each["group"], resource)
            for rule in vars(real_server)["POLICY"]["rules"]
            if rule["level"] == "Request"
            for each in rule["resources"]
            for resource in each["resources"]
        }

    def mark(self) -> int:
        return len(self._events)

    def events(self, *, since: int = 0, stages: Iterable[str] = (COMPLETE,)) -> list[Json]:
        wanted = frozenset(stages)
        return [event for event in self._events[since:] if event["stage"] in wanted]

    async def note(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        begun = self._now()
        answer = await handler(request)
        event = {
            "stage": COMPLETE if isinstance(answer.body, bytes) else STARTED,
            "verb": verb_of(request),
            "user": {"username": self._user(request)},
            "userAgent": request.header("user-agent"),
            "requestURI": f"{request.path}?{urlencode(request.query)}",
            "responseStatus": {"code": answer.status},
            "requestReceivedTimestamp": _micro(begun),
            "stageTimestamp": _micro(self._now()),
        }
        if reference := reference_of(request):
            event["objectRef"] = reference
            place = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
            if (reference.get("apiGroup", ""), place) in self._whole and request.body:
                event["requestObject"] = json.loads(request.body)
        self._events.append(event)
        return answer


def verb_of(request: ApiRequest) -> str:
    """The verb in the words of RBAC."""
    reference = reference_of(request)
    if request.method == "GET":
        named = "name" in reference
        return "get" if named else "watch" if request.parameter("watch") else "list"
    if request.method == "DELETE":
        return "delete" if "name" in reference else "deletecollection"
    return _VERBS.get(request.method, request.method.lower())


def reference_of(request: ApiRequest) -> Json:
    """Return the objectRef of a request's audit event; empty for a path that is not a resource."""
    found = _PATH.fullmatch(request.path)
    if found is None:
        return {}
    reference = {name: value for name, value in found.groupdict().items() if value}
    if request.method == "POST" and request.body:
        with suppress(ValueError):
            reference.setdefault("name", json.loads(request.body).get("metadata", {}).get("name", ""))
    if reference["resource"] == "namespaces" and "name" in reference:
        reference["namespace"] = reference["name"]
    return reference


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
