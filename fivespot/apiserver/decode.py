"""Decoding of request bodies into objects of a kind: types, unknown fields, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from .body import Document, decode
from .clock import micro_time, timestamp
from .cluster import Object
from .embedded import decode_embedded
from .kinds import Served, ServedKind
from .messages import ApiRequest
from .metadata import decode_metadata
from .schema import ABSENT, Node, apply_defaults, drop_nulls, prune, validate
from .schema.formats import FORMATS
from .schema.validation import json_type
from .status import FieldCause, StatusError, bad_request, invalid, version_required

__all__ = ["Decoded", "convert_object", "read_object"]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_GO_TYPES = {"string": "string", "integer": "int32", "number": "float64", "boolean": "bool"}


@dataclass(slots=True)
class Decoded:
    """A decoded object, and the warnings for the client."""

    body: Object
    warnings: list[str]


def read_object(request: ApiRequest, kind: ServedKind, served: Served, validation: str) -> Decoded:
    """Decode the body of a create or replace.

    :param validation: ``Ignore``, ``Warn`` or ``Strict``.
    :raises StatusError: 400, 413, 415.
    """
    document = decode(request.body, request.header("content-type"), kind.kind, find_duplicates=validation != "Ignore")
    update = request.method == "PUT"
    return convert_object(document.value, kind, served, validation, document, update=update)


def convert_object(
    body: Any,
    kind: ServedKind,
    served: Served,
    validation: str,
    document: Document | None = None,
    before: Mapping[str, Any] = _NOTHING,
    *,
    applied: bool = False,
    update: bool = False,
) -> Decoded:
    """Convert a decoded body to an object of its kind.

    :param document: the decoded text, with the duplicate fields in it.
    :param before: an object that was converted already; members that are the same Python object in both
        are not checked again.
    :param update: the body of a replace, whose resourceVersion is checked before its kind.
    :param applied: the result of a server-side apply, in which a null is an error and not a missing member.
    :raises StatusError: 400.
    """
    _check_type(body, kind, served, update=update)
    unknown: list[str] = []
    metadata = decode_metadata(body, kind.kind, served.name, unknown, before.get("metadata", _NOTHING))
    rest = {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}
    shared = {name for name, value in rest.items() if before.get(name, ABSENT) is value}
    new = {name: value for name, value in rest.items() if name not in shared}
    prune(new, served.node, "", unknown)
    if kind.custom:
        if not applied:
            drop_nulls(new, served.node)
        try:
            decode_embedded(new, served.node, "", unknown)
        except StatusError as fault:
            raise bad_request(_unhandled(kind, served, fault.message)) from None
    rest = {name: value for name, value in rest.items() if name in new or name in shared}
    if not kind.custom:
        _typed(rest, kind, served)
        kind.strategy.decode(rest, unknown)
    dropped = [f'unknown field "{path}"' for path in sorted(unknown)]
    if validation == "Strict" and (errors := [*(document.strict_errors() if document else ()), *dropped]):
        raise bad_request(_unhandled(kind, served, f"strict decoding error: {', '.join(errors)}"))
    if kind.custom:
        apply_defaults(rest, served.node)
    whole = {"apiVersion": kind.api_version(served.name), "kind": kind.kind, "metadata": metadata, **rest}
    warnings = [*(document.complaints if document else ()), *dropped] if validation == "Warn" else []
    return Decoded(whole, warnings)


def _unhandled(kind: ServedKind, served: Served, why: str, given: str = "") -> str:
    return f'{given or kind.kind} in version "{served.name}" cannot be handled as a {kind.kind}: {why}'


def _check_type(body: Any, kind: ServedKind, served: Served, *, update: bool = False) -> None:
    given, version = body.get("kind"), body.get("apiVersion")
    expected = kind.api_version(served.name)
    if given is None and version is None and not kind.custom:
        return
    if not given and not kind.custom:
        given = kind.kind
    if not version and not kind.custom:
        version = expected
    if not isinstance(given, str) or not given:
        raise bad_request(_missing(kind, "Kind", body))
    if not isinstance(version, str) or not version:
        raise bad_request(_missing(kind, "apiVersion", body))
    if version != expected:
        if kind.custom:
            raise bad_request(
                f"the API version in the data ({version}) does not match the expected API version ({expected})"
            )
        where = f'no kind "{given}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(
            f'{given} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}: {where}'
        )
    if given != kind.kind:
        if kind.custom:
            metadata = body.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            name = metadata.get("name")
            if update and not metadata.get("resourceVersion"):
                raise version_required(kind.group, kind.plural, name if isinstance(name, str) else "")
            cause = FieldCause("kind", "FieldValueInvalid", f'Invalid value: "{given}": must be {kind.kind}')
            raise invalid(kind.group, given, name if isinstance(name, str) else "", [cause])
        short = served.name
        why = f"converting ({short}.{given}) to (core.{kind.kind}): unknown conversion"
        raise bad_request(_unhandled(kind, served, why, given))


def _missing(kind: ServedKind, what: str, body: Any) -> str:
    return (
        f"the object provided is unrecognized (must be of type {kind.kind}): Object '{what}' is missing in the object "
        f"with fields {sorted(body)}"
    )


def _typed(rest: Object, kind: ServedKind, served: Served) -> None:
    """Refuse wrong types and drop empty members, as decoding a built-in kind into its Go type does."""
    _drop_empty(rest, served.node)
    for cause in validate(rest, served.node, kind.kind):
        if cause.field == "<nil>":
            raise bad_request(_unhandled(kind, served, f"json: cannot unmarshal number: {cause.message}"))
        if cause.reason == "FieldValueTypeInvalid":
            raise _wrong_type(rest, kind, served, cause.field)


def _wrong_type(rest: Object, kind: ServedKind, served: Served, path: str) -> StatusError:
    names = path.removeprefix(kind.kind).strip(".")
    value: Any = rest
    node: Node | None = served.node
    shown = kind.kind
    for name in names.replace("[", ".[").split("."):
        if name.startswith("["):
            value, node = value[int(name[1:-1])], node.items if node else None
            continue
        value = value.get(name) if isinstance(value, dict) else None
        if node is not None and name in node.properties:
            shown += f".{name}"
        node = node.child(name) if node else None
    if isinstance(value, str) and node is not None and node.format:
        words = (
            "illegal base64 data at input byte 0"
            if node.format == "base64"
            else f'parsing time "{value}": cannot parse'
        )
        return bad_request(_unhandled(kind, served, words))
    found = {"integer": "number"}.get(json_type(value), json_type(value)).replace("boolean", "bool")
    wanted = _go_type(node)
    return bad_request(
        _unhandled(kind, served, f"json: cannot unmarshal {found} into Go struct field {shown} of type {wanted}")
    )


def _go_type(node: Node | None) -> str:
    if node is None:
        return "interface {}"
    if node.additional is not None:
        return f"map[string]{_go_type(node.additional)}"
    if node.items is not None:
        return f"[]{_go_type(node.items)}"
    return _GO_TYPES.get(node.type, "struct")


_INSTANTS: Final = frozenset({"date-time", "micro-time"})


def _canonical_time(text: str, form: str) -> str:
    """A timestamp in UTC with the precision of its type; other texts are left for validation."""
    if text.endswith("Z") and "." not in text:
        return text
    if text in {"", None} or not FORMATS[form](text):
        return text
    moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    return micro_time(moment) if form == "micro-time" else timestamp(moment)


def _drop_empty(value: Any, node: Node) -> None:
    if isinstance(value, dict):
        for name in list(value):
            member, inner = value[name], node.child(name)
            if member is None and name not in node.properties and inner is not None and inner.type == "string":
                # A null in a map of strings is the empty string.
                value[name] = ""
                continue
            if member is None and not (inner is not None and inner.nullable and inner.type == ""):
                del value[name]
            elif inner is not None:
                _drop_empty(member, inner)
                if inner.format in _INSTANTS and isinstance(member, str):
                    value[name] = _canonical_time(member, inner.format)
                elif inner.format == "base64" and member == []:
                    value[name] = ""
                elif (member == [] and inner.items is not None) or (member == {} and inner.additional is not None):
                    del value[name]
    elif isinstance(value, list) and node.items is not None:
        for member in value:
            _drop_empty(member, node.items)
