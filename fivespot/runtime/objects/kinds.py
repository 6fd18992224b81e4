"""The state of a kind: how CustomResourceDefinitions define it, that none does, or that this is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fivespot.runtime.errors import KindNotServedError

from .resource import Resource

__all__ = ["KindAbsent", "KindState", "KindUnknown"]


@dataclass(frozen=True, slots=True)
class KindState:
    """A kind as its CustomResourceDefinition defines it.

    :param crd_name: ``plural.group``.
    :param established: the API server accepted the names and serves the kind (condition Established).
    :param deleting: the definition, and with it every object, is being deleted.
    :param served: served versions in Kubernetes version priority, newest first.
    :param storage: the version that objects are stored in.
    :param version: resourceVersion of the definition these facts were read from; no part of equality.
    """

    group: str
    kind: str
    plural: str
    crd_name: str
    namespaced: bool
    established: bool
    deleting: bool
    served: tuple[str, ...]
    storage: str
    labels: Mapping[str, str] = field(hash=False)
    uid: str
    version: int = field(compare=False)

    @property
    def usable(self) -> bool:
        """Whether objects of it can be read."""
        return self.established and not self.deleting and bool(self.served)

    @property
    def unusable_reason(self) -> str:
        """The first requirement on an installed, namespaced kind that it misses; "" if none."""
        if self.deleting:
            return "is being deleted"
        if not self.established:
            return "is not established"
        if not self.served:
            return "serves no version"
        if not self.namespaced:
            return "is not namespaced"
        return ""

    def resource(self, version: str | None = None) -> Resource:
        """The resource under which its objects are found.

        :param version: a served version; by default the storage version, which needs no conversion, or else the
            first served one.
        :raises KindNotServedError: that version, or any, is not served.
        """
        if version is None:
            version = self.storage if self.storage in self.served else next(iter(self.served), "")
        if version not in self.served:
            raise KindNotServedError(f"{self.crd_name} does not serve version {version or '(any)'}")
        return Resource(self.group, version, self.plural, self.kind, self.namespaced)


@dataclass(frozen=True, slots=True)
class KindAbsent:
    """The definitions of the group are known, and none defines the kind."""


@dataclass(frozen=True, slots=True)
class KindUnknown:
    """The definitions cannot be read, so that neither presence nor absence is known.

    :param why: for people.
    """

    why: str
