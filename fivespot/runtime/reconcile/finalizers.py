"""Adding and removing a finalizer without losing concurrent changes or the finalizers of others."""

from __future__ import annotations

from typing import Protocol

from fivespot.runtime.errors import InvalidError, NotFoundError, StaleReadError
from fivespot.runtime.objects import Key, Object, Patch, Resource, finalizer_patch

__all__ = ["Patches", "ensure_finalizer", "remove_finalizer"]


class Patches(Protocol):
    """The client verb used here; :class:`~fivespot.runtime.client.Client` implements it."""

    async def patch(self, resource: Resource, key: Key, patch: Patch, /) -> Object: ...


async def ensure_finalizer(client: Patches, resource: Resource, obj: Object, finalizer: str) -> Object:
    """Add the finalizer unless it is present, and return the object.

    Create nothing on behalf of an object before this has returned. An object that is being deleted cannot get a new
    finalizer (the API server refuses it) and is returned unchanged.

    :raises ConflictError, StaleReadError: the object was changed or replaced; reconcile again with fresh state.
    :raises NotFoundError: it no longer exists.
    """
    patch = finalizer_patch(obj.head, finalizer, present=True)
    if patch is None or obj.head.deleting:
        return obj
    return await _patch(client, resource, obj, patch)


async def remove_finalizer(client: Patches, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """Remove the finalizer and return the object, or None when the object no longer exists afterwards.

    :raises ConflictError, StaleReadError: the object was changed or replaced; reconcile again with fresh state.
    """
    patch = finalizer_patch(obj.head, finalizer, present=False)
    if patch is None:
        return obj
    try:
        left = await _patch(client, resource, obj, patch)
    except NotFoundError:
        return None
    # The answer to a patch that removes the last finalizer still contains the object, which is already deleted.
    return None if left.head.deleting and not left.head.finalizers else left


async def _patch(client: Patches, resource: Resource, obj: Object, patch: Patch) -> Object:
    try:
        return await client.patch(resource, obj.key, patch)
    except InvalidError as error:
        if error.causes:
            # Validation of the result, such as a finalizer without a domain: a retry cannot succeed.
            raise
        # A failed ``test`` of a JSON patch is a 422 without causes.
        raise StaleReadError(f"{error.request}: the object has changed ({error.message})") from error
