"""Checks that act on objects of the kind under test and observe the provider's answers, one for each rule.

A check returns a remark or None, raises ViolationError for a broken rule, and InconclusiveError where it cannot judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fivespot.api.names import LABEL_CLUSTERCTL_MOVE, PROVIDER_GROUP
from fivespot.runtime import InvalidError, Key
from fivespot.runtime.objects import parse_rfc3339, rfc3339

from .harness import FINALIZER, Harness, InconclusiveError, NoVerdictError, ViolationError
from .history import ObjectHistory, Observation, StatusWrite, brief

__all__ = [
    "check_active_required",
    "check_boundary",
    "check_deletion",
    "check_flip",
    "check_foreign_conditions",
    "check_invalid_spec",
    "check_isolation",
    "check_move_label",
    "check_ready",
    "check_recovers",
    "check_recreated",
    "check_restart",
    "check_served",
    "check_status_restored",
    "check_status_subresource",
    "check_steady",
    "check_verdict",
    "check_verdict_held",
    "check_write_loop",
]

_DEFAULTED_KINDS: Final = frozenset({"TimeBasedSpotSchedule", "CapitalMarketsSchedule"})
"""Kinds that keep the default of status.active for compatibility with the existing 5-Spot."""
_SECOND: Final = 1.1
"""Seconds after which a timestamp with whole seconds differs."""
_GRACE: Final = 1.0
"""Seconds after a verdict in which the rest of a report may follow, from providers that write in two steps."""
_LATE: Final = 2.0
"""Seconds by which a flip may miss its boundary."""
_FAR: Final = 30.0
"""Seconds until a boundary beyond which it is not waited for."""
_AFTER_DELETE: Final = 1.5
"""Seconds for which a deleted object is observed."""
_STEADY: Final = 3.0
"""Seconds for which nothing may be written after a change that decides nothing, unless the steady time is shorter."""
_ANNOTATIONS: Final = 5
_INVALID_OBJECTS: Final = 3
_FOREIGN: Final = {
    "type": "example.com/Noticed",
    "status": "True",
    "reason": "Conformance",
    "message": "written by another controller",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


# -- the kind ------------------------------------------------------------------------------------------------------


async def check_served(harness: Harness) -> str:
    resource = harness.resource
    if resource.group != PROVIDER_GROUP:
        raise ViolationError(f"its group is {resource.group}, so no ScheduledMachine can reference it")
    if not resource.namespaced:
        raise ViolationError(f"{resource.kind} is cluster-scoped")
    if harness.definition is None:
        return f"served as {resource}; its CustomResourceDefinition cannot be read"
    conditions = (harness.definition.get("status") or {}).get("conditions") or ()
    states = {entry.get("type"): entry.get("status") for entry in conditions}
    if states.get("Established") != "True":
        raise ViolationError(f"{resource.qualified} is not Established")
    if harness.definition["metadata"].get("deletionTimestamp"):
        raise ViolationError(f"{resource.qualified} is being deleted")
    return f"served as {resource}"


async def check_status_subresource(harness: Harness) -> None:
    for version in _versions(harness):
        if "status" not in (version.get("subresources") or {}):
            raise ViolationError(f"version {version['name']} has no status subresource")


async def check_active_required(harness: Harness) -> str | None:
    note = None
    for version in _versions(harness):
        where = f"status.active of version {version['name']}"
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        status = (schema.get("properties") or {}).get("status") or {}
        if "default" in status:
            raise ViolationError(f"status of version {version['name']} has a default: {status['default']!r}")
        active = (status.get("properties") or {}).get("active")
        if active is None:
            preserved = any(part.get("x-kubernetes-preserve-unknown-fields") for part in (status, schema))
            if not preserved:
                raise ViolationError(f"{where} is not in the schema, so the API server drops it")
            raise ViolationError(f"{where} is not in the schema, so it may be absent or no boolean")
        if active.get("type") != "boolean":
            raise ViolationError(f"{where} has the type {active.get('type')!r} in the schema")
        if "default" in active:
            if harness.resource.kind not in _DEFAULTED_KINDS:
                raise ViolationError(f"{where} has the default {active['default']!r}")
            note = f"{where} keeps its default for compatibility"
        elif "active" not in (status.get("required") or ()):
            raise ViolationError(f"{where} is not required")
    return note


async def check_move_label(harness: Harness) -> None:
    labels = _definition(harness)["metadata"].get("labels") or {}
    if LABEL_CLUSTERCTL_MOVE not in labels and f"{LABEL_CLUSTERCTL_MOVE}-hierarchy" not in labels:
        raise ViolationError(f"the CustomResourceDefinition has no label {LABEL_CLUSTERCTL_MOVE}")


def _definition(harness: Harness) -> Mapping[str, Any]:
    if harness.definition is None:
        raise InconclusiveError("the CustomResourceDefinition cannot be read")
    return harness.definition


def _versions(harness: Harness) -> list[Mapping[str, Any]]:
    return [version for version in _definition(harness)["spec"]["versions"] if version.get("served")]


# -- verdicts ------------------------------------------------------------------------------------------------------


async def check_verdict(harness: Harness) -> None:
    keys = {active: await harness.create(f"verdict-{str(active).lower()}", active=active) for active in (True, False)}
    for active, key in keys.items():
        try:
            seen = await harness.verdict(key, active)
        except NoVerdictError as error:
            written = any(True for _ in harness.record(key).writes())
            hint = "" if written else "is its controller running, and may it patch the status? "
            raise ViolationError(f"{hint}{error}") from None
        if not seen.authoritative:
            ready = (seen.ready or {}).get("status")
            raise ViolationError(f"active is {str(active).lower()}, but Ready is {ready!r}, so it does not count")


async def check_ready(harness: Harness) -> str | None:
    key = await harness.create("ready", active=True)
    await harness.verdict(key, True)
    found = await harness.until(key, lambda seen: seen.ready is None or seen.ready.get("status") == "True")
    if found is None:
        last = harness.record(key).last
        ready = brief(last.ready if last is not None else None)
        raise ViolationError(f"{harness.timing.settle:g} s after a valid spec Ready is {ready}")
    return "there is no condition Ready, so it cannot report an unknown verdict" if found.ready is None else None


async def check_flip(harness: Harness) -> None:
    key = await harness.create("flip", active=True)
    await harness.verdict(key, True)
    for active in (False, True):
        await harness.sleep(_SECOND)
        await harness.edit(key, active=active)
        try:
            await harness.verdict(key, active)
        except NoVerdictError as error:
            state = "active" if active else "inactive"
            raise ViolationError(f"after a change that makes it {state}: {error}") from None


async def check_boundary(harness: Harness) -> str | None:
    if harness.subject.boundary is None:
        raise InconclusiveError("no spec was given that ends within seconds")
    spec, ends = harness.subject.boundary(harness.clock.now())
    ahead = (ends - harness.clock.now()).total_seconds()
    if ahead > _FAR:
        raise InconclusiveError(f"the spec given ends only after {ahead:.0f} s")
    key = await harness.create("boundary", active=True, spec=spec, ends=ends)
    try:
        before = await harness.verdict(key, True)
    except NoVerdictError as error:
        raise InconclusiveError(f"the boundary passed before the first verdict: {error}") from None
    announced = before.status.get("nextTransitionTime")
    seen = await harness.until(key, lambda seen: seen.active is False, max(ahead, 0.0) + harness.timing.settle)
    if seen is None:
        raise ViolationError(f"it did not become inactive at {rfc3339(ends)}; {harness.describe(key)}")
    first = next(state for state in harness.record(key).seen if state.active is False)
    late = (first.wall - ends).total_seconds()
    if abs(late) > _LATE:
        raise ViolationError(f"it became inactive {late:+.1f} s from {rfc3339(ends)}, by the local clock")
    if announced is None:
        return "the boundary was not announced in nextTransitionTime"
    if abs(parse_rfc3339(announced).timestamp() - ends.timestamp()) > 1.0:
        raise ViolationError(f"the boundary at {rfc3339(ends)} was announced as {announced}")
    return f"{late * 1000:.0f} ms after the boundary"


# -- writes --------------------------------------------------------------------------------------------------------


async def check_steady(harness: Harness) -> None:
    keys = [await harness.create(f"steady-{str(active).lower()}", active=active) for active in (True, False)]
    for key, active in zip(keys, (True, False), strict=True):
        await harness.verdict(key, active)
    await harness.sleep(_GRACE)
    since = {key: harness.version(key) for key in keys}
    await harness.sleep(harness.timing.steady)
    written = [write for key in keys for write in harness.record(key).writes(since[key])]
    if written:
        rate = len(written) / harness.timing.steady * 60 / len(keys)
        raise ViolationError(
            f"{len(written)} writes to {len(keys)} objects in {harness.timing.steady:g} s in which nothing changed "
            f"({rate:.0f} a minute each); the last {_describe_write(written[-1])}"
        )


async def check_write_loop(harness: Harness) -> None:
    key = await harness.create("touch", active=True)
    await harness.verdict(key, True)
    await harness.sleep(_GRACE)
    since = await harness.annotate(key)
    await harness.sleep(min(_STEADY, harness.timing.steady))
    written = list(harness.record(key).writes(since))
    if len(written) > 1:
        raise ViolationError(
            f"one change of an annotation was followed by {len(written)} writes, so each causes the next; "
            f"the last {_describe_write(written[-1])}"
        )
    if written:
        raise ViolationError(
            "a change of an annotation, which decides nothing, was followed by a write: "
            f"it {_describe_write(written[0])}"
        )


async def check_foreign_conditions(harness: Harness) -> None:
    key = await harness.create("foreign", active=True)
    seen = await harness.verdict(key, True)
    conditions = seen.status.get("conditions")
    present = list(conditions) if isinstance(conditions, list) else []
    version = await harness.patch_status(key, {"conditions": [*present, _FOREIGN]})
    stored = await harness.recorder.until(key, lambda record: _at(record.seen, version), harness.timing.settle)
    if stored is None or _FOREIGN["type"] not in _condition_types(stored):
        raise InconclusiveError("the API server does not store a condition of another type")
    await harness.quiet(key)
    await harness.sleep(_SECOND)
    await harness.edit(key, active=False)
    await harness.verdict(key, False)
    for write in harness.record(key).writes(version):
        found = [entry for entry in write.after.status.get("conditions") or () if entry.get("type") == _FOREIGN["type"]]
        if not found:
            raise ViolationError("a condition of another controller was lost when the provider wrote its own")
        if dict(found[0]) != _FOREIGN:
            raise ViolationError(f"a condition of another controller was changed to {brief(found[0])}")


async def check_status_restored(harness: Harness) -> None:
    key = await harness.create("lost", active=True)
    await harness.verdict(key, True)
    try:
        # As after a restore from a backup, which has no status.
        lost = await harness.patch_status(key, None)
    except InvalidError as error:
        raise InconclusiveError(f"the API server does not allow a status to be removed: {error.message}") from None
    if await harness.until(key, lambda seen: seen.version > lost and seen.active is True) is None:
        raise ViolationError(f"a lost status is not written again within {harness.timing.settle:g} s")


def _at(seen: Sequence[Observation], version: int) -> Observation | None:
    return next((state for state in seen if state.version == version), None)


def _condition_types(seen: Observation) -> set[object]:
    conditions = seen.status.get("conditions")
    return {entry.get("type") for entry in conditions} if isinstance(conditions, list) else set()


def _describe_write(write: StatusWrite) -> str:
    """Name the fields that a write changed, and its writer."""
    before, after = write.before, write.after
    names = sorted(
        name for name in {*before.status, *after.status} if before.status.get(name) != after.status.get(name)
    )
    who = f" by {after.writer!r}" if after.writer else ""
    if not names:
        return f"changed the metadata or the spec{who}"
    changed = ", ".join(f"status.{name} to {brief(after.status.get(name))}" for name in names)
    return f"changed {changed}{who}"


# -- invalid specs -------------------------------------------------------------------------------------------------


async def check_invalid_spec(harness: Harness) -> str | None:
    if harness.refusal:
        return f"refused at admission: {harness.refusal}"
    _require_invalid_spec(harness)
    key = await harness.create("invalid", active=None)
    seen = await harness.until(key, _is_not_ready)
    if seen is None:
        raise ViolationError(_still_ready(harness, key))
    ready = seen.ready or {}
    if not ready.get("reason") or not ready.get("message"):
        raise ViolationError(f"Ready is False without a reason or a message: {brief(ready)}")
    if seen.active is not False:
        raise ViolationError(f"it never had a verdict, and active is {brief(seen.status.get('active'))}")
    return f"{ready['reason']}: {ready['message']}"


async def check_verdict_held(harness: Harness) -> None:
    _require_invalid_spec(harness)
    key = await harness.create("held", active=True)
    await harness.verdict(key, True)
    await harness.sleep(_SECOND)
    await harness.edit(key, active=None)
    since = harness.record(key).episodes[-1].since
    found = await harness.until(key, _is_not_ready)
    for write in harness.record(key).reports(since):
        if write.after.active is not True:
            value = brief(write.after.status.get("active"))
            raise ViolationError(f"active was true, and an invalid spec changed it to {value}")
    if found is None:
        raise ViolationError(_still_ready(harness, key))


async def check_recovers(harness: Harness) -> None:
    _require_invalid_spec(harness)
    key = await harness.create("mended", active=True)
    await harness.verdict(key, True)
    await harness.edit(key, active=None)
    if await harness.until(key, _is_not_ready) is None:
        raise InconclusiveError("it does not report the invalid spec")
    await harness.sleep(_SECOND)
    await harness.edit(key, active=True)
    if await harness.until(key, lambda seen: seen.active is True and seen.authoritative) is None:
        raise ViolationError(
            f"{harness.timing.settle:g} s after the spec was corrected it is not Ready; {harness.describe(key)}"
        )


async def check_isolation(harness: Harness) -> None:
    _require_invalid_spec(harness)
    good = await harness.create("good", active=True)
    neighbour = await harness.create("neighbour", active=True)
    await harness.verdict(good, True)
    await harness.verdict(neighbour, True)
    since = harness.version(neighbour)
    invalid = [await harness.create(f"broken-{number}", active=None) for number in range(_INVALID_OBJECTS)]
    for _ in range(_ANNOTATIONS):
        for key in invalid:
            await harness.annotate(key)
    await harness.edit(good, active=False)
    try:
        await harness.verdict(good, False)
    except NoVerdictError as error:
        raise ViolationError(f"beside {_INVALID_OBJECTS} objects with an invalid spec: {error}") from None
    written = list(harness.record(neighbour).reports(since))
    if written and written[-1].after.active is not True:
        raise ViolationError(f"events of invalid objects changed another one; {harness.describe(neighbour)}")


def _require_invalid_spec(harness: Harness) -> None:
    if harness.subject.invalid is None:
        raise InconclusiveError("no invalid spec was given")
    if harness.refusal:
        raise InconclusiveError("the invalid spec is refused at admission")


def _is_not_ready(seen: Observation) -> bool:
    return seen.ready is not None and seen.ready.get("status") == "False"


def _still_ready(harness: Harness, key: Key) -> str:
    return f"{harness.timing.settle:g} s after an invalid spec Ready is not False; {harness.describe(key)}"


# -- deletion and restart ------------------------------------------------------------------------------------------


async def check_deletion(harness: Harness) -> None:
    key = await harness.create("deleted", active=True)
    await harness.verdict(key, True)
    await harness.add_finalizer(key)
    await harness.quiet(key)
    since = await harness.delete(key)
    await harness.annotate(key)
    await harness.sleep(_AFTER_DELETE)
    written = list(harness.record(key).reports(since))
    await harness.remove_finalizer(key)
    await _until_deleted(harness, key)
    if written:
        raise ViolationError(f"its status was written {len(written)} times while it was being deleted")
    await harness.sleep(_AFTER_DELETE)
    if harness.record(key).last is not None:
        raise ViolationError("it exists again after it was deleted")


async def check_recreated(harness: Harness) -> None:
    key = await harness.create("again", active=True)
    await harness.verdict(key, True)
    await harness.delete(key)
    await _until_deleted(harness, key)
    await harness.create("again", active=False)
    try:
        await harness.verdict(key, False)
    except NoVerdictError as error:
        raise ViolationError(f"of an object that was deleted and recreated: {error}") from None
    uid = harness.record(key).seen[-1].uid
    stale = [seen for seen in harness.record(key).seen if seen.uid == uid and seen.active is True]
    if stale:
        raise ViolationError("a recreated object got the verdict of the deleted one")


async def check_restart(harness: Harness) -> None:
    if harness.subject.restart is None:
        raise InconclusiveError("no way was given to restart the provider")
    keys: dict[Key, Mapping[str, Any]] = {}
    for active in (True, False):
        key = await harness.create(f"restart-{str(active).lower()}", active=active)
        keys[key] = (await harness.verdict(key, active)).status
    if harness.subject.invalid is not None and not harness.refusal:
        held = await harness.create("restart-held", active=True)
        await harness.verdict(held, True)
        await harness.edit(held, active=None)
        seen = await harness.until(held, lambda seen: not seen.authoritative)
        if seen is not None and seen.active is True:
            keys[held] = seen.status
    since = {key: harness.version(key) for key in keys}
    await harness.subject.restart()
    probe = await harness.create("restart-probe", active=True)
    # The process may take its time; it only has to work again.
    limit = harness.timing.settle * 3
    if await harness.until(probe, lambda seen: seen.active is True, limit) is None:
        raise ViolationError(f"no verdict {limit:g} s after the restart; {harness.describe(probe)}")
    await harness.sleep(min(_STEADY, harness.timing.steady))
    for key, status in keys.items():
        written = list(harness.record(key).writes(since[key]))
        if written:
            raise ViolationError(
                f"{key.name} was written {len(written)} times after the restart although nothing had changed: "
                f"from {brief(status)} to {brief(written[-1].after.status)}"
            )
    first = next(iter(keys))
    await harness.edit(first, active=False)
    try:
        await harness.verdict(first, False)
    except NoVerdictError as error:
        raise ViolationError(f"after the restart: {error}") from None


async def _until_deleted(harness: Harness, key: Key) -> Observation:
    found = await harness.recorder.until(key, _deleted, harness.timing.settle)
    if found is None:
        last = harness.record(key).last
        left = [name for name in (last.metadata.get("finalizers") or () if last else ()) if name != FINALIZER]
        raise ViolationError(
            f"it still exists {harness.timing.settle:g} s after it was deleted"
            + (f", held by the finalizer {', '.join(left)}" if left else "")
        )
    return found


def _deleted(record: ObjectHistory) -> Observation | None:
    return record.seen[-1] if record.seen and record.seen[-1].type == "DELETED" else None
