"""Finalizers, added and removed so that those of others and concurrent changes are safe."""

from __future__ import annotations

from typing import Protocol

from fivespot.runtime.errors import ConflictError, InvalidError, NotFoundError
from fivespot.runtime.objects import Key, Object, Patch, Resource, finalizer_patch

__all__ = ["Patches", "ensure_finalizer", "remove_finalizer"]


class Patches(Protocol):
    """The one verb that is needed here; :class:`~fivespot.runtime.client.Client` has it."""

    async def patch(self, resource: Resource, key: Key, patch: Patch, /) -> Object: ...


async def ensure_finalizer(client: Patches, resource: Resource, obj: Object, finalizer: str) -> Object:
    """The object with the finalizer on it: as it is if it has it, or as the server answered.

    Nothing outside may be created for an object before this returned. An object that is being deleted can take no new
    finalizer (the API server refuses it) and is returned as it is.

    :raises ConflictError: the object has changed or is another one by now; run again with a fresh state.
    :raises NotFoundError: it is gone.
    """
    patch = finalizer_patch(obj.head, finalizer, present=True)
    if patch is None or obj.head.deleting:
        return obj
    return await _patch(client, resource, obj, patch)


async def remove_finalizer(client: Patches, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """The object without the finalizer, or None when the object is gone, before or because of this.

    :raises ConflictError: the object has changed or is another one by now; run again with a fresh state.
    """
    patch = finalizer_patch(obj.head, finalizer, present=False)
    if patch is None:
        return obj
    try:
        left = await _patch(client, resource, obj, patch)
    except NotFoundError:
        return None
    # The answer to a patch that takes the last finalizer off a deleting object shows it once more; it is gone.
    return None if left.head.deleting and not left.head.finalizers else left


async def _patch(client: Patches, resource: Resource, obj: Object, patch: Patch) -> Object:
    try:
        return await client.patch(resource, obj.key, patch)
    except InvalidError as error:
        if error.causes:
            # Validation of the result, such as a finalizer without a domain: repeating cannot help.
            raise
        # A failed ``test`` of a JSON patch is a 422 without causes.
        raise ConflictError(
            409, "Conflict", f"the object has changed ({error.message})", request=error.request
        ) from error
