"""Rules that every history satisfies: pure functions from the history of one object to its violations."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from fivespot.runtime.objects import parse_rfc3339, rfc3339

from .harness import Harness, InconclusiveError, ViolationError
from .history import CLOCK_SKEW, Episode, ObjectHistory, Observation, brief

__all__ = [
    "HistoryCheck",
    "active_in_every_write",
    "check_histories",
    "condition_shape",
    "first_write",
    "flip_once",
    "next_transition",
    "observed_generation",
    "observed_generation_present",
    "spec_untouched",
    "texts",
    "timestamps",
    "transition_time",
]

HistoryCheck: TypeAlias = Callable[[ObjectHistory], Iterator[str]]
"""Yields a description of each violation in the history of one object."""

_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)
_STATES: Final = ("True", "False", "Unknown")
_TEXT_BYTES: Final = 1024
_SHOWN: Final = 2
_SECOND: Final = 1.05


def check_histories(
    history_check: HistoryCheck, *, given: Callable[[Observation], bool] | None = None, missing: str = ""
) -> Callable[[Harness], Awaitable[None]]:
    """Build the check of a rule from the histories of all objects.

    :param given: whether a state has the field that the rule is about; if none has, the rule is inconclusive.
    :param missing: the message then.
    """

    async def check(harness: Harness) -> None:
        records = list(harness.recorder.records.values())
        if not any(True for record in records for _ in record.reports()):
            raise InconclusiveError("the provider wrote no status")
        if given is not None and not any(given(seen) for record in records for seen in record.seen):
            raise InconclusiveError(missing)
        found = [f"{record.key.name}: {problem}" for record in records for problem in history_check(record)]
        if found:
            more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
            raise ViolationError("; ".join(found[:_SHOWN]) + more)

    return check


def active_in_every_write(record: ObjectHistory) -> Iterator[str]:
    for write in record.reports():
        if write.after.status and write.after.active is None:
            yield f"a write left the status without a boolean active: {brief(write.after.status)}"


def first_write(record: ObjectHistory) -> Iterator[str]:
    for seen in record.seen:
        if seen.version in record.ours and seen.type == "ADDED" and seen.status:
            yield f"it was created with the status {brief(seen.status)}, before the provider saw it"
    for write in record.reports():
        episode = record.episode(write.after.version)
        after = write.after
        expected = episode.expected(after) if episode is not None else None
        if write.before.status or expected is None:
            continue
        if after.active is None:
            yield f"the first write of its status holds no verdict: {brief(after.status)}"
        elif after.active is not expected and after.authoritative:
            yield f"the first status write has active {brief(after.active)}, which does not follow from the spec"


def flip_once(record: ObjectHistory) -> Iterator[str]:
    done: set[int] = set()
    for write in record.reports():
        before, after = write.before, write.after
        episode = record.episode(after.version)
        expected = episode.expected(after) if episode is not None else None
        if episode is None or expected is None or before.active is None or after.active is None:
            continue
        if _due(before, after):
            continue
        if before.active is not after.active:
            if after.active is not expected:
                yield (
                    f"active went from {brief(before.active)} to {brief(after.active)} although neither its spec "
                    f"nor its source had changed (a write without active does this if the schema has a default)"
                )
            elif episode.since in done:
                yield f"active became {brief(after.active)} more than once after one change"
            done.add(episode.since)


def transition_time(record: ObjectHistory) -> Iterator[str]:
    first_seen: dict[tuple[str, str], float] = {}
    for seen in record.seen:
        for where, (_, time) in _timed(seen).items():
            first_seen.setdefault((where, brief(time)), seen.at)
    for write in record.reports():
        before, after = _timed(write.before), _timed(write.after)
        for where in before.keys() & after.keys():
            (state, time), (new_state, new_time) = before[where], after[where]
            if state == new_state and time != new_time:
                yield f"{where} changed from {time} to {new_time} while {_named(where)} stayed {brief(state)}"
            elif state != new_state and time == new_time and write.after.at - first_seen[where, brief(time)] > _SECOND:
                yield f"{where} stayed {time} although {_named(where)} became {brief(new_state)}"


def observed_generation(record: ObjectHistory) -> Iterator[str]:
    overtaken: set[int] = set()
    for write in record.reports():
        after = write.after
        observed = after.status.get("observedGeneration")
        if observed is None:
            continue
        if not isinstance(observed, int) or isinstance(observed, bool):
            yield f"observedGeneration is {brief(observed)}"
            continue
        if observed > after.generation:
            yield f"observedGeneration is {observed}, ahead of metadata.generation {after.generation}"
        episode = record.episode(after.version)
        expected = episode.expected(after) if episode is not None else None
        if episode is None or expected is None or not after.authoritative:
            continue
        if _due(write.before, after):
            overtaken.add(episode.since)
        claims = episode.generation == after.generation == observed and episode.since not in overtaken
        if claims and after.active is not expected:
            yield f"observedGeneration is {observed}, but the verdict is that of the generation before it"
    last = record.last
    if last is not None and not last.metadata.get("deletionTimestamp") and len(record.seen) > 1:
        # Every check waits for the verdict after its last change, so the history does not end too early.
        observed = last.status.get("observedGeneration")
        if isinstance(observed, int) and observed < last.generation:
            yield f"observedGeneration stays {observed} at metadata.generation {last.generation}"


def observed_generation_present(record: ObjectHistory) -> Iterator[str]:
    for write in record.reports():
        if write.after.active is not None and write.after.status.get("observedGeneration") is None:
            yield f"a verdict was written without observedGeneration: {brief(write.after.status)}"
            return


def next_transition(record: ObjectHistory) -> Iterator[str]:
    announced: datetime | None = None
    announced_in: Episode | None = None
    for write in record.reports():
        before, after = write.before, write.after
        ends = _instant(after.status.get("nextTransitionTime"))
        if ends is not None and ends < after.wall - CLOCK_SKEW:
            yield f"at {_text(after.wall)} nextTransitionTime was written as {_text(ends)}, which is past"
        episode = record.episode(after.version)
        flipped = before.active is not None and after.active is not None and before.active is not after.active
        # An announcement binds only the episode of the report that made it: an edit may change the verdict at any time.
        if flipped and announced is not None and announced_in == episode and after.wall < announced - CLOCK_SKEW:
            yield f"active flipped at {_text(after.wall)}, although {_text(announced)} was announced"
        announced, announced_in = ends, episode


def condition_shape(record: ObjectHistory) -> Iterator[str]:
    for write in record.reports():
        conditions = write.after.status.get("conditions")
        if conditions is None:
            continue
        if not isinstance(conditions, list):
            yield f"conditions is not a list: {brief(conditions)}"
            continue
        entries = [entry for entry in conditions if isinstance(entry, Mapping)]
        if len(entries) < len(conditions):
            yield f"an entry of conditions is not a condition: {brief(conditions)}"
        yield from _condition_problems(entries)


def texts(record: ObjectHistory) -> Iterator[str]:
    for write in record.reports():
        for where, text in _texts(write.after):
            size = len(text.encode("utf-8", "replace"))
            if size > _TEXT_BYTES:
                yield f"{where} has {size} bytes: {brief(text[:60])}"
            if any(not character.isprintable() for character in text):
                yield f"{where} holds control characters: {brief(text[:60])}"


def timestamps(record: ObjectHistory) -> Iterator[str]:
    for write in record.reports():
        status = write.after.status
        times = {name: value for name, value in status.items() if name.endswith("Time") and value is not None}
        for number, entry in enumerate(_entries(write.after)):
            if entry.get("lastTransitionTime") is not None:
                times[f"conditions[{number}].lastTransitionTime"] = entry["lastTransitionTime"]
        for where, value in times.items():
            if _instant(value) is None:
                yield f"{where} is {brief(value)}"


def spec_untouched(record: ObjectHistory) -> Iterator[str]:
    for write in record.writes():
        before, after = write.before, write.after
        if before.body.get("spec") != after.body.get("spec"):
            yield f"spec was changed to {brief(after.body.get('spec'))}"
        for field in ("labels", "annotations", "ownerReferences"):
            if (before.metadata.get(field) or None) != (after.metadata.get(field) or None):
                yield f"metadata.{field} was changed to {brief(after.metadata.get(field))}"


def _due(before: Observation, after: Observation) -> bool:
    """Whether a flip came at the instant that was announced for it."""
    announced = _instant(before.status.get("nextTransitionTime"))
    return announced is not None and after.active is not before.active and after.wall >= announced - CLOCK_SKEW


def _timed(seen: Observation) -> dict[str, tuple[object, object]]:
    """Map the name of each transition time to its state and time."""
    found: dict[str, tuple[object, object]] = {}
    if seen.active is not None and seen.status.get("lastTransitionTime"):
        found["status.lastTransitionTime"] = (seen.active, seen.status["lastTransitionTime"])
    ready = seen.ready
    if ready is not None and ready.get("lastTransitionTime"):
        found["the lastTransitionTime of Ready"] = (ready.get("status"), ready["lastTransitionTime"])
    return found


def _named(where: str) -> str:
    return "active" if where.startswith("status") else "Ready"


def _condition_problems(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    types = [entry.get("type") for entry in entries]
    for kind in sorted({str(kind) for kind in types if types.count(kind) > 1}):
        yield f"there is more than one condition {kind}"
    for entry in entries:
        if not isinstance(entry.get("type"), str) or not entry["type"]:
            yield f"a condition without a type: {brief(entry)}"
        elif entry.get("status") not in _STATES:
            yield f"condition {entry['type']} has the status {brief(entry.get('status'))}"
        elif entry.get("reason") and not _REASON.fullmatch(str(entry["reason"])):
            yield f"condition {entry['type']} has the reason {brief(entry['reason'])}, which is not one CamelCase word"


def _entries(seen: Observation) -> list[Mapping[str, Any]]:
    conditions = seen.status.get("conditions")
    return [entry for entry in conditions if isinstance(entry, Mapping)] if isinstance(conditions, list) else []


def _texts(seen: Observation) -> Iterator[tuple[str, str]]:
    for entry in _entries(seen):
        for field in ("reason", "message"):
            if isinstance(entry.get(field), str):
                yield f"the {field} of condition {entry.get('type')}", entry[field]


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        return None
    try:
        return parse_rfc3339(value)
    except ValueError:
        return None


def _text(instant: datetime) -> str:
    return rfc3339(instant)
