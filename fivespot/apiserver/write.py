"""Creates and updates: the steps of every write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .cluster import Cluster, Object
from .embedded import embedded_problems
from .json_codec import json_equal
from .kinds import Served, ServedKind
from .managed_fields import Owner, track_update, with_metadata
from .metadata import (
    CHECKED,
    custom_name_problem,
    keep_system_fields,
    metadata_problems,
    set_creation_fields,
    update_problems,
)
from .names import no_name
from .options import WriteOptions, parse_version
from .schema import ABSENT, BLOCKED, check_rules, is_blocking, validate
from .status import (
    FieldCause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    internal,
    invalid,
    not_found,
    version_required,
)
from .store import Entry

__all__ = ["MODIFIED", "Change", "Writer"]

Change = Callable[[Object], Object]
"""A function from a copy of the current object to the new one."""

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
_NAMESPACE: Final = "namespaces"
_NAME_LIMIT: Final = 63 - 5


class Writer:
    """Writes objects of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # -- create --------------------------------------------------------------------------------------------------

    def create(
        self, kind: ServedKind, served: Served, namespace: str, body: Object, options: WriteOptions, owner: Owner | None
    ) -> Object:
        """Create an object; returns it as stored.

        :param owner: owner of its fields; None when managedFields is set already (server-side apply).
        :raises StatusError: 400, 403, 404, 405, 409, 422, 500.
        """
        metadata = body["metadata"]
        if kind.terminating:
            words = "create not allowed while custom resource definition is terminating"
            raise StatusError(405, "MethodNotAllowed", words, {"group": kind.group, "kind": kind.plural})
        self._place(kind, namespace, metadata)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:_NAME_LIMIT] + self._cluster.ids.suffix()
        self._check_namespace(kind, namespace, metadata.get("name", ""))
        if _is_version(metadata.pop("resourceVersion", "")) and not options.dry_run:
            raise internal("resourceVersion should not be set on objects to be created")
        set_creation_fields(metadata, self._cluster.ids.uid(), self._cluster.now())
        if kind.custom and served.status:
            body.pop("status", None)
        kind.strategy.default(body)
        if owner is not None:
            track_update(_zero(kind, served), body, with_metadata(served.node), owner, self._cluster.now())
        # Fields that the server sets have no owner.
        kind.strategy.prepare_create(body)
        if kind.generated:
            metadata["generation"] = 1
        self._validate(kind, served, body, None)
        options.warnings.extend(kind.strategy.warnings(body, None))
        if self._cluster.find(kind, namespace, metadata["name"]) is not None:
            raise already_exists(kind.group, kind.plural, metadata["name"])
        if not options.dry_run:
            self._cluster.put(kind, served, body)
        return body

    def _place(self, kind: ServedKind, namespace: str, metadata: Object) -> None:
        given = metadata.get("namespace", "")
        if not kind.namespaced:
            metadata.pop("namespace", None)
        elif given and given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        else:
            metadata["namespace"] = namespace

    def _check_namespace(self, kind: ServedKind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        holder = self._cluster.store.collection("", _NAMESPACE).entries.get(namespace)
        if holder is None:
            raise not_found("", _NAMESPACE, namespace)
        if holder.deleting:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = FieldCause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated"
            )
            raise forbidden(kind.group, kind.plural, name, why, cause)

    # -- update --------------------------------------------------------------------------------------------------

    def replace(
        self,
        kind: ServedKind,
        served: Served,
        namespace: str,
        name: str,
        body: Object,
        options: WriteOptions,
        owner: Owner,
    ) -> tuple[Object, bool]:
        """PUT an object, or the subresource of the owner; returns it and whether it was created.

        :raises StatusError: 400, 404, 409, 422.
        """
        metadata = body["metadata"]
        self._check_address(kind, namespace, name, metadata)
        entry = self._cluster.find(kind, namespace, name)
        if entry is None:
            if kind.strategy.create_on_update and not owner.subresource:
                metadata.pop("resourceVersion", None)
                return self.create(kind, served, namespace, body, options, owner), True
            raise not_found(kind.group, kind.plural, name)
        given = metadata.get("uid")
        if given and given != entry.uid:
            raise conflict(kind.group, kind.plural, name, _other_uid(kind, namespace, name, given, entry.uid))
        return self._update(kind, served, entry, lambda _: body, options, owner), False

    def change(
        self,
        kind: ServedKind,
        served: Served,
        namespace: str,
        name: str,
        change: Change,
        options: WriteOptions,
        owner: Owner,
        *,
        tracked: bool = True,
        shares: bool = False,
    ) -> Object:
        """Update an object by a function of its current state.

        :param tracked: update managedFields; False when the function has done so (server-side apply).
        :param shares: the function leaves its argument unchanged and returns an object that shares the unchanged parts,
            which are then neither copied nor validated.
        :raises StatusError: 400, 404, 409, 422.
        """
        entry = self._cluster.get(kind, namespace, name)

        def checked(old: Object) -> Object:
            new = change(old)
            self._check_address(kind, namespace, name, new["metadata"])
            return new

        return self._update(kind, served, entry, checked, options, owner, tracked=tracked, shares=shares)

    @staticmethod
    def _check_address(kind: ServedKind, namespace: str, name: str, metadata: Object) -> None:
        given = metadata.get("name", "")
        if not given:
            raise bad_request(no_name(name))
        if given != name:
            raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
        if kind.namespaced:
            if metadata.get("namespace", namespace) != namespace:
                words = "the namespace of the provided object does not match the namespace sent on the request"
                raise bad_request(words)
            metadata["namespace"] = namespace

    def _update(
        self,
        kind: ServedKind,
        served: Served,
        entry: Entry,
        change: Change,
        options: WriteOptions,
        owner: Owner,
        *,
        tracked: bool = True,
        shares: bool = False,
    ) -> Object:
        old = self._cluster.decode(entry, kind, served)
        new = change(old if shares else self._cluster.decode(entry, kind, served))
        metadata = new["metadata"]
        self._check_version(kind, entry, metadata.get("resourceVersion") or "")
        metadata["resourceVersion"] = str(entry.version)
        keep_system_fields(metadata, old["metadata"])
        if tracked and metadata.get("managedFields") is None and "managedFields" in old["metadata"]:
            metadata["managedFields"] = old["metadata"]["managedFields"]
        self._prepare_update(kind, served, new, old, owner.subresource)
        if tracked:
            track_update(old, new, with_metadata(served.node), owner, self._cluster.now())
        if json_equal(new, old):
            return new
        self._validate(kind, served, new, old)
        options.warnings.extend(kind.strategy.warnings(new, old))
        if options.dry_run:
            return new
        # A subresource may have put back the metadata of the old object.
        metadata = new["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers") and not self.held(kind, new):
            # The response is the requested object at the previous version; it is never stored.
            self._cluster.remove(kind, entry.key)
            return new
        self._cluster.put(kind, served, new)
        return new

    @staticmethod
    def _check_version(kind: ServedKind, entry: Entry, given: str) -> None:
        """Check the resourceVersion of an update; without one only some kinds can be updated."""
        try:
            version = parse_version(given)
        except ValueError as error:
            raise internal(str(error)) from None
        if version == 0:
            if not kind.strategy.unconditional:
                raise version_required(kind.group, kind.plural, entry.name)
        elif version != entry.version:
            raise conflict(kind.group, kind.plural, entry.name, MODIFIED)

    @staticmethod
    def held(kind: ServedKind, body: Object) -> bool:
        """Whether something beside metadata.finalizers holds a deleting object: the spec.finalizers of a namespace."""
        return kind.group == "" and kind.plural == _NAMESPACE and bool(body.get("spec", {}).get("finalizers"))

    @staticmethod
    def _prepare_update(kind: ServedKind, served: Served, new: Object, old: Object, subresource: str) -> None:
        if kind.custom:
            _custom_update(served, new, old, subresource)
        else:
            kind.strategy.default(new)
            kind.strategy.prepare_update(new, old, subresource)
        if kind.generated and subresource != "status" and _differ(_spec(new, served), _spec(old, served)):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    # -- validation ----------------------------------------------------------------------------------------------

    def _validate(self, kind: ServedKind, served: Served, new: Object, old: Object | None) -> None:
        metadata = new["metadata"]
        causes: list[FieldCause] = []
        if old is None or any(metadata.get(name) != old["metadata"].get(name) for name in CHECKED):
            causes += _metadata_causes(kind, metadata)
        if old is not None:
            causes += update_problems(metadata, old["metadata"])
        if kind.custom:
            causes += self._validate_custom(served, new, old)
        causes += kind.strategy.validate(new, old)
        if causes:
            # Events of both groups are validated in the core group's form.
            raise invalid(kind.place[0], kind.kind, metadata.get("name", ""), causes)

    @staticmethod
    def _validate_custom(served: Served, new: Object, old: Object | None) -> list[FieldCause]:
        body = _rest(new)
        before: Any = ABSENT if old is None else _rest(old)
        causes = validate(body, served.node, "", before)
        if served.node.embeds:
            causes += embedded_problems(body, served.node, "")
        if not served.node.ruled:
            return causes
        if is_blocking(causes):
            return [*causes, BLOCKED]
        return causes + check_rules(_ruled(new), served.node, "", ABSENT if old is None else _ruled(old))


