"""The metadata of an object, typed and slim."""

from __future__ import annotations

import msgspec

from fivespot.runtime.errors import ProtocolError

from .words import share

__all__ = ["Head", "OwnerReference", "WireMeta", "decode_head", "decode_meta", "head_of", "parse_version"]

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
