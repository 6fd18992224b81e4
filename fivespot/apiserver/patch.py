"""JSON patches, merge patches, strategic merge patches without rarely used directives."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

import msgspec

from .body import decode_patch, media_type
from .cluster import Object
from .schema import Node
from .status import StatusError, bad_request, not_implemented, unsupported_media

__all__ = ["APPLY", "JSON_PATCH", "MERGE", "STRATEGIC", "apply_patch", "patch_kind"]

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_OPERATIONS_LIMIT: Final = 10_000
_Identity = tuple[str, ...]
"""The key of a list item."""
_GO_NAMES: Final = {list: "array", str: "string", int: "number", float: "number", bool: "bool", dict: "object"}


def patch_kind(content_type: str, *, custom: bool) -> str:
    """The media type of a patch.

    :raises StatusError: 415.
    """
    media = media_type(content_type)
    if media in {JSON_PATCH, MERGE, APPLY} or (media == STRATEGIC and not custom):
        return media
    if media in {STRATEGIC, "application/apply-patch+cbor"}:
        accepted = [JSON_PATCH, MERGE, APPLY] if custom else [JSON_PATCH, MERGE, STRATEGIC, APPLY]
        raise unsupported_media(accepted)
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def rejected() -> StatusError:
    """422: the patch cannot be applied to the object."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def apply_patch(current: Object, body: bytes, media: str, node: Node) -> Any:
    """Apply a patch; the result may be any JSON value.

    :param node: of whole objects, for strategic merge patches.
    :raises StatusError: 400, 413, 422, 501.
    """
    try:
        patch = decode_patch(body, media)
    except ValueError as error:
        raise bad_request("invalid JSON patch" if media == JSON_PATCH else f"error decoding patch: {error}") from None
    if media == JSON_PATCH:
        return _json_patch(current, patch)
    if not isinstance(patch, dict):
        name = _GO_NAMES.get(type(patch), "null")
        words = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: {words}")
    return merge(current, patch) if media == MERGE else strategic(current, patch, node)


def _json_patch(current: Object, patch: Any) -> Any:
    if not isinstance(patch, list):
        name = _GO_NAMES.get(type(patch), "null")
        words = f"json: cannot unmarshal {name} into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {words}")
    if len(patch) > _OPERATIONS_LIMIT:
        words = f"The allowed maximum operations in a JSON patch is {_OPERATIONS_LIMIT}, got {len(patch)}"
        raise StatusError(413, "RequestEntityTooLarge", words)
    try:
        library, pointers = import_module("jsonpatch"), import_module("jsonpointer")
    except ModuleNotFoundError:
        raise not_implemented("JSON patches without the library jsonpatch: pip install 'fivespot[testing]'") from None
    misfits = (library.JsonPatchException, pointers.JsonPointerException)
    try:
        return library.JsonPatch(patch).apply(_copied(current, patch), in_place=True)
    except (*misfits, TypeError, LookupError, ValueError, AttributeError):
        raise rejected() from None


def _copied(current: Object, patch: list[Any]) -> Object:
    """Copy the parts of an object that the operations name; other parts are shared.

    A part is a member, or a member of a member (such as the finalizers of the metadata).
    """
    copied = dict(current)
    for operation in patch:
        for pointer in ("path", "from"):
            if isinstance(operation, dict) and pointer in operation:
                _, *names = str(operation[pointer]).split("/")
                outer, inner, *_ = (*(name.replace("~1", "/").replace("~0", "~") for name in names), "", "")
                if len(names) > 1 and isinstance(current.get(outer), dict):
                    if copied[outer] is current[outer]:
                        copied[outer] = dict(current[outer])
                    if inner in copied[outer] and copied[outer][inner] is current[outer].get(inner):
                        copied[outer][inner] = _copy(current[outer][inner])
                elif outer in current:
                    copied[outer] = _copy(current[outer])
    return copied


def _copy(value: Any) -> Any:
    # Encoding and decoding JSON is much faster than copy.deepcopy.
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value


def merge(current: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic(current: Any, patch: Any, node: Node | None) -> Any:
    """Apply a strategic merge patch.

    :raises StatusError: 501 for a directive that is not implemented.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    deletions, orders = _directed(patch, "$deleteFromPrimitiveList/"), _directed(patch, "$setElementOrder/")
    for name, value in patch.items():
        if name.startswith("$"):
            if not name.startswith(("$setElementOrder/", "$deleteFromPrimitiveList/")) and name != "$retainKeys":
                raise not_implemented(f"the strategic merge patch directive {name}")
            continue
        inner = node.child(name) if node is not None else None
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, list):
            merged[name] = _strategic_list(merged.get(name), value, orders.get(name, value), inner)
        else:
            merged[name] = strategic(merged.get(name), value, inner)
    for name, order in orders.items():
        if name not in patch and isinstance(merged.get(name), list):
            merged[name] = _strategic_list(merged[name], [], order, node.child(name) if node is not None else None)
    for name, gone in deletions.items():
        if isinstance(merged.get(name), list):
            merged[name] = [item for item in merged[name] if item not in gone]
    if isinstance(patch.get("$retainKeys"), list):
        merged = {name: value for name, value in merged.items() if name in patch["$retainKeys"]}
    return merged


def _directed(patch: dict[str, Any], directive: str) -> dict[str, list[Any]]:
    """The lists of a directive by the field that it applies to."""
    found = {name.removeprefix(directive): value for name, value in patch.items() if name.startswith(directive)}
    for name, value in found.items():
        if not isinstance(value, list):
            raise bad_request(f"error decoding patch: {directive}{name} is no list")
    return found


def _strategic_list(current: Any, patch: list[Any], order: list[Any], node: Node | None) -> list[Any]:
    """Merge the items of a patch into a list.

    :param order: order of the named items: ``$setElementOrder``, or the patch itself.
    """
    if node is None or not isinstance(current, list) or node.list_type not in {"map", "set"}:
        return patch
    keys = node.list_keys

    def identity(item: Any) -> _Identity:
        return tuple(str(item.get(key)) for key in keys) if keys and isinstance(item, dict) else (str(item),)

    merged = {identity(item): item for item in current}
    for item in patch:
        key = identity(item)
        if isinstance(item, dict) and item.get("$patch") == "delete":
            merged.pop(key, None)
        elif node.list_type == "set":
            merged.setdefault(key, item)
        else:
            merged[key] = strategic(merged.get(key), item, node.items)
    return [merged[key] for key in _in_order(list(merged), map(identity, order), list(map(identity, current)))]


def _in_order(found: list[_Identity], wanted: Iterable[_Identity], before: list[_Identity]) -> list[_Identity]:
    """The items in the order of the patch, with others before the next named item that followed them.

    New items come before items that the patch does not name, as in kube-apiserver.
    """
    named = [key for key in dict.fromkeys(wanted) if key in found]
    rest = [key for key in found if key not in named]
    result: list[_Identity] = []
    while named and rest:
        earlier = named[0] in before and before.index(rest[0]) < before.index(named[0])
        result.append(rest.pop(0) if earlier else named.pop(0))
    return result + named + rest
