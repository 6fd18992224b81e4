"""Requests on resources, dispatched by path and method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from .apply import apply_configuration, check_typed
from .body import decode_options, decode_patch
from .cluster import Cluster, Object
from .decode import convert_object, read_object
from .delete import Deleter
from .json_codec import encode_json, json_equal
from .kinds import Served, ServedKind
from .managed_fields import Owner, with_metadata
from .messages import ApiRequest, ApiResponse, json_response, text_response
from .metadata import decode_metadata
from .names import no_name
from .negotiation import Form
from .options import DeleteOptions, WriteOptions, delete_options, list_options, write_options
from .patch import APPLY, STRATEGIC, apply_patch, patch_kind
from .read import get_object, list_objects, selector_of, view_of
from .routes import RequestTarget, resource_target
from .schema.validation import format_value
from .status import (
    FieldCause,
    StatusError,
    bad_request,
    conflict,
    internal,
    invalid,
    method_not_allowed,
    not_found,
    not_implemented,
    nothing_served,
    version_required,
)
from .subresources import Subresources
from .watch import watch_objects
from .write import Writer

__all__ = ["Resources"]


_ADDRESS: Final = ("name", "namespace", "uid", "resourceVersion")


class Resources:
    """Answers everything under ``/api/v1`` and ``/apis/GROUP/VERSION``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._writer = Writer(cluster)
        self._deleter = Deleter(cluster)
        self._subresources = Subresources(cluster, self._writer, self._deleter)

    async def answer(self, request: ApiRequest) -> ApiResponse:
        """Answer a resource request.

        :raises StatusError: the request is refused.
        """
        target = resource_target(request.path)
        if target is None:
            return text_response(404, "404 page not found\n")
        registry = self._cluster.registry
        kind = registry.find(target.group, target.plural)
        served = kind.versions.get(target.version) if kind is not None else None
        if served is None and target.group and not registry.serves(target.group, target.version):
            return text_response(404, "404 page not found\n")
        if target.plural == "watch":
            raise not_implemented("the deprecated watch paths; use the watch parameter")
        if kind is None or served is None or target.rest or (target.namespace and not kind.namespaced):
            raise nothing_served()
        if not target.name:
            return self._warned(served, await self._collection(request, kind, served, target))
        if kind.namespaced and not target.namespace:
            raise nothing_served()
        if target.subresource:
            return self._warned(served, self._subresource(request, kind, served, target))
        return self._warned(served, self._object(request, kind, served, target))

    @staticmethod
    def _warned(served: Served, response: ApiResponse) -> ApiResponse:
        if served.warning:
            response.headers.append(_warning(served.warning))
        return response

    # -- dispatch ------------------------------------------------------------------------------------------------

    async def _collection(
        self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget
    ) -> ApiResponse:
        if request.method == "GET":
            options = list_options(request)
            if options.watch:
                return watch_objects(self._cluster, request, kind, served, target.namespace, options)
            return await list_objects(self._cluster, request, kind, served, target.namespace, options)
        if kind.namespaced and not target.namespace:
            raise method_not_allowed()
        if request.method == "POST":
            return self._create(request, kind, served, target)
        if request.method == "DELETE" and kind.strategy.deletes_many:
            return self._delete_collection(request, kind, served, target)
        raise method_not_allowed()

    def _object(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        match request.method:
            case "GET":
                return get_object(self._cluster, request, kind, served, target.namespace, target.name)
            case "PUT":
                return self._replace(request, kind, served, target)
            case "PATCH":
                return self._patch(request, kind, served, target)
            case "DELETE":
                return self._delete(request, kind, served, target)
        raise method_not_allowed()

    def _subresource(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        name = target.subresource
        if name == "finalize" and kind.group == "" and kind.plural == "namespaces":
            if request.method != "PUT":
                raise method_not_allowed()
            return self._finalize(request, kind, served, target)
        if name == "scale" and served.scale:
            return self._subresources.scale(request, kind, served, target)
        if name in kind.strategy.actions:
            return self._subresources.act(request, kind, served, target)
        if name not in kind.strategy.parts and (name != "status" or not served.status):
            raise not_found(kind.group, kind.plural, target.name) if kind.custom else nothing_served()
        match request.method:
            case "GET":
                return get_object(self._cluster, request, kind, served, target.namespace, target.name)
            case "PUT":
                return self._replace(request, kind, served, target)
            case "PATCH":
                return self._patch(request, kind, served, target)
        raise method_not_allowed()

    # -- writes --------------------------------------------------------------------------------------------------

    def _create(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        options = write_options(request, "CreateOptions")
        decoded = read_object(request, kind, served, options.validation)
        owner = self._owner(kind, served, options)
        with _with_warnings(decoded.warnings):
            body = self._writer.create(kind, served, target.namespace, decoded.body, options, owner)
        return self._written(
            201, request, kind, served, body, [*decoded.warnings, *options.warnings], dry_run=options.dry_run
        )

    def _replace(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        options = write_options(request, "UpdateOptions")
        decoded = read_object(request, kind, served, options.validation)
        owner = self._owner(kind, served, options, target.subresource)
        name = target.name
        with _with_warnings(decoded.warnings):
            body, created = self._writer.replace(kind, served, target.namespace, name, decoded.body, options, owner)
        return self._written(
            201 if created else 200,
            request,
            kind,
            served,
            body,
            [*decoded.warnings, *options.warnings],
            dry_run=options.dry_run,
        )

    def _finalize(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        """PUT the finalizers in a namespace's spec, for controllers that empty namespaces."""
        options = write_options(request, "UpdateOptions")
        decoded = read_object(request, kind, served, options.validation)
        entry = self._cluster.get(kind, "", target.name)
        body = self._cluster.decode(entry, kind, served)
        body["spec"] = {"finalizers": list(decoded.body.get("spec", {}).get("finalizers") or [])}
        if entry.deleting and not body["spec"]["finalizers"] and not body["metadata"].get("finalizers"):
            self._cluster.remove(kind, entry.key)
        elif not json_equal(body, self._cluster.decode(entry, kind, served)):
            self._cluster.put(kind, served, body)
        return self._written(200, request, kind, served, body, [])

    def _patch(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        media = patch_kind(request.header("content-type"), custom=kind.custom)
        options = write_options(request, "PatchOptions", apply=media == APPLY)
        if media == APPLY:
            return self._apply(request, kind, served, target, options)
        warnings: list[str] = []
        node = with_metadata(served.node)

        def change(old: Object) -> Object:
            patched = apply_patch(old, request.body, media, node, find_duplicates=options.validation != "Ignore")
            new = patched.value
            if isinstance(new, dict) and isinstance(new.get("metadata"), dict):
                # Patched objects may share parts with the old one; metadata is changed in place below.
                new = {**new, "metadata": dict(new["metadata"])}
            if isinstance(new, dict) and kind.custom:
                _check_patched_type(new, kind, served, target.name)
            try:
                decoded = (
                    convert_object(new, kind, served, options.validation, patched, old)
                    if isinstance(new, dict)
                    else None
                )
            except StatusError as fault:
                raise _unfit(new, fault.message, custom=kind.custom) from None
            if decoded is None:
                raise _unfit(new, "json: cannot unmarshal into Go value", custom=kind.custom)
            warnings.extend(decoded.warnings)
            return decoded.body

        owner = self._owner(kind, served, options, target.subresource)
        with _with_warnings(warnings):
            body = self._writer.change(
                kind,
                served,
                target.namespace,
                target.name,
                change,
                options,
                owner,
                shares=self._may_share(kind, served, target) and media != STRATEGIC,
            )
        return self._written(200, request, kind, served, body, [*warnings, *options.warnings], dry_run=options.dry_run)

    def _may_share(self, kind: ServedKind, served: Served, target: RequestTarget) -> bool:
        """Whether a patch may share parts with the stored object, because no default is missing in any of them.

        Strategies of built-in kinds change objects in place.
        """
        entry = self._cluster.find(kind, target.namespace, target.name)
        return kind.custom and served.name == kind.storage and entry is not None and entry.epoch == kind.epoch

    def _apply(
        self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget, options: WriteOptions
    ) -> ApiResponse:
        config, warnings = self._configuration(request, kind, served, target, options)
        node = with_metadata(served.node)
        owner = Owner(options.manager, "Apply", kind.api_version(served.name), target.subresource)
        now = self._cluster.now()
        if served.status and target.subresource != "status":
            config.pop("status", None)
        elif kind.custom and target.subresource == "status":
            kept = {name: config["metadata"][name] for name in _ADDRESS if name in config["metadata"]}
            status = {"status": config["status"]} if "status" in config else {}
            config = {"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": kept, **status}

        def change(old: Object) -> Object:
            merged = apply_configuration(old, config, node, owner, now, force=options.force)
            return convert_object(merged, kind, served, "Ignore", applied=True).body

        if self._cluster.find(kind, target.namespace, target.name) is not None or target.subresource:
            body = self._writer.change(
                kind, served, target.namespace, target.name, change, options, owner, tracked=False
            )
            return self._written(
                200, request, kind, served, body, [*warnings, *options.warnings], dry_run=options.dry_run
            )
        if config["metadata"].get("uid"):
            given = config["metadata"]["uid"]
            why = f"uid mismatch: the provided object specified uid {given}, and no existing object was found"
            raise conflict(kind.group, kind.plural, target.name, why)
        nothing = {"apiVersion": kind.api_version(served.name), "kind": kind.kind, "metadata": {}}
        new = change(nothing)
        new["metadata"].pop("resourceVersion", None)
        made = self._writer.create(kind, served, target.namespace, new, options, None)
        return self._written(201, request, kind, served, made, [*warnings, *options.warnings], dry_run=options.dry_run)

    def _configuration(
        self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget, options: WriteOptions
    ) -> tuple[Object, list[str]]:
        """Decode and check the configuration of an apply, as far as possible without the live object."""
        try:
            find_duplicates = options.validation != "Ignore"
            document = decode_patch(request.body, request.header("content-type"), find_duplicates=find_duplicates)
        except ValueError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
        config = document.value
        if not isinstance(config, dict):
            raise bad_request("error decoding YAML: the configuration is not an object")
        given = config.get("apiVersion") or "", config.get("kind") or ""
        if given != (kind.api_version(served.name), kind.kind):
            raise bad_request(_object_type(*map(str, given)))
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        unknown: list[str] = []
        given_metadata = metadata if isinstance(metadata, dict) else {}
        emptied = [name for name in ("labels", "annotations") if given_metadata.get(name) == {}]
        if given_metadata.get("name", target.name) in {None, ""}:
            raise bad_request(no_name(target.name))
        versioned = given_metadata.get("resourceVersion", "0") not in {None, ""}
        try:
            metadata = decode_metadata(config, kind.kind, served.name, unknown)
        except StatusError as fault:
            where = f"(/{target.name}; {given[0]}, Kind={given[1]})"
            raise internal(f"failed to create typed patch object {where}: {fault.message}") from None
        if not versioned and not kind.strategy.unconditional:
            raise version_required(kind.group, kind.plural, target.name)
        # An empty map is owned, although it is not stored.
        metadata |= {name: {} for name in emptied}
        if unknown and options.validation == "Strict":
            words = ", ".join(f'unknown field "{path}"' for path in sorted(unknown))
            raise bad_request(f"error strict decoding YAML: {words}")
        if metadata.setdefault("name", target.name) != target.name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
            )
        if kind.namespaced and metadata.get("namespace", target.namespace) != target.namespace:
            words = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(words)
        check_typed(config, with_metadata(served.node), target.name)
        if document.complaints and options.validation == "Strict":
            words = ", ".join(document.strict_errors())
            raise bad_request(f"error strict decoding patch: error converting YAML to JSON: {words}")
        if kind.namespaced:
            metadata["namespace"] = target.namespace
        warnings = [*document.complaints, *(f'unknown field "{path}"' for path in sorted(unknown))]
        if options.validation != "Warn":
            warnings = []
        return config, warnings

    def _owner(self, kind: ServedKind, served: Served, options: WriteOptions, subresource: str = "") -> Owner:
        return Owner(options.manager, "Update", kind.api_version(served.name), subresource)

    def _written(
        self,
        code: int,
        request: ApiRequest,
        kind: ServedKind,
        served: Served,
        body: Object,
        warnings: Sequence[str],
        *,
        dry_run: bool = False,
    ) -> ApiResponse:
        headers = [_warning(text) for text in warnings]
        view = view_of(self._cluster, request, kind, served, single=True)
        metadata = body["metadata"]
        entry = self._cluster.find(kind, metadata.get("namespace", ""), metadata["name"])
        stored = entry is not None and str(entry.version) == metadata.get("resourceVersion")
        if entry is not None and stored and not dry_run:
            # The stored form is already encoded.
            return json_response(code, view.one(entry), headers)
        if view.form is Form.METADATA:
            body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        return json_response(code, encode_json(body), headers)

    # -- deletes -------------------------------------------------------------------------------------------------

    def _delete(self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget) -> ApiResponse:
        options = delete_options(request, decode_options(request.body, request.header("content-type")))
        body, gone = self._deleter.delete(kind, served, target.namespace, target.name, options)
        if not gone or kind.strategy.returns_deleted:
            return json_response(200, encode_json(body))
        details: dict[str, Any] = {"name": target.name, "kind": kind.plural, "uid": body["metadata"]["uid"]}
        if kind.group:
            details["group"] = kind.group
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_response(200, encode_json(status))

    def _delete_collection(
        self, request: ApiRequest, kind: ServedKind, served: Served, target: RequestTarget
    ) -> ApiResponse:
        options = delete_options(request, decode_options(request.body, request.header("content-type")))
        selector = selector_of(kind, list_options(request))
        items = []
        for entry in self._cluster.collection(kind).snapshot(target.namespace):
            if selector.matches(entry):
                uid = entry.uid if options.uid is None else options.uid
                each = DeleteOptions(options.dry_run, uid, options.version, options.propagation)
                body, _ = self._deleter.delete(kind, served, entry.namespace, entry.name, each)
                if not kind.custom:
                    del body["apiVersion"], body["kind"]
                items.append(body)
        type_ = {"kind": kind.lists, "apiVersion": kind.api_version(served.name)}
        metadata = {"resourceVersion": str(self._cluster.store.version), **({"continue": ""} if kind.custom else {})}
        return json_response(200, encode_json({**type_, "metadata": metadata, "items": items}))


@contextmanager
def _with_warnings(warnings: Sequence[str]) -> Iterator[None]:
    """Add the warnings to error responses."""
    try:
        yield
    except StatusError as fault:
        fault.headers = [*fault.headers, *map(_warning, warnings)]
        raise


def _warning(text: str) -> tuple[str, str]:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "Warning", f'299 - "{quoted}"'


def _unfit(new: Any, why: str, *, custom: bool) -> StatusError:
    """422: the result of a patch is not a valid object."""
    # Custom resources are maps in Go, whose members are encoded in their order.
    shown = encode_json(new, ordered=True).decode() if custom else format_value(new)
    words = f"Invalid value: {format_value(shown)}: {why}"
    return invalid("", "", "", [FieldCause("patch", "FieldValueInvalid", words)])


def _check_patched_type(new: Object, kind: ServedKind, served: Served, name: str) -> None:
    """Refuse a patch that changes or removes the type of a custom resource.

    :raises StatusError: 422 or 500.
    """
    if not new.get("kind"):
        shown = encode_json(new, ordered=True).decode()
        raise _unfit(new, f"Object 'Kind' is missing in '{shown}'", custom=True)
    if not new.get("apiVersion"):
        why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        details = {"causes": [{"message": why}]}
        raise StatusError(500, "InternalError", f"Internal error occurred: {why}", details)
    for field, expected in (("kind", kind.kind), ("apiVersion", kind.api_version(served.name))):
        given = new.get(field)
        if isinstance(given, str) and given and given != expected:
            words = f"Invalid value: {format_value(given)}: must be {expected}"
            group = str(new.get("apiVersion") or "").rpartition("/")[0]
            raise invalid(group, str(new.get("kind")), name, [FieldCause(field, "FieldValueInvalid", words)])


def _object_type(version: str, kind: str) -> str:
    group, _, short = version.rpartition("/")
    return f"invalid object type: {group}/{short}, Kind={kind}"
