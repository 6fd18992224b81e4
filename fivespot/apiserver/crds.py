"""CustomResourceDefinitions: their strategy, and the kinds that they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .columns import crd_columns
from .crd_validation import definition_problems, versions_of
from .kinds import Served, ServedKind, Strategy, version_priority
from .metadata import finalizer_warnings
from .schema import decode_schema, schema_warnings
from .status import FieldCause

__all__ = ["CLEANUP", "DEFINITIONS", "DefinitionStrategy", "kind_of", "resource_of"]

Object = dict[str, Any]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")


def resource_of(body: Mapping[str, Any]) -> tuple[str, str]:
    """The group and plural that a definition defines."""
    spec = body.get("spec", {})
    return spec.get("group", ""), spec.get("names", {}).get("plural", "")


class DefinitionStrategy(Strategy):
    """The strategy of CustomResourceDefinitions."""

    unconditional = False

    def prepare_create(self, new: Object) -> None:
        storage = [each.get("name", "") for each in versions_of(new) if each.get("storage") is True]
        new["status"] = {
            "conditions": [],
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": storage,
        }

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            new["spec"] = old.get("spec", {})
            return
        new["status"] = old.get("status", {})
        stored = list(new["status"].get("storedVersions", []))
        for each in versions_of(new):
            if each.get("storage") is True and each.get("name") not in stored:
                stored.append(each["name"])
        new["status"] = {**new["status"], "storedVersions": stored}

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            if not names.get("singular"):
                names["singular"] = names["kind"].lower()
            if not names.get("listKind"):
                names["listKind"] = f"{names['kind']}List"
        spec.setdefault("conversion", {"strategy": "None"})
        if spec.get("preserveUnknownFields") is False:
            del spec["preserveUnknownFields"]

    def decode(self, new: Object, unknown: list[str]) -> None:
        for number, version in enumerate(versions_of(new)):
            path = f"spec.versions[{number}]"
            schema = version.get("schema")
            if isinstance(schema, dict) and "openAPIV3Schema" in schema:
                where = f"{path}.schema.openAPIV3Schema"
                raw = schema["openAPIV3Schema"]
                schema["openAPIV3Schema"] = raw if raw is None else decode_schema(raw, where, unknown)
            status = (version.get("subresources") or {}).get("status")
            if isinstance(status, dict):
                unknown += [f"{path}.subresources.status.{name}" for name in status]
                status.clear()

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        if old is not None and new.get("spec") == old.get("spec"):
            return []
        schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions_of(new)]
        return list(dict.fromkeys(words for each in schemas if each for words in schema_warnings(each)))

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        return definition_problems(new, old)


class _CustomStrategy(Strategy):
    unconditional = False

    def __init__(self, selectable: tuple[str, ...]) -> None:
        self.selectable = selectable

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        return finalizer_warnings(new["metadata"], {} if old is None else old["metadata"])


def kind_of(body: Mapping[str, Any], epoch: int) -> ServedKind:
    """Build the kind that a valid definition defines."""
    spec = body["spec"]
    names = spec["names"]
    versions = {}
    paths: set[str] = set()
    for each in sorted(spec["versions"], key=lambda version: version_priority(version["name"])):
        if not each.get("served"):
            continue
        subresources = each.get("subresources") or {}
        warning = ""
        if each.get("deprecated"):
            words = f"{spec['group']}/{each['name']} {names['kind']} is deprecated"
            warning = each.get("deprecationWarning") or words
        versions[each["name"]] = Served.of(
            each["name"],
            each["schema"]["openAPIV3Schema"],
            status=subresources.get("status") is not None,
            scale=subresources.get("scale"),
            columns=crd_columns(each.get("additionalPrinterColumns")),
            warning=warning,
        )
        paths |= {field["jsonPath"] for field in each.get("selectableFields") or ()}
    return ServedKind(
        spec["group"],
        names["kind"],
        names["plural"],
        names["singular"],
        spec["scope"] == "Namespaced",
        versions,
        next(each["name"] for each in spec["versions"] if each.get("storage")),
        list_kind=names["listKind"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        custom=True,
        generated=True,
        strategy=_CustomStrategy(tuple(sorted(paths))),
        epoch=epoch,
        terminating="deletionTimestamp" in body["metadata"],
    )
