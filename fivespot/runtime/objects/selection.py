"""Which objects a list or watch covers, and how much of each the store keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fivespot.runtime.errors import ProtocolError

from .object import WireMeta

__all__ = ["EVERYTHING", "FULL", "METADATA", "Projection", "Selector", "exact"]


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector of equalities and existence, plus a raw field selector that only the server evaluates.

    :param equals: labels that must have exactly these values.
    :param exists: labels that must be present.
    :param fields: a field selector such as ``metadata.name=web``; objects of our own writes are not tested
        against it, so use it only for fields that no write of this process changes.
    """

    equals: tuple[tuple[str, str], ...] = ()
    exists: tuple[str, ...] = ()
    fields: str = ""

    @classmethod
    def labels(cls, labels: Mapping[str, str]) -> Selector:
        return cls(equals=tuple(sorted(labels.items())))

    def query(self) -> dict[str, str]:
        """The query parameters of a list or watch."""
        query = {}
        terms = [f"{name}={value}" for name, value in self.equals] + list(self.exists)
        if terms:
            query["labelSelector"] = ",".join(terms)
        if self.fields:
            query["fieldSelector"] = self.fields
        return query

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.equals) and all(
            name in labels for name in self.exists
        )


EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class Projection:
    """What an informer keeps of each object.

    ``managedFields`` is never kept, and heads are read from the whole object before it is cut. A projection is a
    named value: two with the same name must be the same.

    :param name: identity, shown by the debug endpoint.
    :param keep: cuts the JSON of one object down to the JSON that readers need, raising
        :class:`~fivespot.runtime.errors.ProtocolError` for what it cannot read; None keeps everything.
    :param annotations: the annotations kept in heads; None keeps all.
    :param metadata_only: ask the server for PartialObjectMetadata, so that bodies never cross the wire; what is
        stored of an object is then its head alone.
    """

    name: str
    keep: Callable[[bytes | msgspec.Raw], bytes] | None = field(default=None, compare=False)
    annotations: frozenset[str] | None = None
    metadata_only: bool = False

    @classmethod
    def fields(cls, name: str, shape: type[msgspec.Struct], *, annotations: frozenset[str] | None = None) -> Projection:
        """A projection that keeps the fields of a msgspec Struct type."""
        decoder = msgspec.json.Decoder(shape)

        def keep(raw: bytes | msgspec.Raw) -> bytes:
            return exact(decoder.decode(raw))

        return cls(name, keep, annotations)

    def covers(self, other: Projection) -> bool:
        """Whether readers of ``other`` find all they asked for in this one."""
        if self == other:
            return True
        wide_annotations = self.annotations is None or (
            other.annotations is not None and other.annotations <= self.annotations
        )
        whole = self.keep is None and not self.metadata_only
        return wide_annotations and (whole or other.metadata_only)

    def project(self, raw: bytes | msgspec.Raw, meta: WireMeta | None = None) -> bytes:
        """The kept part of one object as exact-size JSON that pins no larger buffer.

        :param meta: its metadata, if it was decoded already.
        :raises ProtocolError: the object is no JSON object, or a kept field has another type.
        """
        try:
            if self.metadata_only:
                return b"{}"
            if self.keep is not None:
                return self.keep(raw)
            whole = bytes(raw) if isinstance(raw, msgspec.Raw) else raw
            managed = (meta or _decoder.decode(whole).metadata).managed_fields
            return _without(whole, bytes(managed)) if managed != _NOTHING else whole
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProtocolError(f"cannot keep an object as {self.name}: {error}") from error


def exact(value: Any) -> bytes:
    """JSON in a buffer of exactly its size; the encoder's own buffer is larger than what it holds."""
    return bytes(memoryview(_encoder.encode(value)))


def _without(whole: bytes, managed: bytes) -> bytes:
    """The JSON of an object without its ``managedFields``, whose value is given."""
    start = whole.find(_FIELD)
    value = start + len(_FIELD)
    if start >= 0 and whole.startswith(managed, value) and whole.count(_FIELD[1:]) == 1:
        # As servers write it. Quotes inside of strings are escaped, so the one place where it stands is the field.
        return whole[:start] + whole[value + len(managed) :]
    top = _top_decoder.decode(whole)
    metadata = _top_decoder.decode(top["metadata"])
    del metadata["managedFields"]
    top["metadata"] = msgspec.Raw(exact(metadata))
    return exact(top)


class _Wire(msgspec.Struct, gc=False):
    metadata: WireMeta = msgspec.field(default_factory=WireMeta)


_FIELD = b',"managedFields":'
_NOTHING = msgspec.Raw()
_decoder = msgspec.json.Decoder(_Wire)
_top_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()


FULL = Projection("full")
METADATA = Projection("metadata", metadata_only=True)
