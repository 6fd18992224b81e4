"""Request options, parsed and validated."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from .messages import ApiRequest
from .status import FieldCause, bad_request, invalid_options

__all__ = ["DeleteOptions", "ListOptions", "WriteOptions", "delete_options", "list_options", "write_options"]

_MANAGER_LIMIT: Final = 128
_GO_NAMES: Final = {list: "array", str: "string", int: "number", float: "number", bool: "bool"}
_VERSION_DIGITS: Final = 1000
"""Longer numbers are out of range without being parsed."""
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_POLICIES: Final = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list or watch; selectors are not parsed yet."""

    labels: str
    fields: str
    limit: int
    token: str
    version: str
    match: str
    watch: bool
    bookmarks: bool
    initial_events: bool | None
    timeout: int


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a create, update or patch.

    :param validation: ``Ignore``, ``Warn`` or ``Strict``.
    """

    dry_run: bool
    manager: str
    validation: str
    force: bool
    warnings: list[str] = field(default_factory=list)
    """Warnings about the written object, for the client."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion."""

    dry_run: bool
    uid: str | None
    version: str | None
    propagation: str


def boolean(text: str) -> bool:
    """A boolean query parameter: true unless empty, "0" or "false"."""
    return text.lower() not in {"", "0", "false"}


