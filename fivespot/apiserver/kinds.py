"""Kinds, their served versions, and the registry that requests are looked up in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final

from .schema import Node, compile_schema
from .status import FieldCause

__all__ = ["Registry", "Served", "ServedKind", "Strategy", "TableColumn", "version_priority"]

Object = dict[str, Any]

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_priority(name: str) -> tuple[int, int, int, str]:
    """A sort key in Kubernetes' order of preference: v2, v1, v1beta1, v1alpha1, then others by name."""
    found = _VERSION.fullmatch(name)
    if found is None:
        return (1, 0, 0, name)
    stage = {None: 0, "beta": 1, "alpha": 2}[found.group(2)]
    return (0, stage * 10_000 - int(found.group(1)), -int(found.group(3) or 0), name)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a Table.

    :param value: gives a row's cell from the object and the time.
    """

    name: str
    type: str
    value: Callable[[Object, datetime], Any]
    format: str = ""
    description: str = ""
    priority: int = 0


class Strategy:
    """The behaviour of a kind around writes, as a registry strategy in kube-apiserver. The defaults do nothing."""

    selectable: tuple[str, ...] = ()
    """Fields beside ``metadata.name`` and ``metadata.namespace`` that field selectors may use."""

    stored_fields: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names under which :attr:`selectable` fields are stored, where they differ."""

    unconditional = True
    """Whether a PUT without resourceVersion is allowed."""
    create_on_update = False
    """Whether a PUT creates an object that does not exist."""
    returns_deleted = False
    """Whether the answer to a deletion is the object instead of a Status."""
    deletes_many = True
    """Whether the kind supports deletecollection."""
    label_names = False
    """Whether names are DNS labels instead of subdomains."""
    parts: tuple[str, ...] = ()
    """Subresources that are parts of the object, beside ``status``."""
    actions: ClassVar[Mapping[str, Mapping[str, str]]] = MappingProxyType({})
    """Subresources that are only created, with the group, version and kind of their bodies."""

    def default(self, new: Object) -> None:
        """Set defaults on every write; the writer owns them."""

    def decode(self, new: Object, unknown: list[str]) -> None:
        """Decode parts that the schema does not describe, and add the paths of unknown fields."""

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        """Warnings about a valid object."""
        return []

    def prepare_create(self, new: Object) -> None:
        """Set and clear fields when an object is created; nobody owns them."""

    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        """Restore the fields that an update of the resource or of a subresource must not change."""

    def validate(self, new: Object, old: Object | None) -> list[FieldCause]:
        """Check an object beyond its schema."""
        return []

    def fields(self, body: Object) -> Mapping[str, str]:
        """The values of :attr:`selectable` in an object."""
        return {}


@dataclass(slots=True, eq=False)
class Served:
    """A served version of a kind.

    :param schema: of the whole object, as published.
    :param node: compiled, without apiVersion, kind and metadata.
    :param whole: compiled, with metadata that takes anything.
    """

    name: str
    schema: Mapping[str, Any]
    node: Node
    whole: Node
    status: bool = False
    scale: Mapping[str, str] | None = None
    columns: tuple[TableColumn, ...] = ()
    warning: str = ""

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Any], **options: Any) -> Served:
        """A version with its schema compiled."""
        hidden = {"apiVersion", "kind", "metadata"}
        shown = {key: value for key, value in (schema.get("properties") or {}).items() if key not in hidden}
        required = [key for key in schema.get("required") or () if key not in hidden]
        body = {**schema, "properties": shown, "required": required}
        if not shown:
            del body["properties"]
        node = compile_schema(body)
        properties = {**node.properties, "metadata": Node(raw={}, preserve=True)}
        whole = Node(raw=schema, preserve=node.preserve, additional=node.additional, properties=properties)
        return cls(name, schema, node, whole, **options)


def _unchanged(body: Object) -> Object:
    return body


@dataclass(slots=True, eq=False)
class ServedKind:
    """A kind with its served versions.

    :param versions: served ones by name, in order of preference.
    :param storage: the version that objects are stored in.
    :param generated: changes of the spec increase ``metadata.generation``.
    :param epoch: changes with the schemas, so that objects stored before are pruned and defaulted again when read.
    :param stored_as: group and plural of the kind whose storage it shares (the two kinds of Event).
    :param to_storage: from this kind's form to the stored one; ``from_storage`` back.
    """

    group: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    versions: dict[str, Served]
    storage: str
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    custom: bool = False
    generated: bool = False
    strategy: Strategy = field(default_factory=Strategy)
    epoch: int = 0
    terminating: bool = False
    stored_as: tuple[str, str] | None = None
    to_storage: Callable[[Object], Object] = _unchanged
    from_storage: Callable[[Object], Object] = _unchanged

    @property
    def place(self) -> tuple[str, str]:
        """The group and plural under which it is stored."""
        return self.stored_as or (self.group, self.plural)

    @property
    def lists(self) -> str:
        """The kind of its lists."""
        return self.list_kind or f"{self.kind}List"

    def api_version(self, version: str) -> str:
        """``group/version``, or the version alone for the core group."""
        return f"{self.group}/{version}" if self.group else version

    def key(self, namespace: str, name: str) -> str:
        """The key of an object in the store."""
        return f"{namespace}/{name}" if self.namespaced else name


class Registry:
    """All kinds by group and plural."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self.generation = 0
        """Increases with every change of the served kinds."""

    def add(self, kind: ServedKind) -> None:
        """Serve a kind, replacing an earlier form of it."""
        self._kinds[kind.group, kind.plural] = kind
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a kind."""
        if self._kinds.pop((group, plural), None) is not None:
            self.generation += 1

    def find(self, group: str, plural: str) -> ServedKind | None:
        """A kind by its plural."""
        return self._kinds.get((group, plural))

    def by_kind(self, group: str, name: str) -> ServedKind | None:
        """A kind by its name."""
        return next((kind for kind in self._kinds.values() if kind.group == group and kind.kind == name), None)

    def kinds(self, group: str | None = None) -> Iterator[ServedKind]:
        """All kinds, or those of one group, by plural."""
        for (each, _), kind in sorted(self._kinds.items()):
            if group is None or each == group:
                yield kind

    def groups(self) -> dict[str, list[str]]:
        """Served versions by group, each in order of preference; the core group is ""."""
        found: dict[str, set[str]] = {}
        for kind in self._kinds.values():
            found.setdefault(kind.group, set()).update(kind.versions)
        return {group: sorted(versions, key=version_priority) for group, versions in found.items() if versions}

    def serves(self, group: str, version: str) -> bool:
        """Whether anything of a group and version is served."""
        return any(kind.group == group and version in kind.versions for kind in self._kinds.values())
