"""The last writer of a field, by ``metadata.managedFields`` (Kubernetes, "Server-Side Apply").

The API server records the field manager of a write, such as ``kubectl-patch`` or the name of a GitOps tool, and no
user. Caches do not keep these records: they are in what the server answers to a read or a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FieldWriter", "field_writer"]

_LONGEST: Final = 128
"""Characters of a field manager, which the server limits to as many."""


@dataclass(frozen=True, slots=True)
class FieldWriter:
    """The field manager that wrote a field, and the time of its last write, as the server recorded it."""

    manager: str
    time: str

    def __str__(self) -> str:
        return f"set by {self.manager} at {self.time}"


def field_writer(body: Mapping[str, Any], *path: str) -> FieldWriter | None:
    """Return the last writer of a field, or of any field below it; None where the object does not tell.

    :param path: such as ``"spec", "killSwitch"``; an item of a list with keys is named as in managedFields,
        ``'k:{"name":"night"}'``.
    """
    metadata = body.get("metadata")
    managed = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    found: FieldWriter | None = None
    for entry in managed if isinstance(managed, list) else ():
        if not isinstance(entry, Mapping) or entry.get("subresource") or not _has(entry.get("fieldsV1"), path):
            continue
        writer = FieldWriter(_text(entry.get("manager")), _text(entry.get("time")))
        # RFC 3339 instants in UTC are in order as text.
        if writer.manager and (found is None or writer.time >= found.time):
            found = writer
    return found


def _has(fields: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        name = part if part.startswith(("k:", "v:")) else f"f:{part}"
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    return isinstance(fields, Mapping)


def _text(value: object) -> str:
    shown = value[:_LONGEST] if isinstance(value, str) else ""
    return "".join(character if character.isprintable() else " " for character in shown)
