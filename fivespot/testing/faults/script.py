"""Fault scripts: rules that select the requests of a fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from fivespot.apiserver import ApiRequest, ApiResponse, Handler

__all__ = ["Fault", "Faults", "InjectedFault", "RequestInfo", "Rule"]

_PATCHES = {"PATCH": "patch", "PUT": "update", "POST": "create", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The attributes of a request, as RBAC names them.

    :param verb: get, list, watch, create, update, patch, delete, or "" for a path that is no resource.
    :param resource: the plural, with the subresource after a slash, such as ``machines/status``.
    """

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, request: ApiRequest) -> RequestInfo:
        """Parse the path of a request."""
        parts = [part for part in request.path.split("/") if part]
        if parts[:1] == ["apis"] and len(parts) >= 4:
            group, rest = parts[1], parts[3:]
        elif parts[:1] == ["api"] and len(parts) >= 3:
            group, rest = "", parts[2:]
        else:
            return cls("", request.path)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) >= 3:
            namespace, rest = rest[1], rest[2:]
        name = rest[1] if len(rest) > 1 else ""
        resource = "/".join([rest[0], *rest[2:3]])
        verb = _PATCHES.get(request.method, "get" if name else "list")
        if verb == "list" and request.parameter("watch") in {"true", "1"}:
            verb = "watch"
        return cls(verb, resource, group, namespace, name)


class Fault(Protocol):
    """A fault of one request."""

    async def apply(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        """Answer the request, with or without calling ``handler``, the server."""
        ...


@dataclass(frozen=True)
class Rule:
    """A fault and the requests that it applies to. Omitted parameters match everything.

    :param verb: as in :class:`RequestInfo`.
    :param resource: the plural; ``machines/status`` for a subresource.
    :param namespace: of the request.
    :param name: of the object.
    :param nth: only the nth matching request, counted from 1.
    :param times: only the first matching requests.
    :param probability: probability for each matching request.
    """

    fault: Fault
    verb: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    nth: int = 0
    times: int = 0
    probability: float = 1.0

    def covers(self, seen: RequestInfo) -> bool:
        """Whether a request matches, regardless of ``nth``, ``times`` and ``probability``."""
        wanted = (self.verb, self.resource, self.namespace, self.name)
        found = (seen.verb, seen.resource, seen.namespace, seen.name)
        return all(given in {"", one} for given, one in zip(wanted, found, strict=True))


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that was injected."""

    seen: RequestInfo
    fault: Fault


class Faults:
    """A script; pass it as ``middleware`` to an :class:`~fivespot.apiserver.ApiServer`.

    :param rules: checked in order; the first that applies to a request wins.
    :param seed: seed of the random numbers for ``probability``.
    :ivar happened: all injected faults, oldest first.
    """

    def __init__(self, *rules: Rule, seed: int = 0) -> None:
        self._rules: list[Rule] = []
        self._counts: list[int] = []
        self._rng = Random(seed)  # noqa: S311 - which requests fail is no secret
        self.happened: list[InjectedFault] = []
        self.add(*rules)

    def add(self, *rules: Rule) -> None:
        """Append rules; their counts start at zero."""
        self._rules.extend(rules)
        self._counts.extend(0 for _ in rules)

    def clear(self) -> None:
        """Remove all rules; open streams keep their faults."""
        self._rules, self._counts = [], []

    def replace(self, rules: Iterable[Rule]) -> None:
        """Replace all rules."""
        self.clear()
        self.add(*rules)

    async def __call__(self, request: ApiRequest, handler: Handler) -> ApiResponse:
        """The middleware."""
        if not self._rules:
            return await handler(request)
        seen = RequestInfo.of(request)
        fault = self._choose(seen)
        if fault is None:
            return await handler(request)
        self.happened.append(InjectedFault(seen, fault))
        return await fault.apply(request, handler)

    def _choose(self, seen: RequestInfo) -> Fault | None:
        for position, rule in enumerate(self._rules):
            if not rule.covers(seen):
                continue
            self._counts[position] += 1
            count = self._counts[position]
            if rule.nth and count != rule.nth:
                continue
            if rule.times and count > rule.times:
                continue
            if rule.probability < 1.0 and self._rng.random() >= rule.probability:
                continue
            return rule.fault
        return None
