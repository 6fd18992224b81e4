"""Overrides: decisions of people for a time, over the verdict of the schedule itself. Pure.

Each run combines ``spec.overrides``, the records in ``status.overrides`` and the schedule's own verdict into the
verdict in force, new records, and events. The rules:

1. An override starts at its ``from``, or when it is first seen; one with another ``active`` or ``from`` under the same
   name is another override. An override whose record is lost is seen for the first time again.
2. It ends at its ``until``: an instant, never (``forever``), or the schedule's next change after the start
   (``nextTransition``), which is fixed then. Where the schedule never changes that is never. Where the schedule cannot
   tell in advance, it is the first change that is seen.
3. Of those that have started and not ended, the one that started last decides; of several, the last by name.
4. A final verdict, such as that of a disabled schedule, is not overridden.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

from .verdict import EventNote, Verdict

__all__ = [
    "OVERRIDDEN",
    "OVERRIDE_STARTED",
    "Override",
    "OverrideOutcome",
    "OverrideRecord",
    "OverrideState",
    "Rule",
    "Until",
    "apply_overrides",
]

OVERRIDDEN: Final = "Overridden"
"""Reason of condition Ready while an override decides."""

OVERRIDE_STARTED: Final = "OverrideStarted"
"""Reason of the event about an override that begins. The second word of its token is the override's name."""

_SPARE_STEPS: Final = 64
"""Spare steps, for a rule whose ``until`` is sooner than its next change."""

Until: TypeAlias = datetime | Literal["nextTransition", "forever"]
Rule: TypeAlias = Callable[[datetime], Verdict]
"""The verdict of the schedule itself at an instant, as far as is known now."""


class OverrideState(enum.StrEnum):
    PENDING = "Pending"
    IN_FORCE = "InForce"
    OVERRULED = "Overruled"
    EXPIRED = "Expired"


@dataclass(frozen=True, slots=True)
class Override:
    """One entry of ``spec.overrides``.

    :param begin: its ``from``.
    :param until: by default ``nextTransition``.
    """

    name: str
    active: bool
    begin: datetime | None = None
    until: Until = "nextTransition"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OverrideRecord:
    """One entry of ``status.overrides``.

    :param start: when it started, or will.
    :param end: when it ends; None when no instant is known.
    :param open_ended: it ends when it is removed.
    :param base: the schedule's verdict at the start, where the override ends when that changes.
    """

    name: str
    active: bool
    state: OverrideState
    begin: datetime | None
    until: Until
    start: datetime
    end: datetime | None = None
    open_ended: bool = False
    base: bool | None = None

    @property
    def settled(self) -> bool:
        """Whether its end is fixed."""
        return self.end is not None or self.open_ended or self.base is not None

    def live(self, at: datetime) -> bool:
        """Whether it has started and not ended."""
        return self.start <= at and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class OverrideOutcome:
    """The result of one run.

    :param verdict: the verdict in force; None when no override decides and the schedule gives none.
    :param overridden: whether an override decides.
    :param records: the new ``status.overrides``, in the order of the spec.
    :param notes: events about overrides.
    :param again: the next instant at which the records change; None when there is none.
    """

    verdict: Verdict | None
    overridden: bool
    records: tuple[OverrideRecord, ...]
    notes: tuple[EventNote, ...]
    again: datetime | None


def apply_overrides(
    overrides: Sequence[Override],
    records: Mapping[str, OverrideRecord],
    base: Verdict | None,
    rule: Rule,
    now: datetime,
) -> OverrideOutcome:
    """Lay overrides over the verdict of a schedule.

    :param records: ``status.overrides`` of the run before, by name.
    :param base: the verdict of the schedule itself; None when it gives none.
    :param rule: the same at any instant; not called when ``base`` is None.
    """
    entries = [_advance(override, records.get(override.name), base, rule, now) for override in overrides]
    decider = _decider(entries, base, now)
    entries = [replace(entry, state=_state(entry, decider, now)) for entry in entries]
    notes = [note for entry in entries for note in _notes(entry, records.get(entry.name))]
    events = [instant for entry in entries for instant in (entry.start, entry.end) if instant and instant > now]
    verdict = base
    if decider is not None:
        reason = next(override.reason for override in overrides if override.name == decider.name)
        lookahead = _Lookahead(entries, base, rule)
        verdict = Verdict(decider.active, lookahead.next_change(now), OVERRIDDEN, _message(decider, reason, base))
    elif base is not None and entries:
        verdict = replace(base, until=_Lookahead(entries, base, rule).next_change(now))
    return OverrideOutcome(verdict, decider is not None, tuple(entries), tuple(notes), min(events, default=None))


