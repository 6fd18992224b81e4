"""Names of kinds, resources and objects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

__all__ = ["CRDS", "GroupKind", "Key", "Resource", "group_of", "version_of"]

_PLAIN = re.compile("[a-z0-9.-]+").fullmatch


class Key(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-scoped object is ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class GroupKind(NamedTuple):
    """Group and kind, at whatever version it is served; the core group is ""."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Resource:
    """A served resource: the path under which objects of one kind are found at one version.

    :param group: API group, "" for the core group.
    :param version: the served version used in every request.
    :param plural: the path segment; it comes from discovery or from a CRD, never from the kind's spelling.
    :param kind: the kind of one object.
    :param namespaced: whether objects live in namespaces.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """``group/version`` as objects bear it; the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind without the version."""
        return GroupKind(self.group, self.kind)

    @property
    def qualified(self) -> str:
        """``plural.group``: the name of the CRD that defines it, and the label of its metrics."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection_path(self, namespace: str | None = None) -> str:
        """The URL path of the collection, in one namespace or (None) across all."""
        version = _segment(self.version)
        base = f"/apis/{_segment(self.group)}/{version}" if self.group else f"/api/{version}"
        if self.namespaced and namespace:
            return f"{base}/namespaces/{_segment(namespace)}/{self.plural}"
        return f"{base}/{self.plural}"

    def object_path(self, key: Key, subresource: str = "") -> str:
        """The URL path of one object, or of a subresource of it.

        :raises ValueError: a namespaced resource was given a key without a namespace, or an empty name.
        """
        if not key.name or (self.namespaced and not key.namespace):
            raise ValueError(f"{self.qualified} needs a full name, got {key!s}")
        path = f"{self.collection_path(key.namespace or None)}/{_segment(key.name)}"
        return f"{path}/{subresource}" if subresource else path

    def __str__(self) -> str:
        return f"{self.qualified}/{self.version}"


CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
"""The resource of CustomResourceDefinitions."""


def _segment(text: str) -> str:
    # Almost every name is a DNS label or subdomain, which needs no quoting.
    return text if _PLAIN(text) else quote(text, safe="")


def group_of(api_version: str) -> str:
    """Return the group part of ``group/version``; "" for a core version."""
    return api_version.rpartition("/")[0]


def version_of(api_version: str) -> str:
    """Return the version part of ``group/version``."""
    return api_version.rpartition("/")[2]
