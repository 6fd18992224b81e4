"""Acting as somebody else, as a kubeconfig may ask for.

The server lets a user who has the verb ``impersonate`` act as another, whom headers name (Kubernetes documentation,
"User impersonation"). The kubeconfig's ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` say whom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fivespot.runtime.errors import ConfigError

__all__ = ["impersonation_headers"]

_NEEDS_ESCAPE: Final = re.compile(rb"[^0-9A-Za-z!#$&'*+.^_`|~-]")
"""Bytes that a header's name cannot hold (RFC 9110, 5.6.2), and the escape character itself."""


def impersonation_headers(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for the user section of a kubeconfig; none if it does not impersonate.

    :raises ConfigError: a field has the wrong type, cannot stand in a header, or misses ``as`` beside it.
    """
    name, uid = _text(user, "as"), _text(user, "as-uid")
    groups = _texts(user.get("as-groups"), "as-groups")
    extra = user.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise ConfigError("as-user-extra is not a mapping of names to lists of texts")
    if not name:
        if uid or groups or extra:
            raise ConfigError("as-uid, as-groups and as-user-extra need the name of a user in as")
        return ()
    headers = [("Impersonate-User", name)]
    if uid:
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in groups]
    for key, values in extra.items():
        header = f"Impersonate-Extra-{_escaped(str(key))}"
        headers += [(header, value) for value in _texts(values, f"as-user-extra.{key}")]
    return tuple(headers)


def _text(user: Mapping[str, Any], field: str) -> str:
    value = user.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{field} is not a text of one line")
    return value


def _texts(values: Any, field: str) -> list[str]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, str) and value.isprintable() for value in values):
        raise ConfigError(f"{field} is not a list of texts of one line")
    return list(values)


def _escaped(key: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda found: b"%%%02X" % found[0][0], key.encode()).decode()
