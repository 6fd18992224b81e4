"""Resource paths of requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .messages import decode_segment
from .names import is_path_segment
from .status import bad_request

__all__ = ["RequestTarget", "resource_target"]


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The parts of a resource path; "" for missing ones."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: bool = False
    """Whether segments follow the subresource."""


@lru_cache(maxsize=4096)
def resource_target(path: str) -> RequestTarget | None:
    """The target of a path under ``/api/VERSION`` or ``/apis/GROUP/VERSION``; None for all other paths.

    :raises StatusError: 400, the name is not a valid path segment.
    """
    parts = decode_segment(path).split("/")[1:]
    if parts and parts[-1] == "" and len(parts) > 1:
        parts.pop()
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if not rest:
        return RequestTarget(group, version)
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in {"status", "finalize"}:
        target = _in_namespace(group, version, rest)
    else:
        namespace = rest[1] if rest[0] == "namespaces" and group == "" and len(rest) > 1 else ""
        target = RequestTarget(group, version, rest[0], namespace if len(rest) > 3 else "", *_names(rest[1:]))
    for name in (target.namespace, target.name):
        if name and (problem := is_path_segment(name)):
            raise bad_request(f'Name parameter invalid: "{name}": {problem}')
    return target


def _in_namespace(group: str, version: str, rest: list[str]) -> RequestTarget:
    return RequestTarget(group, version, rest[2], rest[1], *_names(rest[3:]))


def _names(rest: list[str]) -> tuple[str, str, bool]:
    """Name, subresource, and whether there is more."""
    padded = [*rest, "", ""]
    # Empty segments in the middle match no resource.
    more = len(rest) > 2 or any(part == "" for part in rest)
    return padded[0], padded[1], more
