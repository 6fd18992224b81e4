"""Entries of ``spec.overrides`` on the API server: written by server-side apply, one field manager for each name."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from fivespot.providers.sdk import Override
from fivespot.runtime import Client, ConfigError, ConflictError, InvalidError, NotFoundError, json_patch
from fivespot.runtime.errors import BadRequestError
from fivespot.runtime.objects import rfc3339

from .schedule import LiveSchedule, read_schedule

__all__ = ["FIELD_MANAGER", "apply_entry", "client_side_owner", "entry_of", "owners", "remove_entries"]

FIELD_MANAGER: Final = "fivespot-override"
"""Prefix of the field managers; the name of the entry follows, so that no apply removes an entry of another name."""
_ATTEMPTS: Final = 5
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_ITEM_KEY: Final = "k:"


def entry_of(override: Override) -> dict[str, Any]:
    """The entry of ``spec.overrides`` for an override."""
    until = rfc3339(override.until) if isinstance(override.until, datetime) else override.until
    return {
        "name": override.name,
        "active": override.active,
        **({"from": rfc3339(override.begin)} if override.begin is not None else {}),
        "until": until,
        **({"reason": override.reason} if override.reason else {}),
    }


async def apply_entry(client: Client, schedule: LiveSchedule, override: Override, *, dry_run: bool = False) -> None:
    """Add the entry, or replace the one of its name, and leave all others as they are.

    :raises ConfigError: the kind takes no overrides, the entry is invalid, or another field manager owns it.
    """
    resource, key = schedule.resource, schedule.key
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        # The uid keeps the apply from creating a schedule that was deleted meanwhile.
        "metadata": {"name": key.name, "namespace": key.namespace, "uid": schedule.uid},
        "spec": {"overrides": [entry_of(override)]},
    }
    try:
        await client.apply(resource, key, body, field_manager=f"{FIELD_MANAGER}-{override.name}", dry_run=dry_run)
    except ConflictError as error:
        owner = ", ".join(owners(schedule.body).get(override.name, ())) or "another field manager"
        raise ConfigError(
            f"override {override.name} of {schedule.label} is managed by {owner}; choose another --name "
            f"({error.message})"
        ) from error
    except (InvalidError, BadRequestError) as error:
        if ".spec.overrides: field not declared in schema" in error.message:
            raise ConfigError(f"{resource.kind} takes no overrides") from error
        raise ConfigError(f"{schedule.label}: {error.message}") from error


async def remove_entries(client: Client, schedule: LiveSchedule, names: Collection[str]) -> LiveSchedule:
    """Remove entries by name, whoever owns them, and return the schedule as it is then; all others stay.

    Entries are removed by their place in the list, so the patch holds for one version only: where the schedule was
    changed meanwhile, perhaps by its provider's report, it is read again.

    :raises ConfigError: the schedule was deleted, or every attempt met another change.
    """
    for _ in range(_ATTEMPTS):
        operations = _removal(schedule, names)
        if not operations:
            return schedule
        try:
            patched = await client.patch(
                schedule.resource, schedule.key, json_patch(operations), field_manager=FIELD_MANAGER
            )
        except (ConflictError, InvalidError) as error:
            # The server answers a failed test of a JSON patch with 422, as it does an invalid result.
            refusal = error.message
        except NotFoundError as error:
            raise ConfigError(f"{schedule.label} was deleted meanwhile") from error
        else:
            return LiveSchedule(schedule.resource, schedule.key, patched.decode())
        found = await read_schedule(client, schedule.resource, schedule.key)
        if found.uid != schedule.uid:
            raise ConfigError(f"{schedule.label} was deleted and created again meanwhile; nothing was removed")
        if found.version == schedule.version:
            raise ConfigError(f"{schedule.label}: {refusal}")
        schedule = found
    raise ConfigError(f"{schedule.label} changes all the time, nothing was removed; try again ({refusal})")


def _removal(schedule: LiveSchedule, names: Collection[str]) -> list[Mapping[str, Any]]:
    """Operations of a JSON patch that removes the entries from this version of the schedule; none if it has none."""
    entries = schedule.spec.get("overrides") or []
    indices = [i for i, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("name") in names]
    if not indices:
        return []
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": schedule.version}
    if len(indices) == len(entries):
        return [unchanged, {"op": "remove", "path": "/spec/overrides"}]
    return [unchanged, *({"op": "remove", "path": f"/spec/overrides/{index}"} for index in reversed(indices))]


def owners(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Field managers of each entry of ``spec.overrides``, by the entry's name, from ``managedFields``."""
    found: dict[str, set[str]] = {}
    for managed in body["metadata"].get("managedFields") or ():
        fields = ((managed.get("fieldsV1") or {}).get("f:spec") or {}).get("f:overrides") or {}
        for item in fields:
            if item.startswith(_ITEM_KEY):
                name = json.loads(item.removeprefix(_ITEM_KEY)).get("name")
                found.setdefault(str(name), set()).add(str(managed.get("manager", "")))
    return {name: tuple(sorted(managers)) for name, managers in found.items()}


def client_side_owner(body: Mapping[str, Any]) -> bool:
    """Whether a manifest with ``spec.overrides`` is applied on the client's side, which replaces the whole list."""
    try:
        manifest = json.loads((body["metadata"].get("annotations") or {}).get(_LAST_APPLIED) or "{}")
    except ValueError:
        return False
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    return isinstance(spec, dict) and "overrides" in spec
