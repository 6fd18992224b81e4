"""One copy of each word that stands in thousands of cached objects."""

from __future__ import annotations

import enum
from typing import Any, Final, TypeVar

import msgspec

from fivespot.runtime.errors import ProtocolError

from .resource import Key

__all__ = [
    "Change",
    "ChangeType",
    "Head",
    "Object",
    "OwnerReference",
    "WireMeta",
    "decode_head",
    "decode_meta",
    "head_of",
    "parse_version",
    "share",
]

_LIMIT: Final = 1 << 17

"""Words that are remembered: those of some ten thousand objects. To forget them all costs nothing but sharing."""

_words: dict[str, str] = {}


def share(word: str) -> str:
    """The copy of a word that others hold already, or the word itself.

    Not :func:`sys.intern`: CPython 3.12 never lets go of what it interned, and names are generated without end.
    """
    found = _words.get(word)
    if found is None:
        if len(_words) >= _LIMIT:
            _words.clear()
        found = _words[word] = word
    return found


_NO_LABELS: dict[str, str] = {}


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class Head(msgspec.Struct, frozen=True, gc=False):
    """What the runtime needs to know of an object without decoding its body.

    ``version`` is ``metadata.resourceVersion`` as a number, so that no two versions are ever compared as text.
    """

    namespace: str
    name: str
    uid: str
    version: int
    generation: int = 0
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = _NO_LABELS
    annotations: dict[str, str] = _NO_LABELS
    owners: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference with ``controller: true``, of which the API allows one."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return None


class WireMeta(msgspec.Struct, gc=False, rename="camel"):
    """``metadata`` as it comes over the wire, for decoders that find it inside of something else.

    :ivar managed_fields: what is never kept, as bytes, so that it can be cut out without another look.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Wire(msgspec.Struct, gc=False):
    metadata: WireMeta


_decoder = msgspec.json.Decoder(_Wire)


def parse_version(text: str) -> int:
    """A resourceVersion as a number.

    Versions are decimal, without sign or leading zero, and comparable as numbers (KEP-5504).

    :raises ProtocolError: the text is no such number.
    """
    if not (text.isascii() and text.isdigit()) or (text[0] == "0" and text != "0"):
        raise ProtocolError(f"resourceVersion {text[:64]!r} is not a decimal number without leading zeros")
    return int(text)


def decode_head(raw: bytes | bytearray | memoryview | msgspec.Raw, annotations: frozenset[str] | None = None) -> Head:
    """The head of one JSON object.

    :param annotations: names of the annotations to keep; None keeps all.
    :raises ProtocolError: the JSON has no usable ``metadata``: no name, uid or resourceVersion.
    """
    return head_of(decode_meta(raw), annotations)


def _shared(owner: OwnerReference) -> OwnerReference:
    return OwnerReference(
        share(owner.api_version),
        share(owner.kind),
        share(owner.name),
        share(owner.uid),
        owner.controller,
        owner.block_owner_deletion,
    )


def decode_meta(raw: bytes | bytearray | memoryview | msgspec.Raw) -> WireMeta:
    """The ``metadata`` of one JSON object.

    :raises ProtocolError: it has none that can be read.
    """
    try:
        return _decoder.decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"an object without readable metadata: {error}") from error


def head_of(meta: WireMeta, annotations: frozenset[str] | None = None) -> Head:
    """The head that ``metadata`` says; see :func:`decode_head`."""
    if not meta.name or not meta.uid:
        raise ProtocolError("an object without name or uid")
    labels, kept, finalizers = meta.labels, meta.annotations, meta.finalizers
    # The same words stand in thousands of heads: sharing them saves a quarter of a large cache.
    if labels:
        labels = {name: share(value) for name, value in labels.items()}
    if kept and annotations is not None:
        kept = {name: share(value) for name, value in kept.items() if name in annotations}
    return Head(
        share(meta.namespace),
        share(meta.name),
        meta.uid,
        parse_version(meta.resource_version),
        meta.generation,
        meta.deletion_timestamp,
        tuple(map(share, finalizers)) if finalizers else (),
        labels or _NO_LABELS,
        kept or _NO_LABELS,
        tuple(map(_shared, meta.owner_references)) if meta.owner_references else (),
        meta.creation_timestamp or "",
    )


T = TypeVar("T")


class Object(msgspec.Struct, gc=False, eq=False):
    """Exact JSON bytes plus a typed head.

    The bytes are never decoded unless somebody asks, and every :meth:`decode` makes a private copy, so no
    reader can corrupt what others read.
    """

    raw: bytes
    head: Head

    @classmethod
    def parse(cls, raw: bytes, annotations: frozenset[str] | None = None) -> Object:
        """Read an object from its JSON.

        :raises ProtocolError: it has no usable metadata.
        """
        return cls(raw, decode_head(raw, annotations))

    @property
    def key(self) -> Key:
        return Key(self.head.namespace, self.head.name)

    def decode(self) -> dict[str, Any]:
        """The object as a new dict that the caller owns."""
        value: dict[str, Any] = msgspec.json.decode(self.raw)
        return value

    def decode_as(self, decoder: msgspec.json.Decoder[T]) -> T:
        """The object as a msgspec Struct.

        :raises ProtocolError: a field has another type than the Struct says; the text holds the path.
        """
        try:
            return decoder.decode(self.raw)
        except msgspec.DecodeError as error:
            raise ProtocolError(f"{self.key}: {error}") from error

    def __repr__(self) -> str:
        return f"Object({self.key!s}@{self.head.version})"


class ChangeType(enum.Enum):
    """What happened to an object as one informer sees it (its selector included)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, gc=False, eq=False):
    """One change as handlers, predicates and mappers receive it.

    :param old: the state before, None for ADDED.
    :param object: the state now; for DELETED the last known one.
    :param final_state_unknown: a DELETED that a list or a lost connection revealed, so ``object`` may be older
        than the last state that existed.
    :param own: it comes from the answer to a write of this process, not from the watch.
    """

    type: ChangeType
    object: Object
    old: Object | None = None
    final_state_unknown: bool = False
    own: bool = False
    _body: dict[str, Any] | None = None

    @property
    def key(self) -> Key:
        return self.object.key

    @property
    def head(self) -> Head:
        return self.object.head

    @property
    def body(self) -> dict[str, Any]:
        """The decoded object, decoded at most once for all who share this change. Treat it as read-only."""
        if self._body is None:
            self._body = self.object.decode()
        return self._body

    def __repr__(self) -> str:
        return f"Change({self.type.value} {self.key!s}@{self.head.version})"
