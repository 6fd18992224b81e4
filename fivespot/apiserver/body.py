"""Decoding of request bodies, with kube-apiserver's limits and messages."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import yaml

from .protobuf import MEDIA_TYPE, ProtobufError, decode_protobuf
from .status import StatusError, bad_request, too_large, unsupported_media

__all__ = ["BODY_LIMIT", "Document", "decode", "media_type"]

BODY_LIMIT: Final = 3 * 1024 * 1024
_READABLE: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_DEPTH: Final = 500
_GO_NAMES: Final = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}


class Document:
    """A decoded body.

    :param duplicates: paths of duplicate fields; the last value counts.
    """

    __slots__ = ("duplicates", "value")

    def __init__(self, value: Any, duplicates: list[str]) -> None:
        self.value = value
        self.duplicates = duplicates


class _Broken(Exception):
    """The text is not valid JSON or YAML."""


def media_type(content_type: str) -> str:
    """The type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def check_size(body: bytes) -> None:
    """Refuse bodies of more than 3 MiB."""
    if len(body) > BODY_LIMIT:
        raise too_large(BODY_LIMIT)


def decode(body: bytes, content_type: str, kind: str, *, find_duplicates: bool = True) -> Document:
    """Decode the object in a body.

    :param kind: for error messages.
    :param find_duplicates: report duplicate fields, which costs a second pass.
    :raises StatusError: 400, 413 or 415.
    """
    check_size(body)
    media = media_type(content_type) or "application/json"
    if media == MEDIA_TYPE:
        return _from_protobuf(body, kind)
    if media not in {"application/json", "application/yaml"}:
        raise unsupported_media(_READABLE)
    try:
        document = _from_yaml(body) if media == "application/yaml" else _from_json(body, find_duplicates)
    except _Broken as error:
        raise _unrecognized(kind, f"json parse error: {error}") from None
    if document.value is None:
        document.value = {}
    if not isinstance(document.value, dict):
        name = _GO_NAMES.get(type(document.value), "null")
        why = f"json parse error: json: cannot unmarshal {name} into Go value of type struct"
        raise _unrecognized(kind, why)
    return document


def decode_patch(body: bytes, content_type: str) -> Any:
    """Decode the body of a patch.

    :raises ValueError: it is not JSON or, for an apply, YAML.
    """
    check_size(body)
    try:
        if media_type(content_type).endswith("+yaml") and not body.lstrip().startswith(b"{"):
            return _from_yaml(body).value
        return _from_json(body, find_duplicates=False).value
    except _Broken as error:
        raise ValueError(str(error)) from None


def decode_options(body: bytes) -> dict[str, Any]:
    """The DeleteOptions in a body, {} when there is none."""
    if not body.strip():
        return {}
    check_size(body)
    if body.startswith(b"k8s\x00"):
        return dict(_from_protobuf(body, "DeleteOptions").value)
    try:
        value = _from_json(body, find_duplicates=False).value
    except _Broken:
        try:
            value = _from_yaml(body).value
        except _Broken as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(value, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body is not an object")
    return value


def _from_protobuf(body: bytes, kind: str) -> Document:
    try:
        return Document(decode_protobuf(body), [])
    except ProtobufError as error:
        if "does not read" in str(error):
            raise StatusError(415, "UnsupportedMediaType", str(error)) from None
        raise _unrecognized(kind, str(error)) from None


def _unrecognized(kind: str, why: str) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {why}"
    )


def _from_json(body: bytes, find_duplicates: bool) -> Document:
    duplicates: list[str] = []
    try:
        # Invalid UTF-8 is replaced, as by Go's decoder.
        value = msgspec.json.decode(body if _is_text(body) else body.decode(errors="replace").encode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise _Broken(_json_words(body, error)) from None
    # A body that is encoded to the same bytes again has no duplicates; most clients send compact JSON.
    if find_duplicates and isinstance(value, dict) and msgspec.json.encode(value) != body:
        duplicates = _duplicates(body)
    # The depth is at most the number of opening brackets.
    if body.count(b"{") + body.count(b"[") > _DEPTH:
        _check_depth(value)
    return Document(value, duplicates)


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_words(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "unexpected end of JSON input"
    if isinstance(error, RecursionError):
        return "exceeded max depth"
    return str(error) or "invalid character"


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in the order of the text."""


def _duplicates(body: bytes) -> list[str]:
    seen_twice = False

    def remember(pairs: list[tuple[str, Any]]) -> Any:
        nonlocal seen_twice
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        seen_twice = True
        return made

    # The first pass is cheap and nearly always finds none.
    text = body.decode(errors="replace")
    json.loads(text, object_pairs_hook=remember)
    if not seen_twice:
        return []
    found: list[str] = []
    _walk_pairs(json.loads(text, object_pairs_hook=_Pairs), "", found)
    return sorted(set(found))


def _walk_pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        names: set[str] = set()
        for name, member in value:
            inner = f"{path}.{name}" if path else name
            if name in names:
                found.append(inner)
            names.add(name)
            _walk_pairs(member, inner, found)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            _walk_pairs(member, f"{path}[{number}]", found)


def _check_depth(value: Any) -> None:
    """Refuse nesting that recursive functions cannot process."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _DEPTH:
            raise _Broken("exceeded max depth")
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: dates stay strings, and aliases, which may expand without limit, are refused."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _from_yaml(body: bytes) -> Document:
    try:
        value = yaml.load(body, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
        # Keys and values that JSON does not have become strings or are refused here.
        value = msgspec.json.decode(msgspec.json.encode(value))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _Broken(f"error converting YAML to JSON: {' '.join(str(error).split())}") from None
    _check_depth(value)
    return Document(value, [])