def number(text: str) -> int:
    """An integer query parameter; 0 when missing."""
    if not text:
        return 0
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_version(text: str) -> int:
    """Parse a resourceVersion; "" is 0.

    :raises ValueError: it is not a number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if len(text) > _VERSION_DIGITS or int(text) >= 2**64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def list_options(request: ApiRequest) -> ListOptions:
    """Parse the options of a list or watch.

    :raises StatusError: 400 or 422.
    """
    asked = request.parameter
    watch = _given(request, "watch") and boolean(asked("watch") or "true")
    initial = asked("sendInitialEvents")
    options = ListOptions(
        labels=asked("labelSelector"),
        fields=asked("fieldSelector"),
        limit=max(0, number(asked("limit"))),
        token=asked("continue"),
        version=asked("resourceVersion"),
        match=asked("resourceVersionMatch"),
        watch=watch,
        bookmarks=boolean(asked("allowWatchBookmarks")),
        initial_events=boolean(initial) if initial else None,
        timeout=number(asked("timeoutSeconds")),
    )
    problems = [_watch_problem(options)] if watch else _list_problems(options)
    causes = [problem for problem in problems if problem is not None]
    if causes:
        raise invalid_options("ListOptions", *causes)
    if options.token and options.version not in {"", "0"} and not watch:
        raise bad_request("specifying resource version is not allowed when using continue")
    return options


def _given(request: ApiRequest, name: str) -> bool:
    return any(key == name for key, _ in request.query)


def _forbidden(field: str, words: str) -> FieldCause:
    return FieldCause(field, "FieldValueForbidden", f"Forbidden: {words}")


def _match_problem(match: str) -> FieldCause | None:
    if match in {"", "Exact", "NotOlderThan"}:
        return None
    words = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    return FieldCause("resourceVersionMatch", "FieldValueNotSupported", words)


def _list_problems(options: ListOptions) -> list[FieldCause | None]:
    match, field = options.match, "resourceVersionMatch"
    problems: list[FieldCause | None] = []
    if options.initial_events is not None:
        problems.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if match:
        if not options.version:
            problems.append(_forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
        if options.token:
            problems.append(_forbidden(field, f"{field} is forbidden when continue is provided"))
        problems.append(_match_problem(match))
        if match == "Exact" and options.version == "0":
            problems.append(_forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    return problems


def _watch_problem(options: ListOptions) -> FieldCause | None:
    match, field = options.match, "resourceVersionMatch"
    if options.initial_events is None:
        return (
            _forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided") if match else None
        )
    if match != "NotOlderThan":
        if match:
            return _match_problem(match) or FieldCause(
                field, "FieldValueNotSupported", f'Unsupported value: "{match}": supported values: "NotOlderThan"'
            )
        return _forbidden(field, f"sendInitialEvents requires setting {field} to NotOlderThan")
    return None


def write_options(request: ApiRequest, kind: str, *, apply: bool = False) -> WriteOptions:
    """Parse the options of a create, update or patch.

    :param kind: ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``, for error messages.
    :raises StatusError: 422.
    """
    causes = []
    dry_runs = [value for name, value in request.query if name == "dryRun" and value]
    causes += _dry_run_problem(dry_runs)
    manager = request.parameter("fieldManager")
    force = request.parameter("force")
    if kind == "PatchOptions" and not apply and force:
        causes.append(_forbidden("force", "may not be specified for non-apply patch"))
    if apply and not manager:
        causes.append(FieldCause("fieldManager", "FieldValueRequired", "Required value: is required for apply patch"))
    if len(manager.encode()) > _MANAGER_LIMIT:
        words = f"Too long: may not be more than {_MANAGER_LIMIT} bytes"
        causes.append(FieldCause("fieldManager", "FieldValueTooLong", words))
    if not manager.isprintable():
        at, char = next((i, char) for i, char in enumerate(manager) if not char.isprintable())
        position = len(manager[:at].encode())
        words = f"Invalid value: {json.dumps(manager)}: invalid character U+{ord(char):04X} (at position {position})"
        causes.append(FieldCause("fieldManager", "FieldValueInvalid", words))
    validation = request.parameter("fieldValidation")
    if validation not in _VALIDATIONS:
        listed = ", ".join(f'"{each}"' for each in _VALIDATIONS)
        words = f'Unsupported value: "{validation}": supported values: {listed}'
        causes.append(FieldCause("fieldValidation", "FieldValueNotSupported", words))
    if causes:
        raise invalid_options(kind, *causes)
    agent = request.header("user-agent").partition("/")[0]
    return WriteOptions(bool(dry_runs), manager or agent or "unknown", validation or "Warn", boolean(force))


def _dry_run_problem(given: list[Any]) -> list[FieldCause]:
    if all(value == "All" for value in given):
        return []
    listed = ",".join(f'"{value}"' for value in given)
    words = f'Unsupported value: [{listed}]: supported values: "All"'
    return [FieldCause("dryRun", "FieldValueNotSupported", words)]


_OPTION_TYPES: Final = (
    ("propagationPolicy", str, "v1.DeletionPropagation"),
    ("orphanDependents", bool, "bool"),
    ("gracePeriodSeconds", int, "int64"),
    ("preconditions", dict, "v1.Preconditions"),
    ("dryRun", list, "[]string"),
    ("preconditions.uid", str, "types.UID"),
    ("preconditions.resourceVersion", str, "string"),
)


def _check_option_types(body: dict[str, Any]) -> None:
    for path, expected, go_type in _OPTION_TYPES:
        value: Any = body
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and type(value) is not expected:
            found = _GO_NAMES.get(type(value), "object")
            words = f"json: cannot unmarshal {found} into Go struct field DeleteOptions.{path} of type {go_type}"
            raise bad_request(words)


def delete_options(request: ApiRequest, body: dict[str, Any]) -> DeleteOptions:
    """Parse DeleteOptions from the body or, without one, from the query.

    :raises StatusError: 400 or 422.
    """
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        version = body.get("apiVersion", "meta.k8s.io/v1")
        where = 'in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(f'no kind "{body["kind"]}" is registered for version "{version}" {where}')
    if body:
        _check_option_types(body)
        conditions = body.get("preconditions") or {}
        dry_runs, policy = body.get("dryRun") or [], body.get("propagationPolicy")
        orphan = body.get("orphanDependents")
    else:
        conditions = {}
        dry_runs = [value for name, value in request.query if name == "dryRun" and value]
        policy = request.parameter("propagationPolicy") or None
        orphan = boolean(request.parameter("orphanDependents")) if request.parameter("orphanDependents") else None
    causes = _dry_run_problem(dry_runs)
    if policy is not None and orphan is not None:
        words = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(FieldCause("propagationPolicy", "FieldValueInvalid", words))
    elif policy is not None and policy not in _POLICIES:
        listed = ", ".join(f'"{each}"' for each in (*_POLICIES, "nil"))
        words = f'Unsupported value: "{policy}": supported values: {listed}'
        causes.append(FieldCause("propagationPolicy", "FieldValueNotSupported", words))
    if causes:
        raise invalid_options("DeleteOptions", *causes)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        bool(dry_runs), conditions.get("uid"), conditions.get("resourceVersion"), policy or "Background"
    )
