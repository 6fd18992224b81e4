"""``metadata``: schema, system fields, validation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from .names import is_path_segment, label_problem, qualified_problem, subdomain_problem, value_problem
from .schema import compile_schema, prune, validate
from .schema.validation import format_value
from .status import FieldCause, bad_request

__all__ = [
    "CHECKED",
    "METADATA_SCHEMA",
    "decode_metadata",
    "finalizer_warnings",
    "keep_system_fields",
    "metadata_problems",
    "set_creation_fields",
    "update_problems",
]

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_TIME: Final = {"type": "string", "format": "date-time"}

METADATA_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "creationTimestamp": {**_TIME, "nullable": True},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "deletionTimestamp": {**_TIME, "nullable": True},
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "generateName": _TEXT,
        "generation": {"type": "integer"},
        "labels": _TEXTS,
        "managedFields": {
            "type": "array",
            "x-kubernetes-list-type": "atomic",
            "items": {
                "type": "object",
                "properties": {
                    "apiVersion": _TEXT,
                    "fieldsType": _TEXT,
                    "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "manager": _TEXT,
                    "operation": _TEXT,
                    "subresource": _TEXT,
                    "time": {**_TIME, "nullable": True},
                },
            },
        },
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    "apiVersion": _TEXT,
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": _TEXT,
                    "name": _TEXT,
                    "uid": _TEXT,
                },
            },
        },
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}

NODE: Final = compile_schema(METADATA_SCHEMA)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_IMMUTABLE: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_ANNOTATIONS_LIMIT: Final = 256 * 1024
CHECKED: Final = ("annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences")
"""The members that :func:`metadata_problems` checks."""


def decode_metadata(
    body: dict[str, Any], kind: str, version: str, unknown: list[str], before: Mapping[str, Any] = _NOTHING
) -> dict[str, Any]:
    """Convert the metadata of a decoded body in place: check types, drop unknown and empty members.

    :param unknown: receives the paths of unknown fields.
    :param before: metadata that was converted already; members that are the same Python object in both
        are not checked again.
    :raises StatusError: 400, a member has the wrong type.
    """
    given = body.get("metadata")
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise bad_request(
            _unhandled(kind, version, f"cannot unmarshal {format_value(given)} into Go struct field .metadata")
        )
    new = {name: value for name, value in given.items() if not _same(before.get(name), value)}
    if not new:
        body["metadata"] = given
        return given
    prune(new, NODE, "metadata", unknown)
    for name in [name for name in given if name not in new and not _same(before.get(name), given[name])]:
        del given[name]
    for name in [name for name, value in given.items() if value is None]:
        del given[name]
    _replace_nulls(given)
    new = {name: given[name] for name in new if name in given}
    wrong = [cause for cause in validate(new, NODE, "metadata") if cause.reason == "FieldValueTypeInvalid"]
    if wrong:
        raise bad_request(_unhandled(kind, version, f"json: cannot unmarshal: {wrong[0].message}"))
    for name in [name for name, value in given.items() if value in ({}, [], "")]:
        del given[name]
    body["metadata"] = given
    return given


def _replace_nulls(given: dict[str, Any]) -> None:
    """Replace nulls within members by the zero values of their Go types."""
    for name in ("labels", "annotations"):
        words = given.get(name)
        if isinstance(words, dict):
            given[name] = {key: "" if value is None else value for key, value in words.items()}
    if isinstance(given.get("finalizers"), list):
        given["finalizers"] = ["" if each is None else each for each in given["finalizers"]]
    for name in ("ownerReferences", "managedFields"):
        items = given.get(name)
        if isinstance(items, list):
            given[name] = [{} if each is None else _without_nulls(each) for each in items]


def _without_nulls(item: Any) -> Any:
    if not isinstance(item, dict) or None not in item.values():
        return item
    return {name: value for name, value in item.items() if value is not None}


def _same(before: Any, now: Any) -> bool:
    """Whether a member is the same object or the same text as before."""
    return before is now or (type(now) is str and before == now and now != "")


def _unhandled(kind: str, version: str, why: str) -> str:
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'


def set_creation_fields(metadata: dict[str, Any], uid: str, now: str) -> None:
    """Set the system fields of a new object and clear those that clients must not set."""
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now


def keep_system_fields(new: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Restore system fields that an update may omit but not change."""
    new.pop("selfLink", None)
    if "creationTimestamp" in old:
        new["creationTimestamp"] = old["creationTimestamp"]
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"):
        if name in old:
            new.setdefault(name, old[name])
    if "generation" in old:
        new["generation"] = old["generation"]
    else:
        new.pop("generation", None)


