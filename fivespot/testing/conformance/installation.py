"""Installs a kind for a run, and removes it again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from fivespot.runtime import CRDS, Client, Clock, ConfigError, Discovery, Key, NotFoundError, Resource, find_condition
from fivespot.runtime.errors import KindNotServedError, NotServedError

__all__ = ["SERVED_LIMIT", "apply_definition", "remove_definition"]

SERVED_LIMIT: Final = 30.0
"""Seconds within which an installed kind has to be served."""
_POLL: Final = 0.1


async def apply_definition(client: Client, clock: Clock, resource: Resource, definition: Mapping[str, Any]) -> bool:
    """Install a definition and wait until the kind is served; returns whether it existed before.

    :raises ConfigError: it is not served in time.
    """
    key = Key("", resource.qualified)
    before = True
    try:
        await client.get(CRDS, key, metadata_only=True)
    except NotFoundError:
        before = False
    await client.apply(CRDS, key, definition, force=True)
    deadline = clock.monotonic() + SERVED_LIMIT
    while clock.monotonic() < deadline:
        conditions = ((await client.get(CRDS, key)).decode().get("status") or {}).get("conditions")
        established = find_condition(conditions, "Established")
        if established is not None and established.get("status") == "True":
            try:
                # Discovery and the request handlers follow a moment later, independently.
                await client.page(resource, limit=1, metadata_only=True)
                await Discovery(client).resource(resource.group_kind)
                return before
            except (NotServedError, KindNotServedError):
                pass
        await asyncio.sleep(_POLL)
    raise ConfigError(f"{resource.kind} is not served {SERVED_LIMIT:g} s after its definition was installed")


async def remove_definition(client: Client, resource: Resource) -> None:
    """Remove a definition, and with it every object of the kind."""
    key = Key("", resource.qualified)
    try:
        obj = await client.get(CRDS, key, metadata_only=True)
        await client.delete(CRDS, key, uid=obj.head.uid)
    except NotFoundError:
        return
