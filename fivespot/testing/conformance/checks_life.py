"""Rules about the end of objects, and of the provider's process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fivespot.runtime.objects import Key

from .harness import HOLD, NoVerdictError, Rig, UnjudgedError, ViolationError
from .history import ObjectHistory, Observation, brief

__all__ = ["lets_go", "starts_anew", "survives_a_restart"]

_AFTER = 1.5
"""Seconds for which a deleted object is looked at."""


async def lets_go(rig: Rig) -> None:
    key = await rig.create("deleted", active=True)
    await rig.settled(key, True)
    await rig.hold(key)
    await rig.calm(key)
    since = await rig.delete(key)
    await rig.touch(key)
    await rig.pause(_AFTER)
    written = list(rig.record(key).reports(since))
    await rig.release(key)
    await _gone(rig, key)
    if written:
        raise ViolationError(f"its status was written {len(written)} times while it was being deleted")
    await rig.pause(_AFTER)
    if rig.record(key).last is not None:
        raise ViolationError("it is there again after it was deleted")


async def starts_anew(rig: Rig) -> None:
    key = await rig.create("again", active=True)
    await rig.settled(key, True)
    await rig.delete(key)
    await _gone(rig, key)
    await rig.create("again", active=False)
    try:
        await rig.settled(key, False)
    except NoVerdictError as error:
        raise ViolationError(f"of an object that was deleted and made again: {error}") from None
    uid = rig.record(key).seen[-1].uid
    stale = [seen for seen in rig.record(key).seen if seen.uid == uid and seen.active is True]
    if stale:
        raise ViolationError("an object that was made again got the verdict of the one before it")


async def survives_a_restart(rig: Rig) -> None:
    if rig.subject.restart is None:
        raise UnjudgedError("no way was given to restart the provider")
    keys: dict[Key, Mapping[str, Any]] = {}
    for active in (True, False):
        key = await rig.create(f"restart-{str(active).lower()}", active=active)
        keys[key] = (await rig.settled(key, active)).status
    if rig.subject.invalid is not None and not rig.refusal:
        held = await rig.create("restart-held", active=True)
        await rig.settled(held, True)
        await rig.edit(held, active=None)
        seen = await rig.until(held, lambda seen: not seen.authoritative)
        if seen is not None and seen.active is True:
            keys[held] = seen.status
    since = {key: rig.version(key) for key in keys}
    await rig.subject.restart()
    probe = await rig.create("restart-probe", active=True)
    # The process may take its time; what is asked is only that it works again.
    if await rig.until(probe, lambda seen: seen.active is True, rig.timing.settle * 3) is None:
        raise ViolationError(f"no verdict {rig.timing.settle * 3:g} s after the restart; {rig.describe(probe)}")
    await rig.pause(min(3.0, rig.timing.steady))
    for key, status in keys.items():
        written = list(rig.record(key).writes(since[key]))
        if written:
            raise ViolationError(
                f"{key.name} was written {len(written)} times after the restart although nothing had changed: "
                f"from {brief(status)} to {brief(written[-1].after.status)}"
            )
    first = next(iter(keys))
    await rig.edit(first, active=False)
    try:
        await rig.settled(first, False)
    except NoVerdictError as error:
        raise ViolationError(f"after the restart: {error}") from None


async def _gone(rig: Rig, key: Key) -> Observation:
    found = await rig.recorder.until(key, _ending, rig.timing.settle)
    if found is None:
        last = rig.record(key).last
        left = [name for name in (last.metadata.get("finalizers") or () if last else ()) if name != HOLD]
        raise ViolationError(
            f"it is still there {rig.timing.settle:g} s after it was deleted"
            + (f", held by the finalizer {', '.join(left)}" if left else "")
        )
    return found


def _ending(record: ObjectHistory) -> Observation | None:
    return record.seen[-1] if record.seen and record.seen[-1].type == "DELETED" else None
