"""Rules about a provider that has nothing to complain of: verdicts, flips, quiet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fivespot.runtime.errors import InvalidError
from fivespot.runtime.objects import Key

from .harness import NoVerdictError, Rig, UnjudgedError, ViolationError
from .history import Observation, Write, brief

__all__ = [
    "answers_once",
    "decides",
    "flips",
    "flips_at_the_boundary",
    "is_ready",
    "is_steady",
    "keeps_foreign_conditions",
    "puts_right",
]

SECOND = 1.1
"""Until a time stamp of whole seconds is another one."""

_GRACE = 1.0
"""Seconds after a verdict in which the rest of a report may follow, as from providers that write in two steps."""

_LATE = 2.0
_FAR = 30.0
_NOTICED = {
    "type": "example.com/Noticed",
    "status": "True",
    "reason": "Conformance",
    "message": "written by another controller",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def decides(rig: Rig) -> None:
    keys = {active: await rig.create(f"verdict-{str(active).lower()}", active=active) for active in (True, False)}
    for active, key in keys.items():
        try:
            seen = await rig.settled(key, active)
        except NoVerdictError as error:
            nothing = "is its controller running, and may it patch the status? " if not _told(rig, key) else ""
            raise ViolationError(f"{nothing}{error}") from None
        if not seen.authoritative:
            ready = (seen.ready or {}).get("status")
            raise ViolationError(f"active is {str(active).lower()}, but Ready is {ready!r}, so it does not count")


async def is_ready(rig: Rig) -> str | None:
    key = await rig.create("ready", active=True)
    await rig.settled(key, True)
    found = await rig.until(key, lambda seen: seen.ready is None or seen.ready.get("status") == "True")
    if found is None:
        raise ViolationError(f"{rig.timing.settle:g} s after a valid spec Ready is {brief(_ready(rig, key))}")
    return "there is no condition Ready, so it can never say that it has no verdict" if found.ready is None else None


async def flips(rig: Rig) -> None:
    key = await rig.create("flip", active=True)
    await rig.settled(key, True)
    for active in (False, True):
        await rig.pause(SECOND)
        await rig.edit(key, active=active)
        try:
            await rig.settled(key, active)
        except NoVerdictError as error:
            raise ViolationError(
                f"after a change that makes it {'active' if active else 'inactive'}: {error}"
            ) from None


async def is_steady(rig: Rig) -> None:
    keys = [await rig.create(f"steady-{str(active).lower()}", active=active) for active in (True, False)]
    for key, active in zip(keys, (True, False), strict=True):
        await rig.settled(key, active)
    await rig.pause(_GRACE)
    since = {key: rig.version(key) for key in keys}
    await rig.pause(rig.timing.steady)
    written = [write for key in keys for write in rig.record(key).writes(since[key])]
    if written:
        rate = len(written) / rig.timing.steady * 60 / len(keys)
        raise ViolationError(
            f"{len(written)} writes to {len(keys)} objects in {rig.timing.steady:g} s in which nothing changed "
            f"({rate:.0f} a minute each); the last {_what(written[-1])}"
        )


async def answers_once(rig: Rig) -> None:
    key = await rig.create("touch", active=True)
    await rig.settled(key, True)
    await rig.pause(_GRACE)
    since = await rig.touch(key)
    await rig.pause(min(3.0, rig.timing.steady))
    written = list(rig.record(key).writes(since))
    if len(written) > 1:
        raise ViolationError(
            f"one change of an annotation was followed by {len(written)} writes, so each is the cause of the next; "
            f"the last {_what(written[-1])}"
        )
    if written:
        raise ViolationError(
            f"a change of an annotation, which decides nothing, was answered by a write: it {_what(written[0])}"
        )


async def keeps_foreign_conditions(rig: Rig) -> None:
    key = await rig.create("foreign", active=True)
    seen = await rig.settled(key, True)
    conditions = seen.status.get("conditions")
    present = list(conditions) if isinstance(conditions, list) else []
    version = await rig.patch_status(key, {"conditions": [*present, _NOTICED]})
    stored = await rig.recorder.until(key, lambda record: _at(record.seen, version), rig.timing.settle)
    if stored is None or _NOTICED["type"] not in _types(stored):
        raise UnjudgedError("the API server does not store a condition of another type")
    await rig.calm(key)
    await rig.pause(SECOND)
    await rig.edit(key, active=False)
    await rig.settled(key, False)
    for write in rig.record(key).writes(version):
        found = [entry for entry in write.after.status.get("conditions") or () if entry.get("type") == _NOTICED["type"]]
        if not found:
            raise ViolationError("a condition of another controller was lost when the provider wrote its own")
        if dict(found[0]) != _NOTICED:
            raise ViolationError(f"a condition of another controller was changed to {brief(found[0])}")


async def puts_right(rig: Rig) -> None:
    key = await rig.create("lost", active=True)
    await rig.settled(key, True)
    try:
        # As a restore from a backup would, which has no status to bring back.
        lost = await rig.patch_status(key, None)
    except InvalidError as error:
        raise UnjudgedError(f"the API server does not let a status be lost: {error.message}") from None
    if await rig.until(key, lambda seen: seen.version > lost and seen.active is True) is None:
        raise ViolationError(f"a status that was lost is not there again within {rig.timing.settle:g} s")


async def flips_at_the_boundary(rig: Rig) -> str | None:
    if rig.subject.soon is None:
        raise UnjudgedError("no spec was given that ends within seconds")
    spec, ends = rig.subject.soon(rig.clock.now())
    ahead = (ends - rig.clock.now()).total_seconds()
    if ahead > _FAR:
        raise UnjudgedError(f"the spec given ends only after {ahead:.0f} s")
    key = await rig.create("boundary", active=True, spec=spec)
    before = await rig.settled(key, True)
    announced = before.status.get("nextTransitionTime")
    # From here on the verdict follows from the clock.
    rig.record(key).episodes.clear()
    seen = await rig.until(key, lambda seen: seen.active is False, max(ahead, 0.0) + rig.timing.settle)
    if seen is None:
        raise ViolationError(f"it was to become inactive at {ends.isoformat()} and did not; {rig.describe(key)}")
    first = next(state for state in rig.record(key).seen if state.active is False)
    late = (first.wall - ends).total_seconds()
    if late < -_LATE or late > _LATE:
        raise ViolationError(
            f"it was to become inactive at {ends.isoformat()} and did {late:+.1f} s from then, by the clock here"
        )
    if announced is None:
        return "the boundary was not announced in nextTransitionTime"
    if abs(datetime.fromisoformat(announced).timestamp() - ends.timestamp()) > 1.0:
        raise ViolationError(f"the boundary at {ends.isoformat()} was announced as {announced}")
    return f"{late * 1000:.0f} ms after the boundary"


def _told(rig: Rig, key: Key) -> bool:
    return any(True for _ in rig.record(key).writes())


def _ready(rig: Rig, key: Key) -> object:
    last = rig.record(key).last
    return last.ready if last is not None else None


def _at(seen: Sequence[Observation], version: int) -> Observation | None:
    return next((state for state in seen if state.version == version), None)


def _types(seen: Observation) -> set[object]:
    conditions = seen.status.get("conditions")
    return {entry.get("type") for entry in conditions} if isinstance(conditions, list) else set()


def _what(write: Write) -> str:
    """What a write changed, and who wrote it."""
    before, after = write.before, write.after
    names = sorted(
        name for name in {*before.status, *after.status} if before.status.get(name) != after.status.get(name)
    )
    who = f" by {after.writer!r}" if after.writer else ""
    if not names:
        return f"changed the metadata or the spec{who}"
    changed = ", ".join(f"status.{name} to {brief(after.status.get(name))}" for name in names)
    return f"changed {changed}{who}"
