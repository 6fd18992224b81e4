"""Representations of stored objects: whole, metadata only, or Table rows."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .cluster import Cluster
from .json_codec import encode_json
from .kinds import Served, ServedKind, TableColumn
from .negotiation import Form
from .store import Entry

__all__ = ["ObjectView"]

_META_HEAD: Final = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"'


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata_decoder: Final = msgspec.json.Decoder(_Metadata)


class ObjectView:
    """The representation of objects of one kind and version for one client.

    :param include: the part of the object in Table rows: ``Metadata``, ``Object`` or ``None``.
    """

    def __init__(
        self, cluster: Cluster, kind: ServedKind, served: Served, form: Form, include: str = "Metadata"
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._served = served
        self.form = form
        self._include = include
        self._head = self._head_of(with_type=True)
        # Items of lists of built-in kinds come without the type, as Go's typed lists encode them.
        self._item_head = self._head if kind.custom else self._head_of(with_type=False)

    def _head_of(self, *, with_type: bool) -> bytes:
        type_ = f'"apiVersion":"{self._kind.api_version(self._served.name)}","kind":"{self._kind.kind}",'
        return f'{{{type_ if with_type else ""}"metadata":{{"resourceVersion":"'.encode()

    def one(self, entry: Entry) -> bytes:
        """An object alone."""
        if self.form is Form.TABLE:
            return encode_json(self.table([entry], columns=True))
        return self._metadata(entry) if self.form is Form.METADATA else self._whole(entry, self._head)

    def item(self, entry: Entry) -> bytes:
        """An object as an item of a list."""
        return self._metadata(entry) if self.form is Form.METADATA else self._whole(entry, self._item_head)

    def event(self, entry: Entry, *, first: bool) -> bytes:
        """An object in an event of a watch; a Table names its columns in the first event only."""
        if self.form is Form.TABLE:
            return encode_json(self.table([entry], columns=first))
        return self.one(entry)

    def empty(self, version: int, annotations: dict[str, str]) -> bytes:
        """The object of a bookmark."""
        metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        if self.form is Form.TABLE:
            row = {"cells": [None] * len(self._served.columns), "object": self._type() | {"metadata": metadata}}
            return encode_json(self._wrap([row], {"resourceVersion": str(version)}, columns=False))
        if self.form is Form.METADATA:
            body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return encode_json(body)
        return encode_json({**self._type(), "metadata": metadata})

    def table(self, entries: list[Entry], *, columns: bool, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
        """A Table with one row for each entry."""
        rows = [self.row(entry) for entry in entries]
        return self._wrap(rows, metadata or {"resourceVersion": str(entries[0].version)}, columns=columns)

    def row(self, entry: Entry) -> dict[str, Any]:
        """A row of a Table."""
        body = self._cluster.decode(entry, self._kind, self._served)
        now = self._cluster.moment()
        row: dict[str, Any] = {"cells": [column.value(body, now) for column in self._served.columns]}
        if self._include == "Object":
            row["object"] = body
        elif self._include != "None":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": body["metadata"],
            }
        else:
            row["object"] = None
        return row

    def _wrap(self, rows: list[dict[str, Any]], metadata: dict[str, Any], *, columns: bool) -> dict[str, Any]:
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": [_definition(column) for column in self._served.columns] if columns else None,
            "rows": rows,
        }

    def _type(self) -> dict[str, Any]:
        return {"kind": self._kind.kind, "apiVersion": self._kind.api_version(self._served.name)}

    def _whole(self, entry: Entry, head: bytes) -> bytes:
        kind = self._kind
        if entry.epoch == kind.epoch and kind.stored_as is None and self._served.name == kind.storage:
            return b'%b%d",%b' % (head, entry.version, entry.tail)
        body = self._cluster.decode(entry, kind, self._served)
        if head is not self._head:
            del body["apiVersion"], body["kind"]
        return encode_json(body)

    @staticmethod
    def _metadata(entry: Entry) -> bytes:
        raw = bytes(_metadata_decoder.decode(b'{"metadata":{' + entry.tail).metadata)
        return b'%b%d",%b}' % (_META_HEAD, entry.version, raw[1:])


def _definition(column: TableColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