def _advance(
    override: Override, known: OverrideRecord | None, base: Verdict | None, rule: Rule, now: datetime
) -> OverrideRecord:
    """The record of one override at this instant, with its end fixed if that is possible."""
    if known is not None and (known.active, known.begin) != (override.active, override.begin):
        known = None
    start = override.begin or (known.start if known is not None else now.replace(microsecond=0))
    entry = OverrideRecord(override.name, override.active, OverrideState.PENDING, override.begin, override.until, start)
    if isinstance(override.until, datetime):
        return replace(entry, end=override.until)
    if override.until == "forever":
        return replace(entry, open_ended=True)
    if start > now:
        return entry
    if known is not None and known.until == override.until and known.settled:
        entry = replace(entry, end=known.end, open_ended=known.open_ended, base=known.base)
        if entry.end is None and entry.base is not None and base is not None and base.active is not entry.base:
            return replace(entry, end=now.replace(microsecond=0), base=None)
        return entry
    if base is None or base.final:
        return entry
    # For one that holds already, whose end was changed or could not be told, it is the next change from now on.
    fixed = rule(start if known is None or known.state is OverrideState.PENDING else now)
    if fixed.until is not None:
        return replace(entry, end=fixed.until)
    return replace(entry, open_ended=True) if fixed.foreseen else replace(entry, base=base.active)


def _decider(entries: Iterable[OverrideRecord], base: Verdict | None, at: datetime) -> OverrideRecord | None:
    if base is not None and base.final:
        return None
    live = [entry for entry in entries if entry.live(at)]
    return max(live, key=lambda entry: (entry.start, entry.name), default=None)


def _state(entry: OverrideRecord, decider: OverrideRecord | None, now: datetime) -> OverrideState:
    if entry.start > now:
        return OverrideState.PENDING
    if not entry.live(now):
        return OverrideState.EXPIRED
    return OverrideState.IN_FORCE if entry is decider else OverrideState.OVERRULED


class _Lookahead:
    """The verdicts to come, provided that nothing is edited and the schedule keeps to what it announces."""

    def __init__(self, entries: Sequence[OverrideRecord], base: Verdict | None, rule: Rule) -> None:
        self._known = base is not None
        self._rule = rule
        self._entries = [self._foreseen(entry) for entry in entries]

    def _foreseen(self, entry: OverrideRecord) -> OverrideRecord:
        """The record with the end that the override will be given when it starts."""
        pending = entry.state is OverrideState.PENDING and entry.until == "nextTransition"
        return replace(entry, end=self._rule(entry.start).until) if pending and self._known else entry

    def next_change(self, now: datetime) -> datetime | None:
        """The instant at which ``active`` changes next; None when it never does, or is not known."""
        at, active = now, self._active(now)
        # Every step but the last passes a start or an end, if the rule keeps to what it announces.
        for _ in range(2 * len(self._entries) + _SPARE_STEPS):
            events = [instant for entry in self._entries for instant in (entry.start, entry.end)]
            if _decider(self._entries, self._base(at), at) is None and self._known:
                events.append(self._rule(at).until)
            later = [instant for instant in events if instant is not None and instant > at]
            if not later:
                return None
            at = min(later)
            now_active = self._active(at)
            if now_active is None:
                return None
            if now_active is not active:
                return at
        return at

    def _base(self, at: datetime) -> Verdict | None:
        return self._rule(at) if self._known else None

    def _active(self, at: datetime) -> bool | None:
        base = self._base(at)
        decider = _decider(self._entries, base, at)
        if decider is not None:
            return decider.active
        return base.active if base is not None else None


def _notes(entry: OverrideRecord, before: OverrideRecord | None) -> Iterable[EventNote]:
    if before is not None and (before.active, before.begin) != (entry.active, entry.begin):
        before = None
    name, mark = entry.name, f"{entry.name} {entry.start.isoformat()}"
    says = "active" if entry.active else "inactive"
    if entry.state is OverrideState.EXPIRED:
        if (before is None or before.state is not OverrideState.EXPIRED) and entry.end is not None:
            unseen = " before it was seen, and has no effect" if before is None else ""
            text = f"override {name} ({says}) ended at {_text(entry.end)}{unseen}"
            yield EventNote(
                reason="OverrideExpired", message=text, warning=False, once=f"ended {mark} {entry.end.isoformat()}"
            )
        return
    if entry.state is OverrideState.PENDING:
        return
    if before is None or before.state is OverrideState.PENDING:
        text = f"override {name} holds from {_text(entry.start)}: {says} {_end(entry)}"
        yield EventNote(reason=OVERRIDE_STARTED, message=text, warning=False, once=f"started {mark}")
    if entry.open_ended and entry.until == "nextTransition" and (before is None or not before.open_ended):
        text = f"override {name} waits for a transition that never comes: the schedule does not change; it holds until "
        yield EventNote(reason="OverrideOpenEnded", message=f"{text}it is removed", warning=True, once=f"open {mark}")


def _message(entry: OverrideRecord, reason: str, base: Verdict | None) -> str:
    why = f" ({reason})" if reason else ""
    says = "active" if entry.active else "inactive"
    beneath = "gives no verdict" if base is None else f"says {'active' if base.active else 'inactive'}"
    return f"{says} by override {entry.name}{why} {_end(entry)}; the schedule itself {beneath}"


def _end(entry: OverrideRecord) -> str:
    if entry.end is not None:
        return f"until {_text(entry.end)}"
    if entry.open_ended:
        return "until it is removed"
    return "until the schedule's next change"


def _text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
