"""Parses the status of a provider object.

A provider is any tenant's object, so nothing in it is trusted: texts are truncated and cleaned, wrong types make the
provider unresolved, and nothing here raises.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from fivespot.runtime.objects import parse_rfc3339

from .resolution import PROVIDER_NOT_READY, STATUS_ACTIVE_MISSING, Display, Resolved, Unresolved

__all__ = ["MESSAGE_BYTES", "REASON_BYTES", "clean", "cut_provider", "read_provider"]

# A reason and a message may appear three times (in two conditions and in status.spotSchedule); with the time that
# stays under 1 KiB.
REASON_BYTES: Final = 64
MESSAGE_BYTES: Final = 256
TIME_BYTES: Final = 40


class _Status(msgspec.Struct, rename="camel", gc=False):
    active: msgspec.Raw = msgspec.Raw()
    conditions: msgspec.Raw = msgspec.Raw()
    observed_generation: msgspec.Raw = msgspec.Raw()
    last_transition_time: msgspec.Raw = msgspec.Raw()


class _Wire(msgspec.Struct, gc=False):
    status: msgspec.Raw = msgspec.Raw()


class _Found(msgspec.Struct, gc=False):
    active: bool | None = None
    ready: str | None = None
    reason: str = ""
    message: str = ""
    observed: int | None = None
    since: str = ""


_wire = msgspec.json.Decoder(_Wire)
_status = msgspec.json.Decoder(_Status)
_entries = msgspec.json.Decoder(list[msgspec.Raw])
_mapping = msgspec.json.Decoder(dict[str, msgspec.Raw])
_boolean = msgspec.json.Decoder(bool)
_integer = msgspec.json.Decoder(int)
_string = msgspec.json.Decoder(str)

_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_GARBAGE: Final = "garbage"
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


def clean(text: str, limit: int) -> str:
    """Return the text as one line without control or unprintable characters, of at most ``limit`` UTF-8 bytes."""
    # Truncated first, so that the work does not depend on the length of the text.
    visible = text[:limit]
    if not visible.isprintable():
        visible = "".join(c if c.isprintable() else " " for c in visible)
    line = " ".join(visible.split())
    return line.encode("utf-8", "ignore")[:limit].decode("utf-8", "ignore")


def cut_provider(raw: bytes | msgspec.Raw) -> bytes:
    """Project a provider object to the contract's fields of ``status``, shortened and cleaned.

    Never raises because of the content; a status that is not an object counts as empty.
    """
    found = _read(raw)
    status: dict[str, object] = {}
    if found.active is not None:
        status["active"] = found.active
    if found.ready is not None:
        ready = {"type": "Ready", "status": found.ready, "reason": found.reason, "message": found.message}
        status["conditions"] = [ready]
    if found.observed is not None:
        status["observedGeneration"] = found.observed
    if found.since:
        status["lastTransitionTime"] = found.since
    return bytes(memoryview(msgspec.json.encode({"status": status})))


def read_provider(raw: bytes, *, name: str, generation: int) -> Resolved | Unresolved:
    """Return the verdict of a provider from its object, whole or projected by :func:`cut_provider`.

    ``status.active`` must be a boolean. A Ready condition, where there is one, must be True; anything else leaves the
    provider unresolved, which is not the same as inactive.

    :param name: the name of the provider in messages.
    :param generation: ``metadata.generation`` of the provider, for display.
    """
    status = _read(raw)
    display = Display(status.reason, status.message, generation, status.observed, status.since)
    if status.active is None:
        return Unresolved(
            STATUS_ACTIVE_MISSING,
            f"{name} has no boolean status.active; its controller has not written one yet or is not running",
            display,
        )
    if status.ready not in (None, "True"):
        says = f": {status.reason}: {status.message}" if status.message else ""
        return Unresolved(PROVIDER_NOT_READY, f"{name} is not Ready ({status.ready}){says}", display)
    return Resolved(status.active, display)


def _read(raw: bytes | msgspec.Raw) -> _Found:
    try:
        status = _status.decode(_wire.decode(raw).status)
    except _UNREADABLE:
        return _Found()
    found = _Found(
        active=_scalar(_boolean, status.active),
        observed=_generation(status.observed_generation),
        since=_instant(status.last_transition_time),
    )
    _read_ready(found, status.conditions)
    return found


def _read_ready(found: _Found, conditions: msgspec.Raw) -> None:
    raw = bytes(conditions)
    if raw in (b"", b"null"):
        return
    try:
        entries = _entries.decode(raw)
    except _UNREADABLE:
        found.ready = _GARBAGE
        return
    for entry in entries:
        try:
            fields = _mapping.decode(entry)
        except _UNREADABLE:
            continue
        if _text(fields, "type") != "Ready":
            continue
        state = clean(_text(fields, "status") or _GARBAGE, 16)
        if found.ready in (None, "True"):
            found.ready = state
            found.reason = clean(_text(fields, "reason"), REASON_BYTES)
            found.message = clean(_text(fields, "message"), MESSAGE_BYTES)


def _generation(raw: msgspec.Raw) -> int | None:
    value = _scalar(_integer, raw)
    # Must fit the int64 of our own status, or the status write would be refused.
    return value if value is not None and 0 <= value < 2**63 else None


def _instant(raw: msgspec.Raw) -> str:
    """Return a date-time unchanged, and "" for anything else, which our own status would not accept."""
    text = _scalar(_string, raw)
    if text is None or len(text) > TIME_BYTES:
        return ""
    try:
        parse_rfc3339(text)
    except ValueError:
        return ""
    return text if _RFC3339.fullmatch(text) else ""


def _text(fields: dict[str, msgspec.Raw], name: str) -> str:
    return _scalar(_string, fields.get(name, msgspec.Raw())) or ""


def _scalar(decoder: msgspec.json.Decoder[Any], raw: msgspec.Raw) -> Any:
    try:
        return decoder.decode(raw)
    except _UNREADABLE:
        return None