def metadata_problems(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    label_names: bool = False,
    core: bool = False,
    path_names: bool = False,
) -> list[FieldCause]:
    """Validate the metadata of an object before it is stored.

    :param core: a kind of the core group, whose finalizers without a prefix must be standard ones.
    :param path_names: names are any path segments (embedded resources).
    :param label_names: names of this kind are DNS labels (namespaces), not subdomains.
    """
    problem_of = is_path_segment if path_names else label_problem if label_names else subdomain_problem
    causes: list[FieldCause] = []
    generated = metadata.get("generateName", "")
    if generated and (problem := problem_of(generated.rstrip("-.") or "-")):
        causes.append(_invalid("metadata.generateName", generated, problem))
    name = metadata.get("name", "")
    if not name:
        words = "Required value: name or generateName is required"
        causes.append(FieldCause("metadata.name", "FieldValueRequired", words))
    elif problem := problem_of(name):
        causes.append(_invalid("metadata.name", name, problem))
    namespace = metadata.get("namespace")
    if namespaced and not namespace:
        causes.append(FieldCause("metadata.namespace", "FieldValueRequired", "Required value"))
    elif path_names and namespace and (problem := label_problem(namespace)):
        causes.append(_invalid("metadata.namespace", namespace, problem))
    causes += _words_problems(metadata)
    causes += _owner_problems(metadata, embedded=path_names)
    causes += _finalizer_problems(metadata, core=core)
    return causes


def custom_name_problem(name: str) -> str:
    """Validate the name of a custom resource; "" when valid."""
    return is_path_segment(name) or subdomain_problem(name)


def _invalid(field: str, value: Any, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {words}")


def _words_problems(metadata: Mapping[str, Any]) -> list[FieldCause]:
    causes = []
    for key, value in metadata.get("labels", {}).items():
        if problem := qualified_problem(key):
            causes.append(_invalid("metadata.labels", key, problem))
        if problem := value_problem(value):
            causes.append(_invalid("metadata.labels", value, problem))
    total = 0
    for key, value in metadata.get("annotations", {}).items():
        if problem := qualified_problem(key.lower()):
            causes.append(_invalid("metadata.annotations", key, problem))
        total += len(key) + len(value)
    if total > _ANNOTATIONS_LIMIT:
        words = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        causes.append(FieldCause("metadata.annotations", "FieldValueTooLong", words))
    return causes


def _owner_problems(metadata: Mapping[str, Any], *, embedded: bool) -> list[FieldCause]:
    causes = []
    controller = ""
    for number, owner in enumerate(metadata.get("ownerReferences", ())):
        path = f"metadata.ownerReferences[{number}]"
        version = owner.get("apiVersion", "")
        if not version:
            words = "Required value" if embedded else "Required value: must not be empty"
            causes.append(FieldCause(f"{path}.apiVersion", "FieldValueRequired", words))
        elif version.count("/") > 1 and not embedded:
            words = "must be <group>/<version> or <version>"
            causes.append(_invalid(f"{path}.apiVersion", version, words))
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                words = "Required value: must not be empty"
                causes.append(FieldCause(f"{path}.{name}", "FieldValueRequired", words))
        if owner.get("controller") is True:
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                words = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {name}"
                )
                causes.append(_invalid("metadata.ownerReferences", metadata["ownerReferences"], words))
            else:
                controller = name
    return causes


def _finalizer_problems(metadata: Mapping[str, Any], *, core: bool) -> list[FieldCause]:
    causes = []
    finalizers = metadata.get("finalizers", ())
    for number, finalizer in enumerate(finalizers):
        if problem := qualified_problem(finalizer):
            causes.append(_invalid("metadata.finalizers", finalizer, problem))
        elif core and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(_invalid(f"metadata.finalizers[{number}]", finalizer, words))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        words = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(_invalid("metadata.finalizers", finalizers, words))
    return causes


def finalizer_warnings(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Warnings about added finalizers of custom resources without a domain."""
    found = []
    for name in sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ()))):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            found.append(
                f"metadata.finalizers: {format_value(name)}: prefer a domain-qualified finalizer name{path} to avoid "
                "accidental conflicts with other finalizer writers"
            )
    return found


def update_problems(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldCause]:
    """Validate an update of metadata."""
    causes = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            words = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            causes.append(FieldCause("metadata.finalizers", "FieldValueForbidden", words))
    causes += [
        _invalid(f"metadata.{name}", new.get(name), "field is immutable")
        for name in _IMMUTABLE
        if new.get(name) != old.get(name)
    ]
    return causes
