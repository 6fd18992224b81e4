"""Selection of the objects that a list or watch covers, and of the part of each that the store keeps."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from fivespot.runtime.errors import ProtocolError

from .callables import same_function
from .wire import UNDECODABLE, WireMeta, decode, decode_meta, encode_exact, join_members, members, reason_of

__all__ = [
    "EVERYTHING",
    "FULL",
    "METADATA",
    "DoesNotExist",
    "Exists",
    "In",
    "NotIn",
    "Projection",
    "Requirement",
    "Selector",
]

_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LONGEST_NAME: Final = 253 + 1 + 63


@dataclass(frozen=True, slots=True, init=False)
class Requirement(ABC):
    """One condition on the labels of an object, with the meaning that Kubernetes gives it.

    :raises ValueError: the name is no label name, or a value no label value.
    """

    name: str
    values: tuple[str, ...]

    def __init__(self, name: str, *values: str) -> None:
        if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a label name")
        for value in values:
            if _VALUE.fullmatch(value) is None:
                raise ValueError(f"{value!r} is not a value of label {name}")
        # Sorted, so that equal requirements are shared however they were written.
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", tuple(sorted(set(values))))

    @abstractmethod
    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""

    @abstractmethod
    def __str__(self) -> str:
        """The requirement as ``labelSelector`` has it."""


@dataclass(frozen=True, slots=True, init=False)
class In(Requirement):
    """The label is present and has one of the values: ``In("tier", "web", "cache")``."""

    def __init__(self, name: str, value: str, *more: str) -> None:
        Requirement.__init__(self, name, value, *more)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return labels.get(self.name) in self.values

    def __str__(self) -> str:
        return f"{self.name}={self.values[0]}" if len(self.values) == 1 else f"{self.name} in ({','.join(self.values)})"


@dataclass(frozen=True, slots=True, init=False)
class NotIn(Requirement):
    """The label is absent, or has none of the values: ``NotIn("tier", "test")``."""

    def __init__(self, name: str, value: str, *more: str) -> None:
        Requirement.__init__(self, name, value, *more)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return labels.get(self.name) not in self.values

    def __str__(self) -> str:
        if len(self.values) == 1:
            return f"{self.name}!={self.values[0]}"
        return f"{self.name} notin ({','.join(self.values)})"


@dataclass(frozen=True, slots=True, init=False)
class Exists(Requirement):
    """The label is present, with whatever value."""

    def __init__(self, name: str) -> None:
        Requirement.__init__(self, name)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.name in labels

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, init=False)
class DoesNotExist(Requirement):
    """The label is absent."""

    def __init__(self, name: str) -> None:
        Requirement.__init__(self, name)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.name not in labels

    def __str__(self) -> str:
        return f"!{self.name}"


@dataclass(frozen=True, slots=True, init=False)
class Selector:
    """A selection of objects by their labels, and by fields that only the server evaluates.

    :param requirements: all of them have to hold.
    :param fields: a field selector such as ``metadata.name=web``; objects that this process wrote are not tested
        against it, so use it only for fields that no write of this process changes.
    """

    requirements: tuple[Requirement, ...]
    fields: str

    def __init__(self, *requirements: Requirement, fields: str = "") -> None:
        object.__setattr__(self, "requirements", tuple(sorted(set(requirements), key=str)))
        object.__setattr__(self, "fields", fields)

    @classmethod
    def labels(cls, labels: Mapping[str, str]) -> Selector:
        """Select the objects that have all these labels (``matchLabels``)."""
        return cls(*(In(name, value) for name, value in labels.items()))

    def query(self) -> dict[str, str]:
        """The query parameters of a list or watch."""
        query = {}
        if self.requirements:
            query["labelSelector"] = ",".join(map(str, self.requirements))
        if self.fields:
            query["fieldSelector"] = self.fields
        return query

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected, as far as labels decide it."""
        return all(requirement.matches(labels) for requirement in self.requirements)


EVERYTHING: Final = Selector()


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The part of each object that an informer keeps.

    ``managedFields`` is never kept, and heads are read from the whole object before it is cut. Two projections are
    equal, and share an informer, if they keep the same by the same function.

    :param name: shown by the debug endpoint and in logs.
    :param keep: cuts the JSON of one object down to the JSON that readers need; None keeps everything. An object for
        which it raises is kept without a body.
    :param annotations: the annotations kept in heads; None keeps all.
    :param metadata_only: ask the server for PartialObjectMetadata, so that bodies never cross the wire; what is
        stored of an object is then its head alone.
    """

    name: str
    keep: Callable[[bytes | msgspec.Raw], bytes] | None = None
    annotations: frozenset[str] | None = None
    metadata_only: bool = False

    @classmethod
    def fields(cls, name: str, shape: type[msgspec.Struct], *, annotations: frozenset[str] | None = None) -> Projection:
        """A projection that keeps the fields of a msgspec Struct type."""
        return cls(name, _Fields(shape), annotations)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Projection)
            and (self.name, self.annotations, self.metadata_only)
            == (other.name, other.annotations, other.metadata_only)
            and same_function(self.keep, other.keep)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.annotations, self.metadata_only))

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
        """Cut one object down to what is kept of it, as exact-size JSON that pins no larger buffer.

        :param meta: its metadata, if it was decoded already.
        :raises ProtocolError: the object is no JSON object, or a kept field has another type.
        """
        if self.metadata_only:
            return b"{}"
        try:
            if self.keep is not None:
                return self.keep(raw)
            whole = bytes(raw) if isinstance(raw, msgspec.Raw) else raw
            return _without_managed_fields(whole, bytes((meta or decode_meta(whole)).managed_fields))
        except (ProtocolError, *UNDECODABLE) as error:
            raise ProtocolError(f"cannot keep an object as {self.name}: {reason_of(error)}") from error


@dataclass(frozen=True, slots=True)
class _Fields:
    """A function that keeps the fields of a Struct type; equal to another one of the same type."""

    shape: type[msgspec.Struct]
    decoder: msgspec.json.Decoder[msgspec.Struct] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.shape))

    def __call__(self, raw: bytes | msgspec.Raw) -> bytes:
        return encode_exact(decode(self.decoder, raw))


def _without_managed_fields(whole: bytes, managed: bytes) -> bytes:
    if not managed:
        return whole
    start = whole.find(_FIELD)
    value = start + len(_FIELD)
    if start >= 0 and whole.startswith(managed, value) and whole.count(_FIELD[1:]) == 1:
        # As servers write it. Quotes inside of strings are escaped, so the one place where it stands is the field.
        return whole[:start] + whole[value + len(managed) :]
    top = members(whole)
    metadata = members(top["metadata"])
    del metadata["managedFields"]
    return join_members({**top, "metadata": join_members(metadata)})


_FIELD: Final = b',"managedFields":'

FULL: Final = Projection("full")
METADATA: Final = Projection("metadata", metadata_only=True)
