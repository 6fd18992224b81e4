"""What went wrong, out of the group that a task group makes of it."""

from __future__ import annotations

from fivespot.runtime.errors import FivespotError

__all__ = ["known_error"]


def known_error(errors: BaseExceptionGroup[BaseException]) -> FivespotError | None:
    """The first error, where all of them are fivespot's own: what else broke is a consequence. None otherwise."""
    known, others = errors.split(FivespotError)
    if known is None or others is not None:
        return None
    error: BaseException = known
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, FivespotError) else None
