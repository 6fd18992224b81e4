"""Rules about specs that cannot be followed."""

from __future__ import annotations

from fivespot.runtime.objects import Key

from .checks_live import SECOND
from .harness import NoVerdictError, Rig, UnjudgedError, ViolationError
from .history import Observation, brief

__all__ = ["harms_no_other", "holds_its_verdict", "recovers", "says_what_is_wrong"]

_POKES = 5
_BROKEN = 3


def _is_broken(seen: Observation) -> bool:
    return seen.ready is not None and seen.ready.get("status") == "False"


def _admitted(rig: Rig) -> None:
    if rig.subject.invalid is None:
        raise UnjudgedError("no invalid spec was given")
    if rig.refusal:
        raise UnjudgedError("the invalid spec is refused at admission already")


async def says_what_is_wrong(rig: Rig) -> str | None:
    if rig.refusal:
        return f"refused at admission: {rig.refusal}"
    _admitted(rig)
    key = await rig.create("invalid", active=None)
    seen = await rig.until(key, _is_broken)
    if seen is None:
        raise ViolationError(f"{rig.timing.settle:g} s after an invalid spec Ready is not False; {rig.describe(key)}")
    ready = seen.ready or {}
    if not ready.get("reason") or not ready.get("message"):
        raise ViolationError(f"Ready is False without a reason or a message: {brief(ready)}")
    if seen.active is not False:
        raise ViolationError(f"it never had a verdict, and active is {brief(seen.status.get('active'))}")
    return f"{ready['reason']}: {ready['message']}"


async def holds_its_verdict(rig: Rig) -> None:
    _admitted(rig)
    key = await rig.create("held", active=True)
    await rig.settled(key, True)
    await rig.pause(SECOND)
    await rig.edit(key, active=None)
    since = rig.record(key).episodes[-1].since
    found = await rig.until(key, _is_broken)
    for write in rig.record(key).reports(since):
        if write.after.active is not True:
            raise ViolationError(
                f"active was true, and a spec that cannot be followed made it {brief(write.after.status.get('active'))}"
            )
    if found is None:
        raise ViolationError(f"{rig.timing.settle:g} s after an invalid spec Ready is not False; {rig.describe(key)}")


async def recovers(rig: Rig) -> None:
    _admitted(rig)
    key = await rig.create("mended", active=True)
    await rig.settled(key, True)
    await rig.edit(key, active=None)
    if await rig.until(key, _is_broken) is None:
        raise UnjudgedError("it never says that the spec is invalid")
    await rig.pause(SECOND)
    await rig.edit(key, active=True)
    if await rig.until(key, lambda seen: seen.active is True and seen.authoritative) is None:
        raise ViolationError(f"{rig.timing.settle:g} s after the spec was mended it is not Ready; {rig.describe(key)}")


async def harms_no_other(rig: Rig) -> None:
    _admitted(rig)
    good = await rig.create("good", active=True)
    neighbour = await rig.create("neighbour", active=True)
    await rig.settled(good, True)
    await rig.settled(neighbour, True)
    since = rig.version(neighbour)
    broken = [await rig.create(f"broken-{number}", active=None) for number in range(_BROKEN)]
    for _ in range(_POKES):
        for key in broken:
            await rig.touch(key)
    await rig.edit(good, active=False)
    try:
        await rig.settled(good, False)
    except NoVerdictError as error:
        raise ViolationError(f"with {_BROKEN} objects beside it that have an invalid spec: {error}") from None
    _untouched(rig, neighbour, since)


def _untouched(rig: Rig, key: Key, since: int) -> None:
    written = list(rig.record(key).reports(since))
    if written and written[-1].after.active is not True:
        raise ViolationError(f"events of broken objects changed another one; {rig.describe(key)}")
