"""What the real server says where it refuses, for the scripts of the one in memory."""

from __future__ import annotations

from fivespot.testing.faults import SeenRequest
from harness import MANAGER_USER

from .obstacles import Refused

__all__ = ["FORBIDDEN", "conversion_failed", "denied", "forbidden", "over_quota", "webhook_failed"]


def _object(seen: SeenRequest, name: str = "") -> str:
    plural = ".".join(filter(None, (seen.resource.partition("/")[0], seen.group)))
    named = name or seen.name
    return f'{plural} "{named}"' if named else plural


def forbidden(user: str) -> Refused:
    """By RBAC."""

    def words(seen: SeenRequest) -> str:
        place = f'in the namespace "{seen.namespace}"' if seen.namespace else "at the cluster scope"
        what = f'cannot {seen.verb} resource "{seen.resource}" in API group "{seen.group}" {place}'
        return f'{_object(seen)} is forbidden: User "{user}" {what}'

    return Refused(403, words)


FORBIDDEN = forbidden(MANAGER_USER)
"""By RBAC; for the manager alone."""


def denied(words: str) -> Refused:
    """By an admission policy with these words."""
    rule = "ValidatingAdmissionPolicy 'refuse' with binding 'refuse' denied request"
    return Refused(422, lambda seen: f"{_object(seen, 'web')} is forbidden: {rule}: {words}")


def over_quota(what: str) -> Refused:
    """By a ResourceQuota ``machines`` that allows none."""
    figures = f"requested: {what}=1, used: {what}=0, limited: {what}=0"
    return Refused(403, lambda seen: f"{_object(seen, 'web')} is forbidden: exceeded quota: machines, {figures}")


def webhook_failed() -> Refused:
    """An admission webhook that nobody answers."""
    cause = 'Post "https://127.0.0.1:1/validate?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused'
    words = f'Internal error occurred: failed calling webhook "machines.example.com": failed to call webhook: {cause}'
    return Refused(500, lambda seen: words)


def conversion_failed(group: str, plural: str, stored: str) -> Refused:
    """A conversion webhook that nobody answers, for all versions but the one that objects are stored at."""
    cause = 'Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
    words = f"conversion webhook for {plural}.{group} failed: {cause}"
    unconverted = f"/apis/{group}/{stored}/"
    return Refused(500, lambda seen: words, lambda request: bool(stored) and request.path.startswith(unconverted))
