"""Objects as the cache keeps them: exact JSON bytes plus a typed head, and the changes between them."""

from __future__ import annotations

import enum
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from fivespot.runtime.errors import ProtocolError, UndecodableObjectError

from .resource import Key, Resource
from .wire import Json, OwnerReference, WireMeta, decode, decode_meta, parse_version, reason_of

__all__ = [
    "Change",
    "ChangeType",
    "Head",
    "Object",
    "Write",
    "current_writer",
    "decode_head",
    "head_of",
    "owner_reference",
    "share",
]

T = TypeVar("T")

_SHARED_WORDS: Final = 1 << 17
"""Words that are remembered: those of some ten thousand objects. To forget them all costs nothing but sharing."""

_words: dict[str, str] = {}
_NO_LABELS: dict[str, str] = {}


def share(word: str) -> str:
    """Return the copy of a word that others hold already, or the word itself.

    Not :func:`sys.intern`: CPython 3.12 never lets go of what it interned, and names are generated without end.
    """
    found = _words.get(word)
    if found is None:
        if len(_words) >= _SHARED_WORDS:
            _words.clear()
        found = _words[word] = word
    return found


class Head(msgspec.Struct, frozen=True, gc=False):
    """Everything the runtime needs to know of an object without decoding its body.

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
        """Whether the object has a deletionTimestamp."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference with ``controller: true``, of which the API allows one."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return None


def decode_head(raw: Json, annotations: frozenset[str] | None = None) -> Head:
    """Decode the head of one JSON object.

    :param annotations: names of the annotations to keep; None keeps all.
    :raises UndecodableObjectError: the JSON has no usable ``metadata``: no name, uid or resourceVersion.
    """
    return head_of(decode_meta(raw), annotations)


def head_of(meta: WireMeta, annotations: frozenset[str] | None = None) -> Head:
    """Make the head that ``metadata`` describes; see :func:`decode_head`."""
    if not meta.name or not meta.uid:
        raise UndecodableObjectError("an object without name or uid", namespace=meta.namespace, name=meta.name)
    try:
        version = parse_version(meta.resource_version)
    except ProtocolError as error:
        raise UndecodableObjectError(f"an object whose {error}", namespace=meta.namespace, name=meta.name) from error
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
        version,
        meta.generation,
        meta.deletion_timestamp,
        tuple(map(share, finalizers)) if finalizers else (),
        labels or _NO_LABELS,
        kept or _NO_LABELS,
        tuple(map(_shared, meta.owner_references)) if meta.owner_references else (),
        meta.creation_timestamp or "",
    )


def _shared(owner: OwnerReference) -> OwnerReference:
    return OwnerReference(
        share(owner.api_version),
        share(owner.kind),
        share(owner.name),
        share(owner.uid),
        owner.controller,
        owner.block_owner_deletion,
    )


class Object(msgspec.Struct, gc=False, eq=False):
    """Exact JSON bytes plus a typed head.

    The bytes are never decoded unless somebody asks, and every :meth:`decode` makes a private copy, so no
    reader can corrupt what others read.
    """

    raw: bytes
    head: Head

    @classmethod
    def parse(cls, raw: bytes, annotations: frozenset[str] | None = None) -> Object:
        """Make an object of its JSON.

        :raises UndecodableObjectError: it has no usable metadata.
        """
        return cls(raw, decode_head(raw, annotations))

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.head.namespace, self.head.name)

    def decode(self) -> dict[str, Any]:
        """Decode the object into a new dict that the caller owns.

        :raises ProtocolError: it is nested too deeply, or holds what Python cannot represent.
        """
        return self.decode_as(_any_decoder)

    def decode_as(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Decode the object with a decoder that the caller keeps: the fastest way.

        :raises ProtocolError: a field has another type than the decoder's says; the text holds its path.
        """
        try:
            return decode(decoder, self.raw)
        except ProtocolError as error:
            raise ProtocolError(f"{self.key}: {error}") from error

    def read(self, model: type[T]) -> T:
        """Read the object as a type: a msgspec Struct, dataclass or TypedDict, or a pydantic model.

        ::

            class Spec(msgspec.Struct):
                size: int

            class Fleet(msgspec.Struct):
                spec: Spec

            size = obj.read(Fleet).spec.size

        :raises ProtocolError: a field is missing or has another type; the text holds its path.
        """
        validate = getattr(model, "model_validate_json", None)
        if validate is None:
            decoder: msgspec.json.Decoder[T] = _decoder_of(cast("Any", model))
            return self.decode_as(decoder)
        try:
            found: T = validate(self.raw)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"{self.key}: {reason_of(error)}") from error
        return found

    def __repr__(self) -> str:
        return f"Object({self.key!s}@{self.head.version})"


_any_decoder = msgspec.json.Decoder(dict[str, Any])


@lru_cache(maxsize=256)
def _decoder_of(model: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(model)


def owner_reference(
    resource: Resource, owner: Object | Head, *, controller: bool = True, block: bool = True
) -> dict[str, Any]:
    """Make the entry of ``metadata.ownerReferences`` that names an object as the owner of another one.

    The owner has to live in the namespace of what it owns, or be cluster-scoped: otherwise Kubernetes deletes the
    dependant.

    :param resource: of the owner.
    :param controller: the owner manages the other object; only one owner may.
    :param block: a foreground deletion of the owner waits for the other object to be deleted.
    """
    head = owner.head if isinstance(owner, Object) else owner
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": head.name,
        "uid": head.uid,
        "controller": controller,
        "blockOwnerDeletion": block,
    }


current_writer: ContextVar[str] = ContextVar("current_writer", default="")
"""The name of the controller whose run this is; "" outside of one."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """The circumstances of a write of this process.

    :param writer: the controller whose run sent it; "" outside of one.
    :param demanded: the resourceVersion that the object had to have; 0 for a create, which demands that there is no
        object; None if the write applied to whatever state it found.
    """

    writer: str = ""
    demanded: int | None = None


class ChangeType(enum.Enum):
    """The type of a change as one informer sees it (its selector included)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, gc=False, eq=False):
    """One change as handlers, predicates and mappers receive it.

    :param old: the state before, None for ADDED.
    :param object: the state after it; for DELETED the last known one.
    :param final_state_unknown: a DELETED that a list or a lost connection revealed, so ``object`` may be older
        than the last state that existed.
    :param own: it comes from the answer to a write of this process, not from the watch.
    :param writer: the controller that made the write, if the write demanded the version of ``old`` and so cannot bring
        a change of anybody else along; "" otherwise.
    :param initial: the object existed before the handler was registered, or was in the first list.
    """

    type: ChangeType
    object: Object
    old: Object | None = None
    final_state_unknown: bool = False
    own: bool = False
    writer: str = ""
    initial: bool = False
    _body: dict[str, Any] | None = None

    @property
    def key(self) -> Key:
        """Namespace and name of the object."""
        return self.object.key

    @property
    def head(self) -> Head:
        """The head of the object."""
        return self.object.head

    @property
    def body(self) -> dict[str, Any]:
        """The decoded object, decoded at most once for all who share this change. Treat it as read-only."""
        if self._body is None:
            self._body = self.object.decode()
        return self._body

    def __repr__(self) -> str:
        return f"Change({self.type.value} {self.key!s}@{self.head.version})"