def _is_version(text: str) -> bool:
    try:
        return parse_version(text) != 0
    except ValueError:
        return False


def _metadata_causes(kind: ServedKind, metadata: Object) -> list[FieldCause]:
    causes = metadata_problems(
        metadata, namespaced=kind.namespaced, label_names=kind.strategy.label_names, core=kind.group == ""
    )
    if kind.custom and metadata.get("name") and (problem := custom_name_problem(metadata["name"])):
        causes = [cause for cause in causes if cause.field != "metadata.name"]
        causes.append(
            FieldCause("metadata.name", "FieldValueInvalid", f'Invalid value: "{metadata["name"]}": {problem}')
        )
    return causes


def _zero(kind: ServedKind, served: Served) -> Object:
    """The state that a new object is compared with: structs inside Go types exist before they are set."""
    if kind.custom:
        return {}
    properties = served.node.properties.items()
    parts: Object = {name: {} for name, node in properties if node.type == "object" and node.properties}
    return {"metadata": {}, **parts}


def _rest(body: Object) -> Object:
    return {name: value for name, value in body.items() if name not in {"apiVersion", "kind", "metadata"}}


def _ruled(body: Object) -> Object:
    """The object as rules at the root see it: of metadata only the name and generateName."""
    metadata = {name: body["metadata"][name] for name in ("name", "generateName") if name in body["metadata"]}
    return {**body, "metadata": metadata}


def _spec(body: Object, served: Served) -> Object:
    """The part of an object whose changes increase the generation."""
    hidden = {"metadata", "status"} if served.status else {"metadata"}
    return {name: value for name, value in body.items() if name not in hidden}


def _differ(one: Object, other: Object) -> bool:
    try:
        return one != other
    except RecursionError:
        return not json_equal(one, other)


def _custom_update(served: Served, new: Object, old: Object, subresource: str) -> None:
    if not served.status:
        return
    if subresource != "status":
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
        return
    kept = {name: value for name, value in old.items() if name not in {"metadata", "status"}}
    records = new["metadata"].get("managedFields")
    metadata = {**old["metadata"]}
    if records is not None:
        metadata["managedFields"] = records
    else:
        metadata.pop("managedFields", None)
    for name in [name for name in new if name != "status"]:
        del new[name]
    new.update(kept)
    new["metadata"] = metadata


def _other_uid(kind: ServedKind, namespace: str, name: str, given: str, actual: str) -> str:
    key = "/".join(part for part in ("/registry", kind.plural, namespace if kind.namespaced else "", name) if part)
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: UID in precondition: {given}, UID in object meta: {actual}"
    )
