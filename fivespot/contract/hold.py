"""The hold rule: the last verdict of a schedule applies while the schedule gives none."""

from __future__ import annotations

from dataclasses import dataclass

from .resolution import Reference, Resolution, Resolved, Unreadable

__all__ = ["EffectiveVerdict", "HeldVerdict", "effective_verdict"]


@dataclass(frozen=True, slots=True)
class HeldVerdict:
    """The last verdict, as status records it.

    :param active: the last resolved state; None if there never was one.
    :param reference: the schedule that it came from; None in a status written by 5-Spot, where the current one is
        assumed.
    """

    active: bool | None = None
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class EffectiveVerdict:
    """The verdict to act on.

    :param active: the schedule's verdict, or the held one, or False if there never was one.
    :param known: whether the current reference ever gave a verdict.
    :param fresh: whether it is the schedule's current verdict and not a held one.
    :param may_begin: whether new steps may be begun because of the schedule; False while it cannot be read.
    """

    active: bool
    known: bool
    fresh: bool
    may_begin: bool


def effective_verdict(
    resolution: Resolution,
    held: HeldVerdict | None,
    reference: Reference,
    *,
    machine_made_for: str | None = None,
) -> EffectiveVerdict:
    """Combine the result of reading a schedule with the verdict that status holds.

    :param held: None when status holds nothing (never reported, or lost).
    :param machine_made_for: of a Machine of ours that exists: ``Kind/name`` of the reference it was made for, ""
        when it carries none; None when there is no such Machine. It stands in for a lost status.
    """
    if isinstance(resolution, Resolved):
        return EffectiveVerdict(resolution.active, known=True, fresh=True, may_begin=True)
    may_begin = not isinstance(resolution, Unreadable)
    active: bool | None = None
    if held is None or (held.active is None and held.reference is None):
        # Only for a lost status: one with a reference that never gave a verdict must not be overruled by a Machine
        # that was created for another.
        active = True if machine_made_for in ("", str(reference)) else None
    elif held.reference in (None, reference):
        active = held.active
    return EffectiveVerdict(bool(active), known=active is not None, fresh=False, may_begin=may_begin)
