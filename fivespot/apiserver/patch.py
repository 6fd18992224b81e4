"""JSON patches, merge patches, strategic merge patches without rarely used directives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from .body import Document, decode_patch, media_type
from .cluster import Object
from .json_codec import OPERATION_FIELDS, encode_json, go_numbers, operation_complaints
from .json_patch import JsonPatchError, apply_operations
from .schema import Node
from .status import FieldCause, StatusError, bad_request, invalid, not_implemented, unsupported_media

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


def apply_patch(current: Object, body: bytes, media: str, node: Node, *, find_duplicates: bool = False) -> Document:
    """Apply a patch; the result may be any JSON value.

    :param node: of whole objects, for strategic merge patches.
    :param find_duplicates: report duplicate fields, and unknown ones of the operations of a JSON patch.
    :raises StatusError: 400, 413, 422, 501.
    """
    try:
        document = decode_patch(body, media, find_duplicates=find_duplicates and media != JSON_PATCH)
    except ValueError:
        raise bad_request("invalid JSON patch") from None
    patch = document.value
    if media == JSON_PATCH:
        patched = _json_patch(current, [] if patch is None else patch)
        return Document(patched, _complaints(body, patch) if find_duplicates else [])
    if patch is None and media == STRATEGIC:
        return Document(current, [])
    if not isinstance(patch, dict):
        raise _no_object(patch, media, find_duplicates=find_duplicates)
    patched = merge(current, patch) if media == MERGE else strategic(current, patch, node)
    return Document(patched, document.complaints)


def _no_object(patch: Any, media: str, *, find_duplicates: bool) -> StatusError:
    """The error for a merge patch that is no object; the real server finds it at different steps."""
    name = _GO_NAMES.get(type(patch), "null")
    words = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
    if media == STRATEGIC:
        return bad_request(words)
    if find_duplicates and patch is not None:
        return bad_request(f"error decoding patch: {words}")
    if isinstance(patch, list):
        shown = encode_json(encode_json(patch).decode()).decode()
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {name} into Go value of type struct"
        return invalid("", "", "", [FieldCause("patch", "FieldValueInvalid", f"Invalid value: {shown}: {why}")])
    return bad_request("Invalid JSON Patch")


def _complaints(body: bytes, patch: Any) -> list[str]:
    """Complaints about unknown and duplicate fields of the operations, and about duplicates in what they write."""
    operations = patch or ()
    known = all(not operation or operation.keys() <= OPERATION_FIELDS for operation in operations)
    # Most clients send compact JSON, which is encoded to the same bytes again unless a member is there twice.
    if known and encode_json(patch) == body:
        return []
    complaints, written = operation_complaints(body.decode(errors="replace"))
    return [*complaints, *(f'duplicate field "{path}"' for path in written)]


def _json_patch(current: Object, patch: Any) -> Any:
    if not isinstance(patch, list):
        raise _wrong_operation(patch, "[]handlers.jsonPatchOp")
    if len(patch) > _OPERATIONS_LIMIT:
        words = f"The allowed maximum operations in a JSON patch is {_OPERATIONS_LIMIT}, got {len(patch)}"
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {words}")
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise _wrong_operation(operation, "handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            given = (operation or {}).get(name)
            if given is not None and not isinstance(given, str):
                words = f"json: cannot unmarshal {_GO_NAMES[type(given)]} into Go struct field"
                raise bad_request(f"error decoding patch: {words} jsonPatchOp.{name} of type string")
    try:
        return go_numbers(apply_operations(current, [operation or {} for operation in patch]))
    except JsonPatchError:
        raise rejected() from None


def _wrong_operation(given: Any, wanted: str) -> StatusError:
    name = _GO_NAMES.get(type(given), "null")
    return bad_request(f"error decoding patch: json: cannot unmarshal {name} into Go value of type {wanted}")


def merge(current: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    left = [(merged, patch)]
    while left:
        into, changes = left.pop()
        for name, value in changes.items():
            if value is None:
                into.pop(name, None)
            elif isinstance(value, dict):
                held = into.get(name)
                into[name] = inner = dict(held) if isinstance(held, dict) else {}
                left.append((inner, value))
            else:
                into[name] = value
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
