"""Decoding of request bodies, with kube-apiserver's limits and messages."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import yaml

from .json_codec import decode_json, duplicate_members, encode_json, go_numbers
from .protobuf import MEDIA_TYPE, ProtobufError, decode_protobuf
from .status import StatusError, bad_request, too_large, unsupported_media

__all__ = ["BODY_LIMIT", "Document", "decode", "media_type"]

BODY_LIMIT: Final = 3 * 1024 * 1024
_READABLE: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_LONE_SURROGATE: Final = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Escapes of surrogates, of which lone ones are replaced, as by Go's decoder."""
_JSON_PATCH: Final = "application/json-patch+json"
_UNUSUAL_NUMBER: Final = re.compile(rb"[:,\[]\s*-?\d+(?:[.eE]|\d{18})")
"""Numbers whose text may change when Go decodes and encodes them."""
_GO_NAMES: Final = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}


class Document:
    """A decoded body.

    :param complaints: warnings about duplicate fields; the last value counts.
    :param yaml: the complaints are those of the YAML decoder, which strict decoding reports as one error.
    """

    __slots__ = ("_yaml", "complaints", "value")

    def __init__(self, value: Any, complaints: list[str], *, yaml: bool = False) -> None:
        self.value = value
        self.complaints = complaints
        self._yaml = yaml

    def strict_errors(self) -> list[str]:
        """The complaints as errors of strict decoding."""
        if not self._yaml or not self.complaints:
            return self.complaints
        return ["".join(["yaml: unmarshal errors:", *(f"\n  {complaint}" for complaint in self.complaints)])]


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


def decode_patch(body: bytes, content_type: str, *, find_duplicates: bool = False) -> Document:
    """Decode the body of a patch.

    :param find_duplicates: report duplicate fields, which costs a second pass.
    :raises ValueError: it is not JSON or, for an apply, YAML.
    """
    check_size(body)
    media = media_type(content_type)
    try:
        if media.endswith("+yaml") and not body.lstrip().startswith(b"{"):
            return _from_yaml(body)
        document = _from_json(body, find_duplicates, exact=media == _JSON_PATCH)
        # JSON is YAML as well; its decoder is slow, and is needed only for its words.
        return _from_yaml(body) if document.complaints and media.endswith("+yaml") else document
    except _Broken as error:
        raise ValueError(str(error)) from None


def decode_options(body: bytes, content_type: str) -> dict[str, Any]:
    """Decode the DeleteOptions in a body; {} without a body."""
    if not body.strip():
        return {}
    check_size(body)
    if body.startswith(b"k8s\x00"):
        return dict(_from_protobuf(body, "DeleteOptions").value)
    try:
        yaml_body = media_type(content_type).endswith("yaml")
        value = _from_yaml(body).value if yaml_body else _from_json(body, find_duplicates=False).value
    except _Broken as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if value is None:
        return {}
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


def _from_json(body: bytes, find_duplicates: bool, *, exact: bool = False) -> Document:
    try:
        # Invalid UTF-8 is replaced, as by Go's decoder.
        text = body if _is_text(body) else body.decode(errors="replace").encode()
        value = decode_json(_LONE_SURROGATE.sub(_replaced, text) if b"\\ud" in text or b"\\uD" in text else text)
    except (msgspec.DecodeError, ValueError) as error:
        raise _Broken(_json_words(body, error)) from None
    if not exact and _UNUSUAL_NUMBER.search(body):
        value = go_numbers(value)
    duplicates: list[str] = []
    # A body that is encoded to the same bytes again has no duplicates; most clients send compact JSON.
    if find_duplicates and isinstance(value, dict) and encode_json(value) != body:
        duplicates = duplicate_members(body.decode(errors="replace"))
    return Document(value, [f'duplicate field "{path}"' for path in duplicates])


def _replaced(found: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if found["lone"] else found.group()


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json_words(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "unexpected end of JSON input"
    return str(error) or "invalid character"


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: dates stay strings, and aliases, which may expand without limit, are refused."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if any(isinstance(key, bool) for key in made):
            return {str(key).lower() if isinstance(key, bool) else key: value for key, value in made.items()}
        return made


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# Booleans of YAML 1.1 that Go's decoder knows and PyYAML does not.
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), list("yYnN"))
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


def _from_yaml(body: bytes) -> Document:
    loader = None
    duplicates: list[str] = []
    try:
        loader = _Loader(body)
        node = loader.get_single_node()
        _find_repeated(node, duplicates)
        value = None if node is None else loader.construct_document(node)
        # Keys and values that JSON does not have become strings or are refused here.
        value = decode_json(encode_json(value))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise _Broken(f"error converting YAML to JSON: {' '.join(str(error).split())}") from None
    finally:
        if loader is not None:
            loader.dispose()
    return Document(value, duplicates, yaml=True)


def _find_repeated(node: Any, found: list[str]) -> None:
    """Find keys that a mapping has more than once, in the order in which the YAML decoder of Go reports them."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _find_repeated(item, found)
    elif isinstance(node, yaml.MappingNode):
        seen: set[tuple[str, str]] = set()
        for key, value in node.value:
            _find_repeated(value, found)
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add((key.tag, key.value))
