"""The hold rule: what is believed while a provider gives no verdict."""

from __future__ import annotations

from dataclasses import dataclass

from .resolution import Reference, Resolution, Resolved, Unreadable

__all__ = ["EffectiveVerdict", "HeldVerdict", "effective_verdict"]


@dataclass(frozen=True, slots=True)
class HeldVerdict:
    """The last verdict as status remembers it.

    :param active: the last known resolved state; None when there never was one.
    :param reference: whom it came from; None in a status that the existing 5-Spot wrote, which then belongs to
        the present reference.
    """

    active: bool | None = None
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class EffectiveVerdict:
    """What the schedule is taken to want.

    :param active: the verdict, or the held one, or False when there never was one.
    :param known: whether a verdict of the present reference was ever seen.
    :param fresh: whether it is the provider's word of now; steps may be begun on the schedule's account only
        when ``may_begin``.
    """

    active: bool
    known: bool
    fresh: bool
    may_begin: bool


def effective_verdict(
    reading: Resolution,
    memory: HeldVerdict | None,
    reference: Reference,
    *,
    machine_made_for: str | None = None,
) -> EffectiveVerdict:
    """Combine what the provider says now with what it said before.

    :param memory: what status remembers, None when status holds nothing (never reported, or lost).
    :param machine_made_for: of a Machine of ours that exists: ``Kind/name`` of the reference it was made for, ""
        when it does not say; None when there is no such Machine. It stands in for a lost memory.
    """
    if isinstance(reading, Resolved):
        return EffectiveVerdict(reading.active, known=True, fresh=True, may_begin=True)
    may_begin = not isinstance(reading, Unreadable)
    held: bool | None = None
    lost = memory is None or (memory.active is None and memory.reference is None)
    if lost:
        # Only a lost memory: one that names a reference which never gave a verdict must not be overruled by a Machine
        # that was made for another.
        held = True if machine_made_for in ("", str(reference)) else None
    elif memory is not None and memory.reference in (None, reference):
        held = memory.active
    return EffectiveVerdict(bool(held), known=held is not None, fresh=False, may_begin=may_begin)
